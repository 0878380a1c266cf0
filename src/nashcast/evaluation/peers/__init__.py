"""Other forecasters, mixtures and interval rules for comparison."""
