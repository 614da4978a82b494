"""Leadership as a feature of an agent. What a running one needs is imported when there are seats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.agent.feature import Feature, Missing, Parts, Running
from holdfast.features.leadership import KIND

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.observe.openapi import Route


class LeadershipFeature(Feature):
    """Needs seats."""

    name = "leadership"

    def build(self, parts: Parts) -> Running:
        if parts.seats is None:
            return NoLeadership(parts.seats_missing, kind=KIND)
        from holdfast.features.leadership.running import LeadershipAgent

        return LeadershipAgent(parts, parts.seats)

    def routes(self) -> tuple[Route, ...]:
        from holdfast.features.leadership.http import ROUTES

        return ROUTES


class NoLeadership(Missing):
    """No leader is known, and none can be elected."""

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.leadership.http import LeadershipHttp

        return LeadershipHttp(web, None, self.why)
