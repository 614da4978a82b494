"""The blocking spelling of the client: the same names as in ``holdfast``, for plain threads.  docs/client.md.

with holdfast.sync.join("orders") as group:
    print(group.members)
"""

from __future__ import annotations

from holdfast.client.members import Members
from holdfast.client.sync.group import Group, join
from holdfast.client.sync.holds import Holding
from holdfast.client.sync.streams import Watch
from holdfast.features.leadership.client_base import Leader
from holdfast.features.leadership.client_sync import Term
from holdfast.features.mail.client_base import Received
from holdfast.features.mail.client_sync import Messages
from holdfast.features.tickets.client_base import PoolView
from holdfast.features.tickets.client_sync import Pool, PoolWatch, Ticket
from holdfast.features.views.client_sync import GroupViews, ViewWatch
from holdfast.host import Grant, Member, View

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
    "GroupViews",
    "View",
    "ViewWatch",
]
