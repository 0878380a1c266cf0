"""A run over in this process, with the same absences: what a run with faults must be equal to, to the bit."""

import re

import nashcast as nc
from support.remote.elsewhere import Gameless, Twin


class Mortal(Twin):
    """Sits out given steps; at each of its births it has forgotten everything, and begins where the server thinks.

    make: gives an agent that has learnt nothing.   births: steps.   stand: its forecast of the present, as the server
    has it.
    """

    def __init__(self, make, away, births, inputs, stand):
        super().__init__(make(), away, inputs)
        self._make, self._births, self._stand = make, births, stand

    def begin(self, x_dim, target, key, lookback):
        self._stream = x_dim, key, lookback
        return self._agent.begin(x_dim, target, key, lookback)

    def forecast(self, x):
        if self._agent.step in self._births:
            steps, (x_dim, key, lookback) = self._agent.step, self._stream
            self._agent = self._make()
            self._agent.begin(x_dim, self._stand(), key, lookback)
            for s in range(steps):
                self._agent.see(self._inputs[s])
                self._agent.learn(None)
        return super().forecast(x)


def replayed(makes, present, births, inputs, targets, settings, fell_back):
    """makes: one for each agent.   present: (steps, agents).   births: by agent, the steps it began anew.

    fell_back: (steps,), whether a game was not played to its end.
    """

    def stand(i):
        return lambda: federation.loop.state.forecasts[i]

    agents = []
    for i, make in enumerate(makes):
        away = {t for t in range(len(present)) if not present[t, i]}
        agents.append(Mortal(make, away, births[i], inputs, stand(i)))
    abandoned = {t for t in range(len(present)) if fell_back[t]}
    federation = nc.paper_federation(agents, make_post=lambda opening: Gameless(opening, abandoned), **settings)
    return federation.replay(inputs, targets)


def births_in(log):
    """The step at which an agent's process that had no memory began, by the log of what it sent; none if it did not."""
    found = re.search(r" step (\d+): begin ", log.read_text()) if log.exists() else None
    return {int(found[1])} if found else set()
