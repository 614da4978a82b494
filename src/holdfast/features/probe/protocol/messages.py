"""What agents say to measure each other.  Spec: foundation F3, F5."""

from __future__ import annotations

from typing import ClassVar

from holdfast.bounds import Number, Payload, Seconds, Small, Text
from holdfast.host import Message


class Ping(Message, frozen=True, tag=264):
    """Are you there, and does a message of this size reach you?"""

    greeting: ClassVar[bool] = True  # a process that is no member can be asked too
    serial: Number
    attempt: Small  # comes back, so that a time belongs to the message that was answered
    back: Number  # bytes wanted in the answer, which never has more than this message
    padding: Payload


class Pong(Message, frozen=True, tag=265):
    """Yes. No wall clock in it: what two machines read there may differ."""

    serial: Number
    attempt: Small
    version: Text
    uptime: Seconds  # seconds since this life started
    paused: Seconds  # seconds for which it was stopped lately
    padding: Payload
    seats: Text = ""  # which agents it counts as seats, as ``kit.slots.written``; "": not said, for want of room or by an older version
