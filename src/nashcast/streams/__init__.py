"""Where observations come from; one series to a file."""

from nashcast.streams.base import Stream
from nashcast.streams.concept_shift import concept_shift
from nashcast.streams.ecb_rates import ecb_rates

__all__ = ["Stream", "concept_shift", "ecb_rates"]
