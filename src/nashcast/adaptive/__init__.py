"""The default federation: diverse agents in many variants, mixed online; nothing to tune."""

from nashcast.adaptive.federation import AdaptiveFederation

# By what it is for; the class says how it is done.
default_federation = AdaptiveFederation

__all__ = ["AdaptiveFederation", "default_federation"]
