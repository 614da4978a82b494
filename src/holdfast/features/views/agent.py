"""Views as a feature of an agent. What a running one needs is imported when there are servers.  Spec: views 9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.agent.feature import Feature, Parts, Running
from holdfast.features.views.settings import ViewsSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.agent.observe.openapi import Route
    from holdfast.config import Config


class ViewFeature(Feature):
    """Needs slots of seats, without a journal, or ZooKeeper."""

    name = "views"

    def build(self, parts: Parts) -> Running:
        if parts.config.membership == "views":
            from holdfast.features.views.running import ViewAgent
            from holdfast.features.views.side import views_of

            return ViewAgent(parts, views_of(parts.membership))
        if not parts.slots.all and not ViewsSettings.of(parts.config).zookeeper:
            from holdfast.features.views.missing import NoViews

            return NoViews(parts)
        from holdfast.features.views.running import ViewAgent

        return ViewAgent(parts)

    def routes(self) -> tuple[Route, ...]:
        from holdfast.features.views.http import ROUTES

        return ROUTES

    def would(self, config: Config) -> Iterable[str]:
        settings = ViewsSettings.of(config)
        if not settings.zookeeper:
            return ()
        from holdfast.features.views.zookeeper.servers import would

        return would(settings.zookeeper, settings.zk_session, is_membership=config.membership == self.name)
