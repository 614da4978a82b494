"""What a client writes and reads on the local socket: encoders and decoders, made once.  docs/local-api.md has the layout.

Used by the event loop's connection and by the blocking ones alike; no I/O here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast import errors
from holdfast.errors import AgentLost, ConfigError, Forked, HoldfastError, Timeout, shown
from holdfast.local import calls
from holdfast.local.frame import CALL_BYTES_MAX, framed

CALL_TIMEOUT = 10.0  # seconds for an agent's answer to a call that waits for no other agent; a stalled machine recovers in less
TEXT_MAX = 2000  # characters of an agent's text that an error repeats

UNREADABLE = (msgspec.ValidationError, msgspec.DecodeError)

_encode = msgspec.msgpack.Encoder().encode
decode_frame = msgspec.msgpack.Decoder(calls.FromAgent).decode

Decode = Any  # a bound ``decode`` of a decoder; msgspec's types do not say more than that


class Items(dict[type[calls.Call], Decode]):
    """Decoders of what streams carry, made when they are first needed."""

    def __missing__(self, kind: type[calls.Call]) -> Decode:
        decode = self[kind] = msgspec.msgpack.Decoder(kind.items).decode
        return decode


ITEMS = Items()

_ERRORS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HoldfastError)}


def frame_of(call: calls.Call) -> bytes:
    """The bytes of a call. Too long ones are refused here, because the agent would end the connection; so is what cannot be written."""
    try:
        body = _encode(call)
    except (TypeError, ValueError, OverflowError) as error:  # half a surrogate is a ValueError
        raise ConfigError(f"{type(call).__name__}: cannot be written ({shown(str(error))})") from None
    if len(body) > CALL_BYTES_MAX:
        raise ConfigError(f"{type(call).__name__}: {len(body)} bytes; accepted: calls of up to {CALL_BYTES_MAX} bytes")
    return framed(body)


def error_class(name: str) -> type[HoldfastError]:
    """What an agent named. One that this version does not know is still an error of ours."""
    return _known(name) or HoldfastError


def error_of(name: str, text: str, numbers: Mapping[str, int] | None = None) -> HoldfastError:
    """The error an agent named."""
    known = _known(name)
    return made(known or HoldfastError, text[:TEXT_MAX] if known else f"{name}: {text[:TEXT_MAX]}", numbers or {})


def _known(name: str) -> type[HoldfastError] | None:
    if name in _ERRORS:
        return _ERRORS[name]
    from holdfast.client.entries import error_of_feature  # most commands meet none of these

    return error_of_feature(name)


def made(kind: type[HoldfastError], text: str, numbers: Mapping[str, int]) -> HoldfastError:
    """With those of the numbers that this version knows."""
    return kind(text, **{name: numbers[name] for name in kind.NUMBERS if name in numbers})


def check_clock(path: str, before: float, welcome: calls.Welcome, after: float) -> None:
    """F14: deadlines mean something only if both read the same clock."""
    if not before <= welcome.now <= after:
        raise ConfigError(
            f"agent {path}: its clock reads {welcome.now:.6f}, ours went from {before:.6f} to {after:.6f} meanwhile;"
            " deadlines need one clock for both: use an agent of this machine, of this time namespace and this version"
        )


def check_version(path: str, welcome: calls.Welcome) -> None:
    if welcome.version != calls.VERSION:
        raise ConfigError(
            f"agent {path}: speaks version {welcome.version}, this client version {calls.VERSION}; install the same on both sides"
        )


def agent_lost(path: str, why: str, error: str = "") -> AgentLost:
    """However the agent called it (``error``): to a client it is gone."""
    return AgentLost(f"agent {path}: {why}; join again. What it granted ends at its deadline")


def silent(path: str, limit: float) -> Timeout:
    return Timeout(f"agent {path}: no answer within {limit:g} s; is its machine overloaded, or the agent stopped?")


def forked() -> Forked:
    return Forked("this group belongs to the parent of this process; join again in this process")
