"""What only leadership with seats says; heartbeats, START and votes are in ``detector/messages.py``.  Spec: fast-detection 3, D17b."""

from __future__ import annotations

from typing import Annotated, ClassVar

from holdfast.bounds import Growing, Label, Name, Number, Seconds, Slot
from holdfast.features.leadership.detector.messages import Some
from holdfast.host import Message


class Succession(Message, frozen=True):
    """One name, its next round, and the life that is expected to lead it."""

    name: Label
    round: Growing
    watched: Name
    boot: Growing


class StartRounds(Message, frozen=True, tag=58):
    """START for many names at once: an agent that led thirty of them costs each monitor one message."""

    greeting: ClassVar[bool] = True
    starts: Annotated[tuple[Succession, ...], Some]


class WhoHolds(Message, frozen=True, tag=59):
    """What does this seat remember of these names? Asking changes nothing, unlike a heartbeat, which asks for a promise."""

    greeting: ClassVar[bool] = True
    serial: Number
    names: Annotated[tuple[Label, ...], Some]


class Holding(Message, frozen=True):
    """One name at one seat."""

    name: Label
    round: Growing  # recorded; 0: never promised
    holder: Name
    boot: Growing
    wait: Seconds  # seconds until the promise ends, or until the seat promises at all; 0: it is free


class Holders(Message, frozen=True, tag=60):
    """The answer to WhoHolds."""

    serial: Number
    slot: Slot
    era: Number
    holdings: Annotated[tuple[Holding, ...], Some]
