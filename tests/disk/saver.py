"""A process that saves and dies, for test_crashes: ``python -m tests.disk.saver kill|full FOLDER SAVES``.

``kill`` forks one life per operation and way to die, and prints one line about each; the last one, whose operation never
comes, ends in good order. ``full`` saves until the kernel lets no file grow any further.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from functools import partial
from pathlib import Path

from holdfast.disk import files
from holdfast.disk.journal import Journal
from holdfast.disk.state_directory import State
from tests.disk.disks import DyingDisk, plan

HOWS = ("before", "during", "after")


def main() -> None:
    what, folder, saves = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if what == "full":
        asyncio.run(fill(folder, saves))
        return
    files.GARBAGE_BYTES_MIN = 150  # so that a short life rewrites its journal
    at, died = 0, True
    while died:
        at += 1
        for how in HOWS:
            died = one_life(folder / f"{at}-{how}", saves, at, how)
            if not died and how == "before":
                break


def one_life(folder: Path, saves: int, at: int, how: str) -> bool:
    """Fork, save, die; True if it was killed."""
    folder.mkdir()
    pid = os.fork()
    if pid == 0:
        asyncio.run(save(folder, saves, DyingDisk(at, how)))
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    if killed or how == "before":
        boot = folder / "boot-used"
        line = {"folder": folder.name, "killed": killed, "boot": int(boot.read_text()) if boot.exists() else 0}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return killed


async def save(folder: Path, saves: int, disk: DyingDisk) -> None:
    state = State.open(folder / "state", wall=lambda: 7.0, disk=disk)
    (folder / "boot-used").write_text(str(state.boot))
    confirmed = os.open(folder / "confirmed", os.O_WRONLY | os.O_CREAT)

    def confirm(count: int) -> None:
        os.pwrite(confirmed, b"%d" % count, 0)

    for i, (key, value) in enumerate(plan(saves)):
        state.journal.save(key, value, partial(confirm, i + 1))
        if i % 3 == 0:
            await state.journal.drain()
            await asyncio.sleep(0)
    await state.journal.drain()
    state.close()


async def fill(folder: Path, saves: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    journal = Journal.open(folder / "journal")
    confirmed, failed = list[int](), list[object]()
    journal.on_failed = failed.append
    for i, (key, value) in enumerate(plan(saves)):
        journal.save(key, value, partial(confirmed.append, i))
        if i % 3 == 0:
            await journal.drain()
            await asyncio.sleep(0)
    journal.close()
    assert confirmed == list(range(len(confirmed)))
    sys.stdout.write(json.dumps({"confirmed": len(confirmed), "failed": len(failed)}))


if __name__ == "__main__":
    main()
