"""The handlers of one agent by call, and the calls that it can read.  docs/local-api.md.

An agent knows its own calls from the start. What a feature answers is asked for when a client first uses a call that is
not known yet, so that an agent imports no more than its clients use.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
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
    @property
    def needs(self) -> Mapping[type[Call], Sequence[str]]: ...


class Offering(Protocol):
    """A feature that runs."""

    @property
    def needs(self) -> Sequence[str]: ...
    def calls(self) -> Offered: ...


class Table(CallTable):
    """``at_once`` and ``in_turn`` have the agent's own handlers, and get those of features."""

    def __init__(self, at_once: Handlers, in_turn: Handlers, features: Iterable[Offering]) -> None:
        super().__init__((*at_once, *in_turn))
        self.at_once, self.in_turn = at_once, in_turn
        self._later = deque(features)  # those that were not asked yet
        self.needs: dict[type[Call], Sequence[str]] = {}  # calls for which something may have to be imported

    def find(self, tag: int) -> bool | None:
        """Whether a feature that was not asked before has a call of this tag; from now on it can be read. None: one of the modules that it
        takes was imported, and more may be missing; ask again in another turn of the loop. Raises ``Unavailable`` if what it says to
        clients cannot be imported; the next call asks again."""
        while self._later and tag not in self.kinds:
            try:
                if _load_one(self._later[0].needs):
                    return None
                offered = self._later[0].calls()
            except ImportError as error:
                raise Unavailable(f"call: {tag}: {error}; was Holdfast installed anew? Restart the agent") from None
            self._later.popleft()
            _take(self.at_once, offered.at_once)
            _take(self.in_turn, offered.in_turn)
            self.needs.update(offered.needs)
            self.add((*offered.at_once, *offered.in_turn))
            if tag in self.kinds:
                return True
        return False

    def load(self, kind: type[Call]) -> bool:
        """Import one of the modules that calls of this type need; False if none is missing. An agent goes on between two of them: all at
        once they take a part of a lease of the preset ``local`` (H382). What cannot be imported is left to the handler, who says so."""
        names = self.needs.get(kind)
        if names is None:
            return False
        with suppress(ImportError):
            if _load_one(names):
                return True
        del self.needs[kind]
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


def _load_one(names: Sequence[str]) -> bool:
    """Import the first of them that is not there. False if all are."""
    for name in names:
        if name not in sys.modules:
            import_module(name)
            return True
    return False


def _take(handlers: Handlers, more: Mapping[type[Call], Handler]) -> None:
    """Each call has one handler."""
    assert not handlers.keys() & more.keys()
    handlers.update(more)
