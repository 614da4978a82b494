"""What users see of a pool.  Spec: tickets 10."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from holdfast.host import NodeId

METADATA_BYTES_MAX = 512  # of one ticket, names and values together: it travels in every announcement


class Holder(Struct, frozen=True):
    """Who owns a ticket."""

    agent: NodeId
    token: int
    metadata: Mapping[str, str] = {}


class TicketView(Struct, frozen=True):
    """The owners of one pool. With ``hint`` it is what was announced (never used for safety); without, cells were read with majorities."""

    pool: str
    n: int  # 0: not known here
    owners: Mapping[int, Holder]  # by ticket; who is not in it is free, or was reclaimed
    as_of: float  # host.now
    hint: bool
    waiting: int = 0  # candidates of this agent, and those that queue at its coordinators
