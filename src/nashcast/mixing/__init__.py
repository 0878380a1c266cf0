"""Expert rules: forecasts of experts in, weights out. One rule per file, in plain NumPy, over columns.

A column is one target at one horizon; state arrays have shape (columns, experts).
"""
