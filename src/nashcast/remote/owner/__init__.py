"""An agent at its owner's."""
