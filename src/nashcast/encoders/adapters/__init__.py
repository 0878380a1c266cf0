"""Models of other libraries as encoders, each imported only when it is used."""
