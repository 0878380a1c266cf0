"""The contracts of an agent: its replies over a synthetic stream with games, and the values it must not change."""

from __future__ import annotations

import copy

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.agents.protocol import Answer, GameView, Hello, Sync
from nashcast.checks.agent_case import LOOKBACK, AgentCase, differs, play, stream
from nashcast.checks.contract import Contract, is_whole, near, same, wrong_array
from nashcast.errors import NashcastError


def _begins(case: AgentCase) -> str | None:
    _, hello = case.begin()
    if not isinstance(hello, Hello):
        return f"begin gave {check.describe(hello)}, not a Hello"
    if not isinstance(hello.name, str):
        return f"the name is {check.describe(hello.name)}, not a string"
    if not is_whole(hello.features):
        return f"features is {check.describe(hello.features)}, not a whole number ≥ 0"
    return None


def _answers(case: AgentCase) -> str | None:
    agent, hello = case.begin()
    answered, reason = False, ""
    for t, x in enumerate(case.inputs):
        answer = agent.forecast(x)
        if wrong := _wrong_answer(f"forecast at step {t}", answer, case.dims[1]):
            return wrong
        if answer.forecast is None:
            reason = answer.reason
        else:
            answered = True
            adopted = agent.adopt(case.sync(t, hello.features))
            if wrong := _wrong_answer(f"adopt at step {t}", adopted, case.dims[1]):
                return wrong
        agent.learn(case.targets[t + 1])
    return None if answered else f"the agent sat out every step, the last because: {reason}"


def _wrong_answer(name: str, answer: Answer, y_dim: int) -> str | None:
    if not isinstance(answer, Answer):
        return f"{name} gave {check.describe(answer)}, not an Answer"
    if answer.forecast is None:
        told = isinstance(answer.reason, str) and answer.reason
        return None if told else f"{name} gave no forecast, and no reason"
    return wrong_array(f"the answer of {name}", answer.forecast, (y_dim,))


def _view(case: AgentCase) -> str | None:
    agent, hello = case.begin()
    p, d = case.dims[1], hello.features
    for t, x in enumerate(case.inputs):
        agent.forecast(x)
        if t >= LOOKBACK:
            view = agent.view()
            if not isinstance(view, GameView):
                return f"view gave {check.describe(view)}, not a GameView"
            if (view.means is None) != (view.covariance is None):
                return "view has only one of means and covariance"
            wrong = wrong_array("features", view.features, (LOOKBACK, p, d))
            if view.means is not None:
                wrong = wrong or wrong_array("means", view.means, (LOOKBACK, p, d))
                wrong = wrong or wrong_array("covariance", view.covariance, (LOOKBACK, p, p, d, d))
            if wrong:
                return wrong
            if not (0.0 < view.ridge < np.inf and 0.0 <= view.decay < np.inf):
                return f"ridge is {view.ridge} and decay {view.decay}, not finite with ridge > 0 and decay ≥ 0"
        agent.learn(case.targets[t + 1])
    return None


def _leaves_arguments(case: AgentCase) -> str | None:
    agent, first = case.make(), case.targets[0].copy()
    hello = agent.begin(case.dims[0], first, case.key, LOOKBACK)
    if not np.array_equal(first, case.targets[0]):
        return "begin changed the target"
    for t in range(len(case.inputs)):
        x, target, sync = case.inputs[t].copy(), case.targets[t + 1].copy(), case.sync(t, hello.features)
        before = copy.deepcopy(sync)
        if agent.forecast(x).forecast is not None:
            agent.adopt(sync)
        agent.learn(target)
        if not np.array_equal(x, case.inputs[t]):
            return f"x was changed at step {t}"
        if not np.array_equal(target, case.targets[t + 1]):
            return f"learn changed the target at step {t}"
        if not same(tuple(sync), tuple(before)):
            return f"adopt changed what it was given at step {t}"
    return None


def _determinism(case: AgentCase) -> str | None:
    t = differs(stream(case), stream(case))
    return None if t is None else f"two fresh agents with the same key and stream gave different replies at step {t}"


def _repeats(case: AgentCase) -> str | None:
    agent, _ = case.begin()
    for t, x in enumerate(case.inputs):
        one = copy.deepcopy(agent.forecast(x).forecast)
        if not same(one, agent.forecast(x).forecast):
            return f"asked twice for the same x, the agent gave two forecasts at step {t}"
        agent.learn(case.targets[t + 1])
    t = differs(stream(case), stream(case, asked=2))
    return None if t is None else f"an agent asked more often replied differently from one asked once, at step {t}"


def _causality(case: AgentCase) -> str | None:
    replies = stream(case)
    rng = seeds.generator(case.seed, "checks", "other future")
    for s in range(1, len(case.inputs)):
        inputs, targets = case.inputs.copy(), case.targets.copy()
        inputs[s:] = rng.standard_normal(inputs[s:].shape)
        # The target that the input before s forecasts lies in the future as well.
        targets[s:] = rng.standard_normal(targets[s:].shape)
        t = differs(stream(case._replace(inputs=inputs, targets=targets), steps=s), replies[:s])
        if t is not None:
            return f"a future that changed from step {s} on changed the agent's reply at step {t}"
    return None


