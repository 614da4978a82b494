"""Term store: the highest term this process ever entered, over all of its lives.  Spec: fast-detection D18, section 2 (max_term).

A process that comes back under its old name starts at the stored term and never leads a term up to it. So the term is on
disk before any message of it leaves. Without a disk a process comes back under a new name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from holdfast.errors import StorageDamaged
from holdfast.features.leadership.detector.config import Term
from holdfast.host import Storage

NO_TERM = Term(-1, -1)
NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class TermStore:
    """One process's highest term. ``promises`` and ``keeper`` are the corners in which its promises survive."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.stored = _read(storage.load().get("term"))  # durable
        self.promises = storage.part("promises")
        self.keeper = storage.part("keeper")

    def save(self, term: Term, then: Callable[[], None]) -> None:
        """Durable, then ``then()``; saves complete in call order, so the stored term only grows."""
        assert term > self.stored
        self._storage.save("term", msgspec.msgpack.encode(tuple(term)), lambda: self._on_saved(term, then))

    def _on_saved(self, term: Term, then: Callable[[], None]) -> None:
        self.stored = term
        then()


def _read(value: bytes | None) -> Term:
    if value is None:
        return NO_TERM
    try:
        return Term(*msgspec.msgpack.decode(value, type=tuple[NotNegative, NotNegative]))
    except msgspec.DecodeError as error:
        raise StorageDamaged(f"the term in the journal is unreadable: {error}") from None
