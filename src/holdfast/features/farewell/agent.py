"""An operator asks another agent to leave: the call ``ForceLeave``, and the same over HTTP.  docs/local-api.md."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.agent.feature import Calls, Feature, Parts, Running
from holdfast.agent.socket.answers import checked_timeout
from holdfast.errors import ConfigError, NotAMember, Timeout, Unavailable, shown
from holdfast.features.farewell.protocol.farewell import Farewell, Parting

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.observe.openapi import Route
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.farewell.calls import ForceLeave


class FarewellAgent(Running):
    """One ``Farewell``."""

    def __init__(self, parts: Parts) -> None:
        self.farewell = Farewell(parts.host, parts.membership, parts.life.on_asked_to_leave, sealed=parts.config.has_key)
        self.machines = (self.farewell,)

    def calls(self) -> Calls:
        from holdfast.features.farewell.calls import ForceLeave

        return Calls(in_turn={ForceLeave: self._force_leave})

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.farewell.http import FarewellHttp

        return FarewellHttp(web, self.farewell)

    def _force_leave(self, client: Connection, call: ForceLeave) -> None:
        timeout = checked_timeout(call.timeout)
        self.farewell.ask(call.name, timeout, partial(_on_parting, client, call.serial, call.name, timeout))


class FarewellFeature(Feature):
    """Every agent has it."""

    name = "farewell"

    def build(self, parts: Parts) -> FarewellAgent:
        return FarewellAgent(parts)

    def routes(self) -> tuple[Route, ...]:
        from holdfast.features.farewell.http import ROUTES

        return ROUTES


def _on_parting(client: Connection, serial: int, name: str, timeout: float, parting: Parting) -> None:
    match parting:
        case Parting.AGREED:
            client.done(serial)
        case Parting.SILENT:
            client.refuse(serial, Timeout(f"{shown(name)} did not answer within {timeout} s; if it is dead, the group finds out by itself"))
        case Parting.NOT_A_MEMBER:
            client.refuse(serial, NotAMember(f"name: no member is called {shown(name)}"))
        case Parting.UNSEALED:
            client.refuse(
                serial, ConfigError("key: this group has none, so no member may be asked to leave over the network; ask at its own agent")
            )
        case Parting.BUSY:
            client.refuse(serial, Unavailable("this agent is asking too many others to leave already"))
