"""Crashes at every write point: what was confirmed is there.  Spec: foundation 3 (Storage), F1.

Three kinds of end: kill -9 of a real process at every operation it does on the disk, a power failure after every operation
(which also loses what was written and not synced, and renames whose directory was not), and a disk with no room left.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.disk import files
from holdfast.disk.journal import Journal
from holdfast.disk.state_directory import State
from tests.disk.disks import RememberingDisk, plan, states
from tests.support.realtime import run

SAVES = 24
ROOT = Path(__file__).parents[2]


def child(*args: str) -> str:
    command = [sys.executable, "-m", "tests.disk.saver", *args]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kill_at_every_operation(tmp_path: Path) -> None:
    """Everything confirmed before a kill -9 is there, and what is there is a beginning of what was saved. No kill leaves a journal
    without its beginning, which would be refused as damage."""
    lives = [json.loads(line) for line in child("kill", str(tmp_path), str(SAVES)).splitlines()]
    possible = states(plan(SAVES))
    boots: dict[str, int] = {}
    for life in lives:
        folder = tmp_path / life["folder"]
        confirmed = int((folder / "confirmed").read_text() or 0) if (folder / "confirmed").exists() else 0
        state = State.open(folder / "state", wall=lambda: 0.0)
        held = dict(state.journal.load())
        assert held in possible[confirmed:], f"{life}: {confirmed} were confirmed, and then {held} is left"
        assert state.boot > life["boot"], f"{life}: the boot number {life['boot']} was given out twice"
        boots[life["folder"]] = state.boot
        state.close()
    # Each of: boot file, journal, batches, rewrites; three ways to die at each. Far fewer would mean that nothing was killed.
    assert len(lives) > 60
    assert sum(life["killed"] for life in lives) == len(lives) - 1
    assert len({int((tmp_path / life["folder"] / "confirmed").read_text() or 0) for life in lives if life["boot"]}) > 5


def test_power_failure_after_every_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Confirmed means synced: whatever a power failure takes of the rest, the journal opens and holds all that was confirmed."""
    monkeypatch.setattr(files, "GARBAGE_BYTES_MIN", 150)
    disk, saves = RememberingDisk(), plan(2 * SAVES)
    confirmed_at = list[int]()  # for every save: after which operation it was confirmed

    async def life() -> None:
        opened = Journal.open(tmp_path / "journal", disk)
        for i, (key, value) in enumerate(saves):
            opened.save(key, value, lambda: confirmed_at.append(len(disk.images)))
            if i % 3 == 0:
                await opened.drain()
                await asyncio.sleep(0)
        await opened.drain()
        opened.close()

    run(life())
    possible, checked = states(saves), 0
    for operation, images in enumerate(disk.images, start=1):
        confirmed = sum(at <= operation for at in confirmed_at)
        for image in images:
            checked += 1
            assert opens_to(tmp_path / f"crash-{checked}", image) in possible[confirmed:], f"after operation {operation}"
    assert checked > 150
    assert disk.replaced > 2, "the journal was never rewritten"


def opens_to(folder: Path, image: dict[str, bytes]) -> dict[str, bytes]:
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)
    opened = Journal.open(folder / "journal")
    opened.close()
    return dict(opened.load())


def test_a_disk_without_room(tmp_path: Path) -> None:
    """A real refusal of the kernel in the middle of a write: StorageFailed once, nothing confirmed after it, all before it kept."""
    report = json.loads(child("full", str(tmp_path), "200"))
    assert report["failed"] == 1
    assert 0 < report["confirmed"] < 200
    opened = Journal.open(tmp_path / "journal")
    opened.close()
    assert dict(opened.load()) in states(plan(200))[report["confirmed"] :]
