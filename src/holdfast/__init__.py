"""Holdfast: coordination without a coordinator.

The public names, nothing else. Each is imported when it is first used: a command that only reads the member list shall not wait for
what it does not need. Events are in ``holdfast.events``, the blocking client in ``holdfast.sync``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client.aio.group import Group, join
    from holdfast.client.aio.holds import Holding
    from holdfast.client.fence import Fence
    from holdfast.client.members import Members
    from holdfast.errors import (
        AcquireTimeout,
        AddressUnusable,
        AgentExpelled,
        AgentLost,
        ConfigError,
        ExtraMissing,
        Forked,
        HoldfastError,
        HoldLost,
        JoinFailed,
        JoinTimeout,
        KeyUnusable,
        LeadershipLost,
        NameConflict,
        NotAMember,
        NoTicket,
        StaleToken,
        StorageDamaged,
        StorageError,
        StorageLocked,
        TicketCountMismatch,
        TicketLost,
        Timeout,
        Tripped,
        Unavailable,
    )
    from holdfast.features.leadership.client import Term
    from holdfast.features.leadership.client_base import Leader
    from holdfast.features.mail.client_base import Received
    from holdfast.features.tickets.client import Pool, Ticket
    from holdfast.features.tickets.client_base import PoolView
    from holdfast.features.views.client import GroupViews
    from holdfast.host import (
        Address,
        Grant,
        Host,
        Machine,
        Member,
        Membership,
        MemberStatus,
        Message,
        NodeId,
        Storage,
        Timer,
        View,
        ViewId,
        ViewMember,
    )
    from holdfast.node import Node

__all__ = [
    "join",
    "Group",
    "Term",
    "Leader",
    "Ticket",
    "Pool",
    "PoolView",
    "GroupViews",
    "Holding",
    "Fence",
    "Members",
    "Received",
    "AcquireTimeout",
    "Address",
    "AddressUnusable",
    "AgentExpelled",
    "AgentLost",
    "ConfigError",
    "ExtraMissing",
    "Forked",
    "Grant",
    "HoldLost",
    "HoldfastError",
    "Host",
    "JoinFailed",
    "JoinTimeout",
    "KeyUnusable",
    "LeadershipLost",
    "Machine",
    "Member",
    "MemberStatus",
    "Membership",
    "Message",
    "NameConflict",
    "Node",
    "NoTicket",
    "NodeId",
    "NotAMember",
    "StaleToken",
    "Storage",
    "StorageDamaged",
    "StorageError",
    "StorageLocked",
    "TicketCountMismatch",
    "TicketLost",
    "Timeout",
    "Timer",
    "Tripped",
    "Unavailable",
    "View",
    "ViewId",
    "ViewMember",
]

_OF_CLIENT = {
    "join": "client.aio.group",
    "Group": "client.aio.group",
    "Term": "features.leadership.client",
    "Leader": "features.leadership.client_base",
    "Ticket": "features.tickets.client",
    "Pool": "features.tickets.client",
    "PoolView": "features.tickets.client_base",
    "GroupViews": "features.views.client",
    "Holding": "client.aio.holds",
    "Fence": "client.fence",
    "Members": "client.members",
    "Received": "features.mail.client_base",
}
_HOMES = ("holdfast.errors", "holdfast.host", "holdfast.node")  # of all others, in the order of their cost


def __getattr__(name: str) -> Any:
    homes = (f"holdfast.{_OF_CLIENT[name]}",) if name in _OF_CLIENT else _HOMES if name in __all__ else ()
    for home in homes:
        module = import_module(home)
        if name in vars(module):
            return vars(module)[name]
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
