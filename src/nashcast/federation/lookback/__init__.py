"""Algorithm 1, and the places where its look-back game is played."""
