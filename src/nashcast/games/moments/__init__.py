"""Moments of random features for the look-back game: mean and covariance, exact or sampled."""
