"""Black-box functions and models: calling, reading answers, refitting, saving."""
