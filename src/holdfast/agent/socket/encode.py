"""Frames to clients, put together from parts that are encoded once.  docs/local-api.md.

A member list goes to every client that looks, an event to every client that watches. Only the serial differs, so the value is encoded once
and the frame is written around it.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import msgspec

from holdfast.errors import HoldfastError
from holdfast.local.calls import Closed, Refused
from holdfast.local.frame import framed

_pack = Struct(">I").pack
_encode = msgspec.msgpack.Encoder().encode
_DONE = b"\x93\x01"  # an array of three, with the tag of Done
_PUSHED = b"\x93\x03"  # the same of Pushed; tests compare both with what msgspec writes
NOTHING = _encode(None)


def done(serial: int, value: bytes) -> bytes:
    number = _encode(serial)
    return _pack(2 + len(number) + len(value)) + _DONE + number + value


def pushed(serial: int, item: bytes) -> bytes:
    number = _encode(serial)
    return _pack(2 + len(number) + len(item)) + _PUSHED + number + item


def refused(serial: int, error: HoldfastError) -> bytes:
    return framed(_encode(Refused(serial, type(error).__name__, str(error), error.numbers)))


def closed(serial: int, error: str, text: str) -> bytes:
    return framed(_encode(Closed(serial, error, text)))


def encoded(value: Any) -> bytes:
    return _encode(value)
