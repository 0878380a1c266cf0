"""What the look-back game needs to know of random features: their mean and covariance, exact or sampled."""
