"""Users of views in the lab: they send by the overlay all the time, lose faith, leave and come back.  Spec: views 7, 1 (G5, G7), D30.

A machine beside ``ViewNode``. What it sends is of a type that is declared for the overlay and goes no other way, so whatever arrives was
carried. Each message has a number of its own, which the checkers compare with what the sender was told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from holdfast.bounds import Number
from holdfast.events import Internal
from holdfast.features.views.protocol.membership import TakesPart
from holdfast.host import Carried, Host, Message, NodeId

PADDING_MAX = 4096  # bytes: three datagrams and more
LARGE = 1500  # bytes of padding that no datagram holds
UNDER_WAY_MAX = 64  # messages of one user; it says nothing new before some of them are answered


class LabLetter(Message, frozen=True, tag=230):
    """Something that a user says to another one."""

    carried: ClassVar[bool] = True
    number: Number  # of the sender's life
    padding: Annotated[bytes, Meta(max_length=PADDING_MAX)]


class Said(Internal, frozen=True):
    """A user gave a message to ``carry``."""

    to: NodeId
    number: int


class Answered(Internal, frozen=True):
    """``done`` was called for it."""

    to: NodeId
    number: int
    outcome: Carried


class Heard(Internal, frozen=True):
    """A user was handed one."""

    sender: NodeId
    number: int


class Habits(Struct, frozen=True):
    """What the user of one agent does; all numbers are means in seconds, and 0 is never."""

    takes_part: bool = True
    says: float = 0.5  # between two messages to members of its view
    large: float = 0.1  # share of the messages that no datagram holds
    trips: float = 0.0  # until it believes the view no more
    leaves: float = 0.0  # until it leaves the view
    away: float = 2.0  # until it comes back


class ViewUser:
    """The user of one agent."""

    handles: Sequence[type[Message]] = (LabLetter,)
    fingerprint = b""

    def __init__(self, host: Host, views: TakesPart, habits: Habits) -> None:
        self._host, self._views, self._habits = host, views, habits
        self.calm = False  # it keeps its view, and says what it is asked to say
        self.here = False
        self.under_way: set[int] = set()
        self._number = 0

    def start(self) -> None:
        if self._habits.takes_part:
            self.come()
            self._later(self._habits.says, self._on_say)
            self._later(self._habits.trips, self._on_trip)
            self._later(self._habits.leaves, self._on_leave)

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, LabLetter)
        self._host.emit(Heard(source, message.number))

    def on_away(self, seconds: float) -> None:
        """Views tell it what it missed."""

    def stop(self) -> None:
        """Its messages end with its life."""

    def rest(self) -> None:
        """The faults are over: it comes back if it was away, and stays."""
        self.calm = True
        if self._habits.takes_part:
            self.come()

    def come(self) -> None:
        self.here = True
        self._views.take_part()

    def say(self, to: NodeId, *, large: bool = False) -> int:
        """To this member, by the overlay. The number that the checkers know it by."""
        self._number += 1
        number = self._number
        self.under_way.add(number)
        self._host.emit(Said(to, number))
        self._views.carry(to, LabLetter(number, bytes(LARGE if large else 10)), partial(self._on_done, to, number))
        return number

    def _on_done(self, to: NodeId, number: int, outcome: Carried) -> None:
        self.under_way.discard(number)
        self._host.emit(Answered(to, number, outcome))

    def _on_say(self) -> None:
        random, view = self._host.random, self._views.view
        others = [member.id for member in view.members if member.id != self._host.me] if view is not None else []
        if others and len(self.under_way) < UNDER_WAY_MAX:
            self.say(random.choice(others), large=random.random() < self._habits.large)
        self._later(self._habits.says, self._on_say)

    def _on_trip(self) -> None:
        if not self.calm:
            self._views.trip("the lab says so")
        self._later(self._habits.trips, self._on_trip)

    def _on_leave(self) -> None:
        if not self.calm:
            self.here = False
            self._views.withdraw()
            self._host.after(self._host.random.expovariate(1 / self._habits.away), self._on_return)

    def _on_return(self) -> None:
        if not self.here:
            self.come()
        self._later(self._habits.leaves, self._on_leave)

    def _later(self, mean: float, action: Callable[[], None]) -> None:
        if mean:
            self._host.after(self._host.random.expovariate(1 / mean), action)
