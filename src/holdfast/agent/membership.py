"""Which membership an agent runs, and what a kind of membership brings beside ``host.Standing``.

``holdfast.features.MEMBERSHIPS`` is the one list of them. The agent uses ``Standing``, ``Keyed`` and the ``Side`` below.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.agent.feature import HttpPart, Running
from holdfast.errors import ConfigError, HoldfastError, shown
from holdfast.features import MEMBERSHIPS

if TYPE_CHECKING:
    from holdfast.agent.feature import Web
    from holdfast.agent.observe.openapi import Route
    from holdfast.config import Config
    from holdfast.events import Event
    from holdfast.host import Keyed, Member, NodeId, Standing
    from holdfast.kit.broadcast import Broadcast
    from holdfast.kit.exchange import Exchange
    from holdfast.kit.slots import OwnSlots
    from holdfast.net.host import NetHost


class Hints(NamedTuple):
    """What ``doctor`` needs to know about a kind of membership."""

    not_a_member: str  # advice to an agent that is in no group
    unreachable: str  # advice about a member that does not answer this agent
    settings: Mapping[str, str]  # names of numbers in a fingerprint -> names of settings
    pause: float  # a member that stands still for about so many seconds is removed; inf: it is not


class Leases(NamedTuple):
    """What the health panel of the page shows of a membership that is kept by leases; None where there are none."""

    rtt: float | None = None  # longest of the leases, seconds
    safe_for: float | None = None
    safe_for_most: float | None = None
    length: float | None = None  # of a lease


class HttpSide(HttpPart):
    """A membership over HTTP: as a feature, and what the answers of the agent have of it."""

    def since(self) -> Mapping[NodeId, float]:
        """Wall clock when each member joined, as it says; members that did not say it are left out."""
        return {}

    def position_of(self, key: str) -> int:
        """Where a key is among the positions of the members. Only asked where members have some."""
        raise NotImplementedError

    def leases(self) -> Leases:
        return Leases()

    def plain(self, value: Any) -> Any:
        """A value in a fact of this membership as JSON has it; None: it is no value of this membership's own types."""
        del value


class Side(Running):
    """One membership that runs. It offers what a feature offers, and what an agent needs of its membership. ``machines`` are its own; the
    node's Broadcast and Exchange are not among them."""

    name: str  # the prefix of its metrics
    standing: Standing
    keyed: Keyed | None = None  # None: keys have no owners
    retried: tuple[type[Event], ...] = ()  # facts that say that an attempt to join failed
    hints: Hints

    @property
    def unowned(self) -> HoldfastError:
        """What a client hears that asks for the owner of a key, where keys have none."""
        return ConfigError(f"membership: {shown(self.name)} has no owners of keys; accepted is a membership in which keys have owners")

    def owner(self, key: str | bytes) -> Member | None:
        """Where to send what belongs to a key: a hint. Raises ``unowned`` where members have no positions."""
        return owners_in(self).owner(key)

    def http(self, web: Web) -> HttpSide:
        raise NotImplementedError


class Kind(Protocol):
    """A kind of membership, before one runs. A module offers it."""

    def ae_period(self, config: Config) -> float:
        """Of the node's ``Exchange``, seconds."""

    def told_for(self, config: Config) -> float:
        """Clients of a former life may act for a key so many seconds after they were last told that they may (F14); 0 without owners."""

    def routes(self) -> tuple[Route, ...]:
        """Over HTTP."""

    def build(self, host: NetHost, config: Config, broadcast: Broadcast, exchange: Exchange, slots: OwnSlots) -> Side:
        """``slots``: of the seats, as the settings name them. Raises ``ConfigError`` if it needs some and there are none."""


def owners_in(side: Side) -> Keyed:
    """The owners of keys. Raises ``Side.unowned`` where keys have none: "no" would look like another member's key."""
    if side.keyed is None:
        raise side.unowned
    return side.keyed


def kind_of(config: Config) -> Kind:
    """What the settings ask for. They were checked, so it is in the list; the module is imported when it is used."""
    kind: Any = import_module(MEMBERSHIPS[config.membership])
    return kind  # type: ignore[no-any-return]
