"""The handlers of one agent by call, and the calls that it can read.  docs/local-api.md.

An agent knows its own calls from the start. What a feature answers is asked for when a client first uses a call that is
not known yet, so that an agent imports no more than its clients use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from msgspec import DecodeError, Struct
from msgspec.msgpack import Decoder

from holdfast.errors import Unavailable
from holdfast.local.calls import Call
from holdfast.local.table import CallTable

UNREADABLE = (DecodeError, ValueError, RecursionError)  # bad UTF-8 and nesting have errors of their own
Handler = Callable[[Any, Any], None]  # gets the connection and the call; raises what the client is to be told
Handlers = dict[type[Call], Handler]


class Offered(Protocol):
    """Handlers of one feature."""

    @property
    def at_once(self) -> Mapping[type[Call], Handler]: ...
    @property
    def in_turn(self) -> Mapping[type[Call], Handler]: ...


class Offering(Protocol):
    """A feature that runs."""

    def calls(self) -> Offered: ...


class Table(CallTable):
    """``at_once`` and ``in_turn`` have the agent's own handlers, and get those of features."""

    def __init__(self, at_once: Handlers, in_turn: Handlers, features: Iterable[Offering]) -> None:
        super().__init__((*at_once, *in_turn))
        self.at_once, self.in_turn = at_once, in_turn
        self._later = deque(features)  # those that were not asked yet

    def find(self, tag: int) -> bool:
        """Whether a feature that was not asked before has a call of this tag; from now on it can be read. Raises ``Unavailable`` if what it
        says to clients cannot be imported; the next call asks again."""
        while self._later and tag not in self.kinds:
            try:
                offered = self._later[0].calls()
            except ImportError as error:
                raise Unavailable(f"call: {tag}: {error}; was Holdfast installed anew? Restart the agent") from None
            self._later.popleft()
            _take(self.at_once, offered.at_once)
            _take(self.in_turn, offered.in_turn)
            self.add((*offered.at_once, *offered.in_turn))
            if tag in self.kinds:
                return True
        return False


class Head(Struct, frozen=True, array_like=True):
    """How every call begins."""

    tag: int
    serial: int


_decode_head = Decoder(Head).decode


def head_of(body: bytes) -> Head:
    """Zeros where it cannot be read."""
    try:
        return _decode_head(body)
    except UNREADABLE:
        return Head(0, 0)


def _take(handlers: Handlers, more: Mapping[type[Call], Handler]) -> None:
    """Each call has one handler."""
    assert not handlers.keys() & more.keys()
    handlers.update(more)
