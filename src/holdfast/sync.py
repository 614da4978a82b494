"""The blocking spelling of the client: the same names as in ``holdfast``, for plain threads.  docs/client.md.

with holdfast.sync.join("orders") as group:
    print(group.members)
"""

from __future__ import annotations

from holdfast.client.blocking import Group, join
from holdfast.client.buffers import Received
from holdfast.client.group import Leader
from holdfast.client.members import Members
from holdfast.client.pools import BlockingPool as Pool
from holdfast.client.pools import PoolView
from holdfast.client.waits import Holding, Messages, PoolWatch, Term, Ticket, Watch
from holdfast.host import Grant, Member

__all__ = [
    "join",
    "Group",
    "Member",
    "Members",
    "Grant",
    "Watch",
    "Messages",
    "Received",
    "Holding",
    "Term",
    "Leader",
    "Ticket",
    "Pool",
    "PoolView",
    "PoolWatch",
]
