"""Who drives a federation: replay of recorded series in compiled code, and river."""

from nashcast.engines.replay import replay, replay_many
from nashcast.engines.river import as_river

__all__ = ["as_river", "replay", "replay_many"]
