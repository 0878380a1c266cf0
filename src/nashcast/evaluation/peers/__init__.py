"""Other forecasters and rules to stand beside."""
