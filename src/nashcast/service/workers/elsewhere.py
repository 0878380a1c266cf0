"""Remote agents: the hub through which the service reaches them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from nashcast.federation.federation import Federation
from nashcast.service.streams.settings import HubPlace, ServedConfig

if TYPE_CHECKING:
    from nashcast.remote.hub.hub import Hub

logger = logging.getLogger("nashcast.service")


class Elsewhere:
    """One hub at a time. Its learnt state is in the service's snapshots; it stores none itself."""

    def __init__(self, config: ServedConfig, place: HubPlace):
        self._config, self._place = config, place
        self._hub: Hub | None = None

    def make(self) -> Federation:
        """A new federation of all agents that connect in time."""
        from nashcast.remote.hub.hub import Hub

        if self._hub is not None and self._hub.federation.loop is None:
            return self._hub.federation
        self.close()
        place, paper = self._place, self._place.paper
        self._hub = Hub(
            place.folder, agents=place.agents, url=place.broker, certs=place.certs, deadline=place.deadline,
            state=False, game=paper.game, anchored=paper.anchored, ridge=paper.ridge, budget=paper.budget,
            mixing=paper.mixing, y_dim=self._config.serve.y_dim, seed=self._config.federation.seed,
            masked=place.masked, coverages=(),
        )  # fmt: skip
        logger.info("agents find the hub at %s: %s", self._hub.url, ", ".join(place.agents))
        self._wait(self._hub)
        return self._hub.federation

    def certificate_days(self) -> dict[str, float]:
        """Days until each certificate of the hub expires, by name."""
        return {} if self._hub is None else self._hub.health["certificate days"]

    def settle(self) -> bool:
        """Reset agents that are ahead of the state the service returned to; returns whether it did."""
        if self._hub is None or self._hub.federation.loop is None or not self._hub.is_behind:
            return False
        self.renew()
        return True

    def renew(self) -> None:
        """Reset the agents: the service returned to a save point."""
        if self._hub is not None:
            self._hub.renew()

    def close(self) -> None:
        hub, self._hub = self._hub, None
        if hub is not None:
            hub.close()

    def _wait(self, hub: Hub) -> None:
        missing = hub.wait_for_agents(min(0.2, self._place.wait))
        if missing and self._place.wait > 0.2:
            logger.info("waiting up to %g s for %s", self._place.wait, ", ".join(missing))
            missing = hub.wait_for_agents(self._place.wait)
        if missing:
            logger.warning("starting without %s: they may connect later", ", ".join(missing))
