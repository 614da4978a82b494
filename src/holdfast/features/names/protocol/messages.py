"""How processes of one name learn of each other.  Spec: foundation F3, F5."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.bounds import PLACES_MAX, Growing, Number
from holdfast.host import Address, Message, NodeId


class WhoIs(Message, frozen=True, tag=272):
    """Which other lives of my name do you know?"""

    greeting: ClassVar[bool] = True
    serial: Number
    address: Address  # where I listen
    clear: bool  # I asked before, and may use my name


class Sighting(Message, frozen=True):
    """A life of the name that was asked for, and where it listened."""

    boot: Growing
    address: Address


class Known(Message, frozen=True, tag=273):
    """This is who I am, and these are those I heard of."""

    serial: Number
    me: NodeId  # as in the envelope
    clear: bool  # of a name that is in use twice, this tells who came first
    others: Annotated[tuple[Sighting, ...], Meta(max_length=PLACES_MAX)]
