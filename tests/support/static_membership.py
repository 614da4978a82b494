"""A membership that is not the ring: the kit's Roster, as an agent runs it (``agent.membership.Kind``).

``plugged_in(monkeypatch, addresses)`` makes agents of this process use it. The list of members never changes; an agent is a member
from ``join`` to ``leave``. Keys have no owners and members no positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

import pytest

from holdfast.agent.feature import Web
from holdfast.agent.membership import Hints, HttpSide, Side
from holdfast.agent.observe.findings import note
from holdfast.agent.observe.metrics import Metric, gauge
from holdfast.agent.observe.openapi import Route
from holdfast.config import Config
from holdfast.events import MembershipEvent
from holdfast.features import MEMBERSHIPS
from holdfast.host import Address, Host, Member, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import AE_PERIOD, Exchange
from holdfast.kit.roster import Roster, listed
from holdfast.kit.slots import OwnSlots
from holdfast.local.calls import Finding

HELLO_PERIOD = 0.1  # seconds: a test does not want to wait

_addresses: dict[str, Address] = {}  # of the group, by name


def plugged_in(monkeypatch: pytest.MonkeyPatch, addresses: Mapping[str, Address]) -> None:
    """Agents that are built from now on have these members. The setting stays as it is: no other value is accepted yet."""
    monkeypatch.setitem(MEMBERSHIPS, "ring", __name__)
    monkeypatch.setattr(f"{__name__}._addresses", dict(addresses))


class StaticMembership:
    """Offers ``Standing``."""

    sole_life = False
    former_until: float | None = None
    is_over = False
    is_joining = False
    waits_for = ""
    known: tuple[Address, ...] = ()

    def __init__(self, host: Host, addresses: Mapping[str, Address]) -> None:
        self.roster = Roster(host, listed(addresses), hello_period=HELLO_PERIOD)
        self._me = host.me
        self._changes = 0
        self.is_member = False
        self.asked: list[tuple[Address, ...]] = []  # the seeds that it was given

    @property
    def wanted(self) -> bool:
        return self.is_member

    @property
    def left(self) -> bool:
        return not self.is_member

    @property
    def version(self) -> int:
        return self.roster.version + self._changes

    @property
    def rows(self) -> Mapping[str, bytes]:
        me = self.roster.get(self._me.name)
        assert me is not None
        return me.rows

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        return self.roster.members(topic) if self.is_member else ()

    def get(self, name: str) -> Member | None:
        return self.roster.get(name) if self.is_member else None

    def publish(self, row: str, value: bytes | None) -> None:
        self.roster.publish(row, value)

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self.roster.subscribe(listener)

    def usable_until(self) -> float:
        return inf

    def seeds(self, addresses: tuple[Address, ...]) -> None:
        self.asked.append(addresses)

    def join(self) -> None:
        self.is_member, self._changes = True, self._changes + 1

    def leave(self) -> None:
        self.is_member, self._changes = False, self._changes + 1

    def positions(self) -> Mapping[NodeId, int]:
        return {}

    def metrics(self) -> Mapping[str, float]:
        return {"members": float(len(self.members()))}


class StaticHttp(HttpSide):
    """Keys and members have no positions."""

    def __init__(self, standing: StaticMembership) -> None:
        self._standing = standing

    def metrics(self) -> Iterable[Metric]:
        yield gauge("static_members", "Members in the list.", len(self._standing.members()))


class StaticSide(Side):
    """Without owners of keys."""

    name = "static"
    hints = Hints("Join.", "Look for a firewall.", {}, pause=inf)

    def __init__(self, standing: StaticMembership) -> None:
        self.standing = self._static = standing
        self.machines = (standing.roster,)

    def http(self, web: Web) -> StaticHttp:
        del web
        return StaticHttp(self._static)

    def findings(self) -> Iterable[Finding]:
        yield note("static", "members", "The list of members never changes.", "Nothing.")


def ae_period(config: Config) -> float:
    del config
    return AE_PERIOD


def told_for(config: Config) -> float:
    del config
    return 0.0


def routes() -> tuple[Route, ...]:
    return ()


def build(host: Host, config: Config, broadcast: Broadcast, exchange: Exchange, slots: OwnSlots) -> StaticSide:
    del config, broadcast, exchange, slots  # Its list travels by hellos of its own.
    return StaticSide(StaticMembership(host, _addresses))
