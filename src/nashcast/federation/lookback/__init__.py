"""Algorithm 1, and where its look-back game is played."""
