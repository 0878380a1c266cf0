"""The saved state of an agent of Algorithm 1. All fields are checked before any is restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nashcast.agents.decoders import LongMemory
from nashcast.agents.units.plain_state import restored_state, to_arrays
from nashcast.encoders.base import State
from nashcast.fields import Fields

if TYPE_CHECKING:
    from nashcast.agents.lookback.paper_agent import PaperAgent

_ARRAYS = ("present", "inputs", "features", "presents", "targets", "took_part", "decoder")
# Inputs and targets may be missing; sums, decoders and rewritten forecasts may overflow, and then the agent sits out.
_FINITE = ("present", "features")


class PendingStep(NamedTuple):
    """A step that is forecast but not yet learnt."""

    x: np.ndarray
    raw: np.ndarray  # output of the encoder
    features: np.ndarray  # Z_t: the same, or relative to Ŷ_t
    encoder_state: State
    present: np.ndarray  # Ŷ_t
    forecast: np.ndarray  # Ŷ_{t+1}


def saved_state(agent: PaperAgent) -> dict[str, np.ndarray]:
    saved = {name: getattr(agent, f"_{name}").copy() for name in _ARRAYS}
    saved |= {name: value.copy() for name, value in agent._memory._asdict().items()}
    saved["step"], saved["key"] = np.array(agent._step), np.array(agent._key)
    if agent._pending is not None:
        saved |= to_arrays("pending", tuple(agent._pending))
    return {**saved, **to_arrays("encoder", agent._encoder_state)}


def restore_state(agent: PaperAgent, saved: dict[str, np.ndarray]) -> None:
    fields = Fields(saved)
    now = {name: getattr(agent, f"_{name}") for name in _ARRAYS} | agent._memory._asdict()
    found = {
        name: fields.take(name, value.shape, dtype=value.dtype, finite=name in _FINITE) for name, value in now.items()
    }
    step, key = (int(fields.take(name, (), dtype=np.int64, min=0)) for name in ("step", "key"))
    state = restored_state(agent._built.start(), fields.part("encoder").rest())
    pending = _pending(agent, fields.part("pending"))
    fields.done()
    for name in _ARRAYS:
        setattr(agent, f"_{name}", found[name])
    agent._memory = LongMemory(found["gram"], found["cross"])
    agent._step, agent._key = step, key
    agent._last_absence = step  # conservative: whether it took part in a step is then looked up
    agent._encoder_state, agent._pending, agent._part = state, pending, None


def _pending(agent: PaperAgent, fields: Fields) -> PendingStep | None:
    if ".tuple" not in fields:
        fields.done()
        return None
    size = int(fields.take(".tuple", (), dtype=np.int64))
    fields.require(".tuple", size == len(PendingStep._fields), f"{size}")
    (p, d), x_dim = agent._features.shape[1:], agent._inputs.shape[1]
    x = fields.take(".0.array", (x_dim,), finite=False)
    raw, features = (fields.take(f".{i}.array", (p, d)) for i in (1, 2))
    state = restored_state(agent._built.start(), fields.part(".3").rest())
    present, forecast = (fields.take(f".{i}.array", (p,)) for i in (4, 5))
    fields.done()
    return PendingStep(x, raw, features, state, present, forecast)
