"""Contract checks for encoders and agents, your own included.

    from nashcast.checks import check_encoder
    check_encoder(MyEncoder(), x_dim=4, y_dim=1)      # the names of the contracts met, or ContractViolation

Each contract is one small function that returns None or a description of the violation. They run in the order listed,
from simple to subtle, and the first violation is reported. A contract that does not apply to an encoder (for example
one about moments, if it has none) counts as met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.agents.protocol import Participant
from nashcast.checks.agent_case import AgentCase
from nashcast.checks.agent_contracts import AGENT_CONTRACTS
from nashcast.checks.contract import STEPS, ContractViolation, run
from nashcast.checks.encoder_case import STEPS as ENCODER_STEPS
from nashcast.checks.encoder_case import EncoderCase, is_plain
from nashcast.checks.encoder_contracts import ENCODING_CONTRACTS
from nashcast.checks.family_contracts import FAMILY_CONTRACTS
from nashcast.checks.learner_contracts import LEARNER_CONTRACTS
from nashcast.checks.moment_contracts import MOMENT_CONTRACTS, WINDOW
from nashcast.encoders.base import Encoder
from nashcast.errors import InvalidInput

__all__ = ["ContractViolation", "agent_checks", "check_agent", "check_encoder", "encoder_checks", "is_plain"]

_ENCODER_CONTRACTS = [*ENCODING_CONTRACTS, *FAMILY_CONTRACTS, *LEARNER_CONTRACTS, *MOMENT_CONTRACTS]


def check_encoder(
    encoder: Encoder,
    *,
    x_dim: int,
    y_dim: int,
    inputs: np.ndarray | None = None,
    objects: Sequence[Mapping[str, Any]] = (),
    steps: int = ENCODER_STEPS,
    seed: int = 0,
) -> list[str]:
    """The names of all contracts, which the encoder meets; raises `ContractViolation` for the first it breaks.

    encoder: a description, with `build`.   x_dim, y_dim: the dimensions to build it for.
    inputs: (steps, x_dim), at least 8 steps, for an encoder that needs other inputs than standard normal ones.
    objects: texts and pictures of each step, for an encoder that takes them, for example [{"headline": "…"}, …].
    steps: length of the stream, at least 8; reduce it for a slow encoder.
    seed: seed of the inputs, the targets and the noise.
    """
    length = check.integer("steps", steps, min=2 * WINDOW)
    p = check.integer("y_dim", y_dim, min=1)
    n = check.integer("x_dim", x_dim, min=0)
    if inputs is None:
        X = seeds.generator(seed, "checks", "inputs").standard_normal((length, n))
    else:
        X = check.of_rank("inputs", inputs, ("steps", "x_dim")).copy()
        check.finite("inputs", X)
        if len(X) < 2 * WINDOW or X.shape[1] != n:
            remedy = f"Pass an array (steps, x_dim), with at least {2 * WINDOW} steps and x_dim = {n}."
            raise InvalidInput("inputs", f"shape {check.shape_text(X.shape)}", remedy)
    if objects and len(objects) != len(X):
        raise InvalidInput("objects", f"{len(objects)} of them", f"Pass one mapping for each of the {len(X)} steps.")
    targets = seeds.generator(seed, "checks", "targets").standard_normal((len(X) + 1, p)).cumsum(axis=0)
    case = EncoderCase(encoder, n, p, X, targets, seeds.key(seed, "checks", "noise"), seed, objects)
    return run(_ENCODER_CONTRACTS, case)


def check_agent(make_agent: Callable[[], Participant], *, x_dim: int, y_dim: int, seed: int = 0) -> list[str]:
    """The names of all contracts, which the agent meets; raises `ContractViolation` for the first it breaks.

    For agents of the paper's Algorithm 1, local or remote.   make_agent: returns a fresh agent at every call.
    x_dim, y_dim: numbers in an input and in a target.   seed: seed of the stream and of the agent's noise.
    """
    p = check.integer("y_dim", y_dim, min=1)
    n = check.integer("x_dim", x_dim, min=1)
    if not callable(make_agent):
        remedy = "Pass a function that makes a fresh agent, for example lambda: PaperAgent(encoder)."
        raise InvalidInput("make_agent", check.describe(make_agent), remedy)
    rng = seeds.generator(seed, "checks", "stream")
    inputs, targets = rng.standard_normal((STEPS, n)), rng.standard_normal((STEPS + 1, p))
    return run(AGENT_CONTRACTS, AgentCase(make_agent, inputs, targets, seeds.key(seed, "checks", "agent"), seed))


def encoder_checks() -> list[tuple[str, str]]:
    """Name and description of each contract of an encoder, in the order they are checked."""
    return [(contract.name, contract.description) for contract in _ENCODER_CONTRACTS]


def agent_checks() -> list[tuple[str, str]]:
    """Name and description of each contract of an agent, in the order they are checked."""
    return [(contract.name, contract.description) for contract in AGENT_CONTRACTS]
