"""Holdfast: coordination without a coordinator.

What is public today is what a protocol and its tests need; ``docs/reference.md`` lists the rest by module.
"""

from holdfast.errors import (
    AddressUnusable,
    ConfigError,
    HoldfastError,
    KeyUnusable,
    StorageDamaged,
    StorageError,
    StorageLocked,
)
from holdfast.host import Address, Host, Machine, Member, Membership, MemberStatus, Message, NodeId, Storage, Timer
from holdfast.node import Node

__all__ = [
    "Address",
    "AddressUnusable",
    "ConfigError",
    "HoldfastError",
    "Host",
    "KeyUnusable",
    "Machine",
    "Member",
    "MemberStatus",
    "Membership",
    "Message",
    "Node",
    "NodeId",
    "Storage",
    "StorageDamaged",
    "StorageError",
    "StorageLocked",
    "Timer",
]
