"""The lab's disk: it confirms late, keeps what was confirmed, and can tear, fill up or be damaged.  Spec: foundation 3 (Storage)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

from holdfast.errors import StorageDamaged
from holdfast.events import Event, StorageFailed

Write = tuple[str, bytes | None, Callable[[], None]]
Copy = tuple[dict[str, bytes], set[str]]


class Writer(Protocol):
    """The life of a process that writes to the disk."""

    dead: bool

    def complete_after(self, delay: float, callback: Callable[[], None]) -> None: ...
    def step(self, action: Callable[[], None]) -> None: ...
    def crash_soon(self, then: Callable[[], None]) -> None: ...
    def emit(self, event: Event) -> None: ...


class LabDisk:
    """One machine's disk. It outlives the lives of the process that writes to it."""

    def __init__(self, random: Random, *, sync_seconds: tuple[float, float] = (0.0005, 0.005)) -> None:
        self.full = False
        self.damaged = False
        self.saves = 0  # write points so far, over all lives
        self.syncs = 0
        self.wipes = 0  # how often all of it was lost
        self.restores = 0  # how often it was put back to what it was earlier
        self.crash_at_save = 0  # 0: never; n: the process dies at its n-th write point, before the sync
        self.after_crash: Callable[[], object] | None = None  # what follows such a death
        self._random = random
        self._sync_seconds = sync_seconds
        self._kept: dict[str, bytes] = {}
        self._used: set[str] = set()  # parts that something was ever saved under
        self._waiting: list[Write] = []
        self._syncing: list[Write] = []
        self._host: Writer | None = None
        self._failed = False  # a disk that refused once is not asked again in that life, as in disk/journal.py

    def attach(self, host: Writer) -> LabStorage:
        """A new life opens the disk."""
        self._host, self._failed = host, False
        return LabStorage(self, "")

    def crash(self) -> None:
        """What was written and not yet confirmed may be there or not: a prefix survives, as with a torn log."""
        unconfirmed = self._syncing + self._waiting
        for write in unconfirmed[: self._random.randint(0, len(unconfirmed))]:
            self._keep(write)
        self._waiting, self._syncing, self._host = [], [], None

    def wipe(self) -> None:
        """Nothing is left, not even that there was something."""
        assert self._host is None
        self.wipes += 1
        self._kept.clear()
        self._used.clear()

    def copy(self) -> Copy:
        """What is on it now, for ``restore``."""
        return dict(self._kept), set(self._used)

    def restore(self, copy: Copy) -> None:
        """It is as it was then."""
        assert self._host is None
        self.restores += 1
        self._kept, self._used = dict(copy[0]), set(copy[1])

    def mend(self) -> bool:
        """There is room again, and no process is to die in a save. True if the present life was refused and stays silent."""
        self.full, self.crash_at_save, self.after_crash = False, 0, None
        return self._failed and self._host is not None

    def load(self, prefix: str) -> Mapping[str, bytes]:
        if self.damaged:
            raise StorageDamaged("the lab damaged this disk: restore it or remove the state directory")
        return {key[len(prefix) :]: value for key, value in self._kept.items() if key.startswith(prefix)}

    def fresh(self, prefix: str) -> bool:
        return not any(used.startswith(prefix) for used in sorted(self._used))

    def save(self, write: Write) -> None:
        host = self._host
        assert host is not None
        self.saves += 1
        self._waiting.append(write)
        if self.saves == self.crash_at_save:
            host.crash_soon(self._crashed)
        elif self.full or self._failed:
            self._fail(host)
        elif not self._syncing:
            self._begin_sync(host)

    def _crashed(self) -> None:
        if self.after_crash is not None:
            self.after_crash()
            self.after_crash = None

    def _begin_sync(self, host: Writer) -> None:
        self._syncing, self._waiting = self._waiting, []
        host.complete_after(self._random.uniform(*self._sync_seconds), lambda: self._on_synced(host))

    def _on_synced(self, host: Writer) -> None:
        if self.full or self._failed:
            self._fail(host)
            return
        self.syncs += 1
        done, self._syncing = self._syncing, []
        for write in done:
            self._keep(write)
        if self._waiting:
            self._begin_sync(host)
        for _, _, then in done:
            if not host.dead:
                host.step(then)  # F17: each is a callback of its own, as in net/host.py

    def _keep(self, write: Write) -> None:
        key, value, _ = write
        self._used.add(key)
        if value is None:
            self._kept.pop(key, None)
        else:
            self._kept[key] = value

    def _fail(self, host: Writer) -> None:
        if not self._failed:
            self._failed = True
            host.emit(StorageFailed("no space left on the lab's disk"))


class LabStorage:
    """One machine's part of a disk."""

    def __init__(self, disk: LabDisk, prefix: str) -> None:
        self._disk = disk
        self._prefix = prefix

    @property
    def fresh(self) -> bool:
        return self._disk.fresh(self._prefix)

    def load(self) -> Mapping[str, bytes]:
        return self._disk.load(self._prefix)

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        self._disk.save((self._prefix + key, value, then))

    def part(self, name: str) -> LabStorage:
        assert "/" not in name
        return LabStorage(self._disk, f"{self._prefix}{name}/")
