"""Prediction intervals that stay calibrated while the world drifts."""

from nashcast.intervals.intervals import Intervals

__all__ = ["Intervals"]
