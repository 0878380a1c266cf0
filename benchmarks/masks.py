"""What masks cost, printed as the tables of the docs: for each agent and round, and for whole steps over bytes."""

from __future__ import annotations

from time import perf_counter, process_time

import numpy as np
from nkeys import PREFIX_BYTE_USER, encode_seed

from nashcast import LookbackGame, encoders
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.remote.broker.certificates.keys import public_key
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.masking.masks import MaskedAgent, new_key, sign_key, sum_masked
from nashcast.remote.masking.owner import MaskSettings
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire.transport import Failure

LOOKBACK, Y_DIM, STEPS = 3, 1, 60
GAMES = 20
CASES = [
    (6, 1, False), (10, 1, True), (10, 3, False), (20, 3, False), (20, 3, True), (50, 3, False), (50, 3, True),
]  # fmt: skip


def rounds(noisy: bool) -> list[list[tuple[int, ...]]]:
    """The shapes of what an agent sends in each round of a game."""
    sizes = [(back + 1) * Y_DIM for back in range(LOOKBACK)]
    tensors = [k * (k + 1) // 2 * (k * (k + 1) // 2 + k) if noisy and k < sizes[-1] else 0 for k in sizes]
    surprises = [k * (k + 1) if noisy and k > Y_DIM else 0 for k in sizes]
    return [[(k, k), (k,), (n,), (s,)] for k, n, s in zip(sizes, tensors, surprises, strict=True)]


def team(count: int) -> tuple[dict[str, MaskedAgent], float]:
    """Agents that know each other, and the seconds it took each to meet one other."""
    names, identity = [f"agent-{i:03}" for i in range(count)], encode_seed(bytes(32), PREFIX_BYTE_USER).decode()
    private = {name: new_key() for name in names}
    public = {name: sign_key("bench", name, key, identity).public_key for name, key in private.items()}
    began, agents = perf_counter(), {}
    for name in names:
        peers = {peer: key for peer, key in public.items() if peer != name}
        agents[name] = MaskedAgent(name, private[name], peers, federation="bench", least=2)
    return agents, (perf_counter() - began) / (count * (count - 1))


def measure(count: int, noisy: bool) -> list[float]:
    """Microseconds a round for an agent and for the hub (best game), bytes a message, microseconds to meet a peer."""
    agents, meeting = team(count)
    rng, present, masking, adding, sent = np.random.default_rng(0), set(agents), [], [], 0
    for step in range(STEPS):
        masked = added = sent = 0.0
        for number, shapes in enumerate(rounds(noisy)):
            terms = [rng.standard_normal(shape) for shape in shapes]
            began = perf_counter()
            messages = {name: agent.mask(terms, step, 0, str(number), present) for name, agent in agents.items()}
            met = perf_counter()
            sum_masked(messages, shapes, present)
            masked, added = masked + (met - began) / count, added + perf_counter() - met
            sent += len(messages["agent-000"])
        masking.append(masked)
        adding.append(added)
    return [1e6 * min(masking) / LOOKBACK, 1e6 * min(adding) / LOOKBACK, sent / LOOKBACK, 1e6 * meeting]


class InProcess:
    """Carries turns to owners in this process, one after the other."""

    def __init__(self, owners: dict[str, Owner]):
        self._owners = owners

    def exchange(self, turns: dict[str, bytes], deadline: float | None) -> dict[str, bytes | Failure]:
        return {name: self._owners[name].answer(turn) for name, turn in turns.items()}


def federation(count: int, lookback: int, random: bool, masked: bool) -> RemoteAgents:
    names = [f"agent-{i:03}" for i in range(count)]
    seeds = {name: encode_seed(i.to_bytes(32, "big"), PREFIX_BYTE_USER) for i, name in enumerate(names)}
    enrolled = {name: public_key(seed.decode()) for name, seed in seeds.items()}
    owners = {}
    for i, name in enumerate(names):
        encoder = encoders.RandomFeatures(features=6, seed=i) if random else encoders.Linear()
        masks = MaskSettings("bench", seeds[name].decode(), enrolled) if masked else None
        owners[name] = Owner(PaperAgent(encoder, name=name, share="sums", ridge=1 + i), masks=masks)
    game = LookbackGame(lookback=lookback, placement="spread")
    return RemoteAgents(names, InProcess(owners), masked=masked, game=game, start=0.0)


def whole_steps(count: int, lookback: int, random: bool) -> list[list[float]]:
    """Milliseconds of the processor in the best step, bytes down to and up from each agent; plain and masked."""
    X = np.random.default_rng(0).standard_normal((GAMES, 3))
    pair = [federation(count, lookback, random, masked) for masked in (False, True)]
    best, traffic = [np.inf, np.inf], [[0.0, 0.0], [0.0, 0.0]]
    for t, x in enumerate(X):
        for place, each in enumerate(pair):
            before, began = each.traffic, process_time()
            each.federation.predict_one(x)
            took = process_time() - began
            each.federation.learn_one(x, float(x[0]))
            traffic[place] = [(each.traffic[way] - before[way]) / count for way in ("down", "up")]
            if t > lookback + 1:  # keys are exchanged in the first game
                best[place] = min(best[place], took)
    for each in pair:
        assert each.federation.health["games"] == GAMES - lookback, each.federation.health
    return [[1e3 * seconds, *sizes] for seconds, sizes in zip(best, traffic, strict=True)]


def main() -> None:
    measure(3, True)  # compiles
    print("| agents | features | agent, µs a round | hub, µs a round | bytes a message | to meet one peer, µs |")
    print("|---:|---|---:|---:|---:|---:|")
    for count in (2, 5, 20, 50):
        for noisy in (False, True):
            cells = " | ".join(f"{value:.0f}" for value in measure(count, noisy))
            print(f"| {count} | {'random' if noisy else 'deterministic'} | {cells} |")
    print()
    print("| agents | look-back | features | plain, ms a step | masked, ms a step | ratio | bytes down | bytes up |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for count, lookback, random in CASES:
        (plain, *plain_bytes), (masked, *masked_bytes) = whole_steps(count, lookback, random)
        sizes = " | ".join(f"{a:.0f} → {b:.0f}" for a, b in zip(plain_bytes, masked_bytes, strict=True))
        words = "random" if random else "deterministic"
        print(f"| {count} | {lookback} | {words} | {plain:.1f} | {masked:.1f} | {masked / plain:.2f} | {sizes} |")


if __name__ == "__main__":
    main()
