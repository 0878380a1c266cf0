"""Games between agents: the look-back game of the paper (`lookback`), its certificate, and the moments it needs."""
