"""Who may connect, how often, with which token."""
