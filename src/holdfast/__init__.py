"""Holdfast: coordination without a coordinator.

The public names, nothing else. Each is imported when it is first used: a command that only reads the member list shall not wait for
what it does not need. Events are in ``holdfast.events``, the blocking client in ``holdfast.sync``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client.aio import Group, join
    from holdfast.client.buffers import Received
    from holdfast.client.group import Leader
    from holdfast.client.members import Members
    from holdfast.client.pools import Pool, PoolView
    from holdfast.client.streams import Holding, Term, Ticket
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
        StorageDamaged,
        StorageError,
        StorageLocked,
        TicketCountMismatch,
        TicketLost,
        Timeout,
        Unavailable,
    )
    from holdfast.host import Address, Grant, Host, Machine, Member, Membership, MemberStatus, Message, NodeId, Storage, Timer
    from holdfast.node import Node

__all__ = [
    "join",
    "Group",
    "Term",
    "Leader",
    "Ticket",
    "Pool",
    "PoolView",
    "Holding",
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
    "Storage",
    "StorageDamaged",
    "StorageError",
    "StorageLocked",
    "TicketCountMismatch",
    "TicketLost",
    "Timeout",
    "Timer",
    "Unavailable",
]

_OF_CLIENT = {
    "join": "aio",
    "Group": "aio",
    "Term": "streams",
    "Leader": "group",
    "Ticket": "streams",
    "Pool": "pools",
    "PoolView": "pools",
    "Holding": "streams",
    "Members": "members",
    "Received": "buffers",
}
_HOMES = ("holdfast.errors", "holdfast.host", "holdfast.node")  # of all others, in the order of their cost


def __getattr__(name: str) -> Any:
    homes = (f"holdfast.client.{_OF_CLIENT[name]}",) if name in _OF_CLIENT else _HOMES if name in __all__ else ()
    for home in homes:
        module = import_module(home)
        if name in vars(module):
            return vars(module)[name]
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
