"""Views where no server of views is known: what needs them is told which setting is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from holdfast.agent.feature import Calls, Missing, Parts

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web


class NoViews(Missing):
    """No server of views is known."""

    views = slot = None
    takes_part = serves = False
    back_end: Literal["seats", "zookeeper"] = "seats"
    now = 0.0

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.slots.missing)
        self.me = parts.host.me

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.views.http import ViewsHttp

        return ViewsHttp(web, self)

    def calls(self) -> Calls:
        from holdfast.features.views.calls import SurveyViews, TripView, WatchViews

        return Calls(in_turn=dict.fromkeys((WatchViews, TripView, SurveyViews), self.refuse))
