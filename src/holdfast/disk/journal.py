"""Small durable state that never blocks the loop.  Spec: foundation 3 (Storage).

Saves are collected while the disk is busy, and one sync covers all of them (group commit). Completions run on the loop, in
call order. The disk's work happens in one worker thread, which alone touches the file.

A disk that refuses once is not asked again: after a failed sync it is unknown what is on it. From then on no save
completes, the listener hears ``StorageFailed`` once, and what would have been promised is never promised.

A machine sees it through ``TurnStorage``: a save that completes while the process is stopped must not be acted upon before ``on_away``
was called, so its ``then`` is handed to the host, which runs it in its place in the next turn (F10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from holdfast.disk.files import Disk, JournalFile, mark_used
from holdfast.disk.worker import Worker
from holdfast.events import StorageFailed
from holdfast.host import Storage

PENDING_SAVES_MAX = 4096  # saves that wait for the disk; a disk this far behind has failed for all that can be told
PENDING_BYTES_MAX = 16 << 20
VALUE_BYTES_MAX = 1 << 20  # "small durable state": what one message can carry, one save can keep

Post = Callable[[Callable[[], None]], None]


class Save(NamedTuple):
    """One call of ``save`` that has not completed."""

    key: str
    value: bytes | None
    then: Callable[[], None]

    @property
    def size(self) -> int:
        return len(self.key) + (len(self.value) if self.value is not None else 0)


class Journal:
    """The Storage of one state directory. Parts of it go to machines; all of them share one file and one sync."""

    def __init__(self, file: JournalFile) -> None:
        self.on_failed: Callable[[StorageFailed], None] | None = None
        self.failed = False
        self.syncs = 0  # batches made durable since the start
        self._file = file
        self._values = dict(file.values)  # as confirmed; the file's own tables belong to the worker
        self._used = dict(file.used)
        self._pending: list[Save] = []
        self._pending_bytes = 0
        self._busy = False  # a batch is about to be written, or is being written
        self._idle: asyncio.Event | None = None  # made when a caller waits
        self._worker = Worker("holdfast-journal")
        self._closed = False

    @classmethod
    def open(cls, path: Path, disk: Disk | None = None) -> Journal:
        return cls(JournalFile.open(path, disk))

    @property
    def fresh(self) -> bool:
        return self.fresh_below("")

    def load(self) -> Mapping[str, bytes]:
        return self.load_below("")

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        assert not self._closed
        assert value is None or len(value) <= VALUE_BYTES_MAX
        if self.failed:
            return
        save = Save(key, value, then)
        self._pending.append(save)
        self._pending_bytes += save.size
        if len(self._pending) > PENDING_SAVES_MAX or self._pending_bytes > PENDING_BYTES_MAX:
            self._fail(f"the disk is {len(self._pending)} saves ({self._pending_bytes} bytes) behind")
        elif not self._busy:
            # Not at once: what else this turn of the loop saves shares the sync.
            self._busy = True
            asyncio.get_running_loop().call_soon(self._begin_batch)

    def part(self, name: str) -> Part:
        return Part(self, _prefix("", name))

    def fresh_below(self, prefix: str) -> bool:
        return prefix not in self._used

    def load_below(self, prefix: str) -> Mapping[str, bytes]:
        return {key[len(prefix) :]: value for key, value in self._values.items() if key.startswith(prefix)}

    async def drain(self) -> None:
        """Wait until nothing waits for the disk any more, or the disk failed."""
        while self._busy and not self.failed:
            self._idle = self._idle or asyncio.Event()
            await self._idle.wait()

    def close(self) -> None:
        """Close the file after the write under way. What is still pending never completes; call ``drain`` first to keep it."""
        self._closed = True
        self._pending.clear()
        self._worker.close()
        self._file.close()

    def _begin_batch(self) -> None:
        if self.failed or self._closed:
            return
        batch, self._pending, self._pending_bytes = self._pending, [], 0
        changes = [(save.key, save.value) for save in batch]
        self._worker.ask(partial(self._file.append, changes), partial(self._on_worked, partial(self._on_synced, batch)))

    def _on_worked(self, then: Callable[[], None], error: BaseException | None) -> None:
        if self._closed or self.failed:
            return
        if error is not None:
            self._fail(f"{self._file.path}: {error}")
        else:
            then()

    def _on_synced(self, batch: list[Save]) -> None:
        self.syncs += 1
        for save in batch:
            self._confirm(save)
        if self._file.wants_rewrite:
            self._worker.ask(self._file.rewrite, partial(self._on_worked, self._go_on))
        else:
            self._go_on()
        for save in batch:
            save.then()

    def _go_on(self) -> None:
        if self._pending:
            self._begin_batch()
            return
        self._busy = False
        self._wake()

    def _confirm(self, save: Save) -> None:
        mark_used(self._used, save.key)
        if save.value is None:
            self._values.pop(save.key, None)
        else:
            self._values[save.key] = save.value

    def _fail(self, why: str) -> None:
        self.failed = True
        self._pending.clear()
        self._wake()
        if self.on_failed is not None:
            self.on_failed(StorageFailed(why))

    def _wake(self) -> None:
        if self._idle is not None:
            self._idle.set()
            self._idle = None


class Part:
    """The corner of a journal that belongs to one machine."""

    def __init__(self, journal: Journal, prefix: str) -> None:
        self._journal = journal
        self._prefix = prefix

    @property
    def fresh(self) -> bool:
        return self._journal.fresh_below(self._prefix)

    def load(self) -> Mapping[str, bytes]:
        return self._journal.load_below(self._prefix)

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        self._journal.save(self._prefix + key, value, then)

    def part(self, name: str) -> Part:
        return Part(self._journal, _prefix(self._prefix, name))


class TurnStorage:
    """Any storage, with completions inside the host's turns."""

    def __init__(self, inner: Storage, post: Post) -> None:
        self._inner = inner
        self._post = post

    @property
    def fresh(self) -> bool:
        return self._inner.fresh

    def load(self) -> Mapping[str, bytes]:
        return self._inner.load()

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        self._inner.save(key, value, lambda: self._post(then))

    def part(self, name: str) -> TurnStorage:
        return TurnStorage(self._inner.part(name), self._post)


class Volatile:
    """Remembers for one life, for a process that was given no state directory. A save completes at once."""

    def __init__(self) -> None:
        self._prefix = ""
        self._values: dict[str, bytes] = {}  # shared by all parts, as the journal's are
        self._used: set[str] = set()

    @property
    def fresh(self) -> bool:
        return not any(key.startswith(self._prefix) for key in self._used)

    def load(self) -> Mapping[str, bytes]:
        prefix = self._prefix
        return {key[len(prefix) :]: value for key, value in self._values.items() if key.startswith(prefix)}

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        full = self._prefix + key
        self._used.add(full)
        if value is None:
            self._values.pop(full, None)
        else:
            self._values[full] = value
        then()

    def part(self, name: str) -> Volatile:
        part = Volatile()
        part._prefix, part._values, part._used = f"{self._prefix}{name}/", self._values, self._used
        return part


def _prefix(prefix: str, name: str) -> str:
    assert name
    assert "/" not in name
    return f"{prefix}{name}/"
