"""A federation as an estimator of river, scikit-learn or sktime."""
