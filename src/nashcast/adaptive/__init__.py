"""The default federation: diverse agents in many variants, mixed online; nothing to tune."""

from nashcast.adaptive.default import default_federation
from nashcast.adaptive.federation import AdaptiveFederation

__all__ = ["AdaptiveFederation", "default_federation"]
