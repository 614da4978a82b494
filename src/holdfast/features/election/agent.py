"""Elections as a feature of an agent whose membership is gossip. What a running one needs is imported there.  Spec: election 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.agent.feature import Calls, Feature, Missing, Parts, Running
from holdfast.features.election import KIND

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.observe.openapi import Route

OVER = "gossip"
NOT_OVER = 'by: "election" needs membership = "{}"; this agent runs {}'


class ElectionFeature(Feature):
    """Needs lists, of which the members' own may differ."""

    name = "election"

    def build(self, parts: Parts) -> Running:
        if parts.config.membership != OVER:
            return NoElection(NOT_OVER.format(OVER, parts.config.membership), kind=KIND)
        from holdfast.features.election.running import ElectionAgent

        return ElectionAgent(parts)

    def routes(self) -> tuple[Route, ...]:
        from holdfast.features.election.http import ROUTES

        return ROUTES


class NoElection(Missing):
    """Another membership."""

    def calls(self) -> Calls:
        from holdfast.features.election.calls import Elect

        return Calls(at_once={Elect: self.refuse})

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.election.http import ElectionHttp

        return ElectionHttp(web, None, self.why)
