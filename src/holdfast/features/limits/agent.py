"""Rate limits as a feature of an agent. What a running one needs is imported with the first use of a limit.  Spec: limits 1, 5.11."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.agent.feature import Feature, Parts, Running
from holdfast.features.limits.running import LimitsAgent

if TYPE_CHECKING:
    from holdfast.agent.observe.openapi import Route


class LimitsFeature(Feature):
    """Every agent has it. Without seats its limits stand on the member list."""

    name = "limits"

    def build(self, parts: Parts) -> Running:
        return LimitsAgent(parts)

    def routes(self) -> tuple[Route, ...]:
        from holdfast.features.limits.http import ROUTES

        return ROUTES
