"""Messages on the local socket: what a client may ask, and what it hears.  docs/local-api.md has the layout."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from holdfast.host import NodeId
from holdfast.local.calls import Call


class MessageItem(Struct, frozen=True, array_like=True):
    """A message for this client; ``topic`` is "" when it was sent to this agent alone."""

    sender: NodeId
    topic: str
    payload: bytes
    lost: int = 0  # messages dropped just before this one, because the client did not read


class Send(Call, frozen=True, tag=11):
    """A message to one member, by name. Answered when that agent has queued it for its client."""

    name: str
    payload: bytes
    timeout: float
    boot: int = 0  # the life that it is for; 0: the present one of that name


class Cast(Call, frozen=True, tag=12):
    """A rumour to all listeners of the topic."""

    topic: str
    payload: bytes


class Messages(Call, frozen=True, tag=13):
    """A stream of ``MessageItem``: of a topic, or ("") of what is sent to this agent alone."""

    items: ClassVar[Any] = MessageItem

    topic: str = ""
