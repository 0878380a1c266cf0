"""Prediction intervals that stay calibrated under drift."""

from nashcast.intervals.intervals import Intervals

__all__ = ["Intervals"]