def _order(case: AgentCase) -> str | None:
    for steps in (0, 1):
        agent, hello = case.begin()
        when = "adopt before any forecast" if steps == 0 else "adopt after learn"
        play(case, agent, hello.features, range(steps))
        try:
            agent.adopt(case.sync(steps, hello.features))
        except NashcastError:
            continue
        except Exception as error:
            return f"{when} raised {type(error).__name__}, which is not a NashcastError"
        return f"{when} was accepted"
    return None


def _sits_out(case: AgentCase) -> str | None:
    s, replies = len(case.inputs) // 2, []
    for asked in (True, False):
        agent, hello = case.begin()
        play(case, agent, hello.features, range(s))
        if asked:
            agent.forecast(case.inputs[s])
            agent.sit_out()
        agent.learn(case.targets[s + 1])
        replies.append(play(case, agent, hello.features, range(s + 1, len(case.inputs))))
    t = differs(*replies)
    told = (
        f"told to sit step {s} out, the agent replied differently at step {s + 1 + (t or 0)} from one not asked at {s}"
    )
    return None if t is None else told


def _saves(case: AgentCase) -> str | None:
    agent, hello = case.begin()
    half = len(case.inputs) // 2
    play(case, agent, hello.features, range(half))
    saved = agent.save()
    for name, value in saved.items():
        if not isinstance(name, str) or type(value) is not np.ndarray or value.dtype == object:
            return f"save gave {check.describe(value)} under {name!r}, not an array"
    saved, rest = copy.deepcopy(saved), range(half, len(case.inputs))
    expected = play(case, agent, hello.features, rest)
    resumed, _ = case.begin()
    resumed.restore(saved)
    t = differs(play(case, resumed, hello.features, rest), expected)
    return None if t is None else f"restored after {half} steps, the agent replied differently {t + 1} steps later"


def _adopts(case: AgentCase) -> str | None:
    agent, hello = case.begin()
    rng = seeds.generator(case.seed, "checks", "decoders")
    for t, x in enumerate(case.inputs):
        sync = Sync(rng.standard_normal(case.dims[1]), rng.standard_normal(hello.features))
        answered = agent.forecast(x).forecast is not None
        adopted = copy.deepcopy(agent.adopt(sync).forecast) if answered else None
        agent.learn(case.targets[t + 1])
        if adopted is None:
            continue
        wanted = sync.forecast + agent.view().features[-1] @ sync.decoder
        if not near(adopted, wanted, 1e-9):
            return f"at step {t} adopt gave {adopted}, not sync.forecast + Z @ sync.decoder = {wanted}"
    return None


AGENT_CONTRACTS = [
    Contract(
        "begin",
        "begin gives a Hello with a name and the number of features",
        "Return nashcast.agents.Hello(name, features) from begin.",
        _begins,
    ),
    Contract(
        "answers",
        "forecast and adopt give an Answer: y_dim finite float64 numbers, or None and a reason, but not always",
        "Return nashcast.agents.Answer(forecast), with forecast an array of shape (y_dim,).",
        _answers,
    ),
    Contract(
        "view",
        "view gives a GameView of the last `lookback` steps in the declared shapes",
        "Return nashcast.agents.GameView, features of shape (lookback, y_dim, features), ridge > 0 and decay ≥ 0.",
        _view,
    ),
    Contract(
        "arguments",
        "no input, target or decoder the agent is given is changed",
        "Copy an array before writing to it.",
        _leaves_arguments,
    ),
    Contract(
        "determinism",
        "two fresh agents with the same key and stream give the same run to the bit",
        "Draw from the key given to begin, and share nothing between agents.",
        _determinism,
    ),
    Contract(
        "repeated forecast",
        "forecasting twice gives the same answer and changes nothing",
        "Learn in learn only; in forecast, store the step until then.",
        _repeats,
    ),
    Contract(
        "causality",
        "an agent's replies depend on the past only",
        "Use nothing but x, the targets learnt and what was adopted.",
        _causality,
    ),
    Contract(
        "order",
        "adopt without a forecast before it raises a NashcastError",
        "Raise nashcast.InvalidInput or another NashcastError that asks for a forecast first.",
        _order,
    ),
    Contract(
        "sitting out",
        "learn without a forecast, or after sit_out, is a step the agent sat out: both continue alike",
        "In sit_out, drop what forecast stored; in learn, accept a step without it.",
        _sits_out,
    ),
    Contract(
        "saving",
        "save gives named arrays, from which restore continues to the bit",
        "Save all that changes in learn, and restore every part of it.",
        _saves,
    ),
    Contract(
        "adopt",
        "adopt moves the forecast to sync.forecast + Z @ sync.decoder, with Z the step's features as view shows them",
        "Compute the forecast anew from both parts of the sync.",
        _adopts,
    ),
]
