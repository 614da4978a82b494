"""Facts inside the protocol of views, for traces, checkers, metrics and the page.  Spec: views 9."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal
from holdfast.host import NodeId, View


class ViewFact(Internal, frozen=True):
    """Base of these facts."""

    family: ClassVar[str] = "views"


class LinkUp(ViewFact, frozen=True):
    """This server has a link with another one."""

    peer: NodeId


class LinkDown(ViewFact, frozen=True):
    """This server lost its link with another one."""

    peer: NodeId
    why: str
    quarantine: float  # seconds for which no answer brings it up again


class ClientAttached(ViewFact, frozen=True):
    """A client is attached to this server."""

    client: NodeId
    attach: int


class ClientRemoved(ViewFact, frozen=True):
    """A client is not attached to this server any more."""

    client: NodeId
    attach: int
    why: str


class Proposed(ViewFact, frozen=True):
    """This server's only proposal under this number."""

    number: int
    key: bytes  # digest
    servers: tuple[NodeId, ...]


class Delivered(ViewFact, frozen=True):
    """This server delivered a view to its clients."""

    view: View
    fast: bool  # it proposed once
    took: float  # seconds since the change began here


class SlowChange(ViewFact, frozen=True):
    """A change lasts for longer than views should need. Told once per change."""

    seconds: float


class Attached(ViewFact, frozen=True):
    """This client is attached to a server: a ping that echoed its stamp was answered."""

    server: NodeId
    attach: int


class Detached(ViewFact, frozen=True):
    """This client left its server, and tries another one or the same anew."""

    server: NodeId | None  # None: it never answered
    attach: int  # of the attachment that begins
    why: str


class Carried(ViewFact, frozen=True):
    """The overlay brought a message of this client to its receiver."""

    to: NodeId
    mid: int
    hops: int  # that it took


class Received(ViewFact, frozen=True):
    """The overlay handed a message to this client."""

    sender: NodeId
    mid: int


class HopFailed(ViewFact, frozen=True):
    """A hop used up its tries: what it led to is held to be lost (views D13)."""

    to: NodeId
    mid: int


class ServerRetired(ViewFact, frozen=True):
    """No client was known anywhere for a while, so this seat serves views no more until one asks."""
