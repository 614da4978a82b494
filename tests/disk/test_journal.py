"""The journal as a Storage: order, one sync for many, parts, failures.  Spec: foundation 3 (Storage)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from holdfast.disk import files, journal
from holdfast.disk.files import MAGIC
from holdfast.disk.journal import Journal
from holdfast.errors import StorageDamaged, StorageError
from holdfast.events import StorageFailed
from holdfast.host import Storage
from tests.disk.disks import CountingDisk, FailingDisk
from tests.support.realtime import eventually, run


def nothing() -> None:
    """What a save that nobody waits for completes with."""


def save_all(path: Path, *saves: tuple[str, bytes | None], disk: files.Disk | None = None) -> None:
    """One life that saves all this and ends in good order."""

    async def life() -> None:
        opened = Journal.open(path, disk)
        for key, value in saves:
            opened.save(key, value, nothing)
        await opened.drain()
        opened.close()

    run(life())


def reopened(path: Path) -> dict[str, bytes]:
    opened = Journal.open(path)
    opened.close()
    return dict(opened.load())


def test_the_next_life_loads_what_was_saved(tmp_path: Path) -> None:
    """Storage.load: everything confirmed before; a delete is a save like any other."""
    save_all(tmp_path / "j", ("a", b"1"), ("b", b"2"), ("a", b"3"), ("b", None), ("empty", b""))
    assert reopened(tmp_path / "j") == {"a": b"3", "empty": b""}


def test_completions_run_in_call_order_and_many_share_a_sync(tmp_path: Path) -> None:
    """Storage.save: completes in call order, many per sync."""

    async def life() -> None:
        disk = CountingDisk()
        opened = Journal.open(tmp_path / "j", disk)
        before, done = disk.syncs, list[int]()
        disk.gate.clear()
        opened.save("k", b"first", lambda: done.append(0))
        await eventually(lambda: opened._busy and not opened._pending)
        for i in range(1, 500):
            opened.save(f"k{i}", b"v", partial(done.append, i))
        assert done == []
        disk.gate.set()
        await opened.drain()
        await asyncio.sleep(0)
        assert done == list(range(500))
        assert disk.syncs - before == 2
        opened.close()

    run(life())


def test_nothing_completes_before_its_sync_and_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    """Storage never blocks the loop; ``then`` means durable."""

    async def life() -> None:
        disk = CountingDisk()
        opened = Journal.open(tmp_path / "j", disk)
        disk.gate.clear()
        done = list[str]()
        opened.save("k", b"v", lambda: done.append("k"))
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert done == []
        assert opened.load() == {}
        disk.gate.set()
        await eventually(lambda: done == ["k"])
        assert opened.load() == {"k": b"v"}
        opened.close()

    run(life())


def test_parts_have_keys_of_their_own(tmp_path: Path) -> None:
    """Storage.part: own keys, own ``fresh``; the whole sees them by their full names, as in the lab."""

    async def life() -> None:
        opened = Journal.open(tmp_path / "j")
        seats: Storage = opened.part("seats")
        assert (seats.fresh, opened.fresh) == (True, True)
        seats.save("k", b"1", nothing)
        seats.part("era").save("k", b"2", nothing)
        await opened.drain()
        assert (seats.fresh, opened.fresh, opened.part("tickets").fresh) == (False, False, True)
        assert seats.part("era").load() == {"k": b"2"}
        assert opened.part("seat").load() == {}
        opened.close()

    run(life())
    assert reopened(tmp_path / "j") == {"seats/k": b"1", "seats/era/k": b"2"}


def test_fresh_survives_deletes_and_rewrites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage.fresh: nothing was *ever* saved under this name (F13 rests on it)."""
    monkeypatch.setattr(files, "GARBAGE_BYTES_MIN", 100)
    save_all(tmp_path / "j", ("seats/k", b"1"), ("seats/k", None))
    save_all(tmp_path / "j", *(("x", b"%d" % i) for i in range(50)), ("x", None))
    save_all(tmp_path / "j", ("y", b"y"))
    assert (tmp_path / "j").stat().st_size < 200, "it was never rewritten"
    opened = Journal.open(tmp_path / "j")
    assert not opened.part("seats").fresh
    assert opened.part("tickets").fresh
    opened.close()


def test_a_rewrite_keeps_the_content_and_drops_the_garbage(tmp_path: Path) -> None:
    """Compaction when garbage is more than half and more than 64 KiB: the file stays within three times its content."""

    async def life() -> None:
        disk = CountingDisk()
        opened = Journal.open(tmp_path / "j", disk)
        largest = 0
        for i in range(400):
            opened.save(f"k{i % 10}", b"%d" % i * 400, nothing)
            await opened.drain()
            largest = max(largest, (tmp_path / "j").stat().st_size)
        live = sum(len(value) for value in opened.load().values())
        assert largest < 2 * (live + 20 * 1024) + files.GARBAGE_BYTES_MIN
        opened.close()

    run(life())
    assert reopened(tmp_path / "j") == {f"k{i % 10}": b"%d" % i * 400 for i in range(390, 400)}


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_tail_is_cut_off_and_written_over(tmp_path: Path, cut: int) -> None:
    """An incomplete last record was never confirmed; what follows the next life's saves must be readable again."""
    path = tmp_path / "j"
    save_all(path, ("a", b"1"))
    intact = path.stat().st_size
    save_all(path, ("b", b"2" * 20))
    data = path.read_bytes()
    path.write_bytes(data[: max(intact, len(data) - cut)])
    save_all(path, ("c", b"3"))
    assert reopened(path) == {"a": b"1", "c": b"3"}


def test_damage_is_refused_by_name_and_nothing_is_overwritten(tmp_path: Path) -> None:
    """A damaged state file: one clear line with file and offset, nothing overwritten."""
    path = tmp_path / "j"
    save_all(path, ("a", b"1"))
    save_all(path, ("b", b"2"))
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0x10
    path.write_bytes(damaged)
    with pytest.raises(StorageDamaged, match=rf"{path} is damaged: .* at offset \d+"):
        Journal.open(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("left", [b"", b"hold", MAGIC[:-1], bytes(len(MAGIC)), bytes(500)], ids=["empty", "4", "18", "zeros", "more zeros"])
def test_a_journal_that_lost_its_beginning_is_not_fresh(tmp_path: Path, left: bytes) -> None:
    """F13 rests on ``fresh``: a file that is there and says nothing has forgotten what was promised. Nothing is overwritten,
    and an unfinished rewrite beside it stays too: it may be the copy that somebody needs."""
    path = tmp_path / "j"
    save_all(path, ("seats/k", b"promised"))
    path.write_bytes(left)
    (tmp_path / "j.new").write_bytes(b"a rewrite")
    with pytest.raises(StorageDamaged, match=rf"{path} is damaged: .* at offset 0"):
        Journal.open(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"j": left, "j.new": b"a rewrite"}


def test_a_journal_that_cannot_be_read_is_an_error_of_one_line(tmp_path: Path) -> None:
    """An unusable state directory: no traceback of an OSError, but a line that names the file."""
    (tmp_path / "j").mkdir()
    with pytest.raises(StorageError, match=r"cannot use the journal .*: Is a directory"):
        Journal.open(tmp_path / "j")


def fail_full(disk: FailingDisk) -> None:
    disk.full = True


def fail_broken(disk: FailingDisk) -> None:
    disk.broken = True


@pytest.mark.parametrize("fail", [fail_full, fail_broken])
def test_a_failed_disk_confirms_nothing_more_and_says_so_once(tmp_path: Path, fail: Callable[[FailingDisk], None]) -> None:
    """Storage.save: a failed disk never calls ``then``; StorageFailed once, then silence, also when the disk recovers."""

    async def life() -> None:
        disk, done, told = FailingDisk(), list[str](), list[StorageFailed]()
        opened = Journal.open(tmp_path / "j", disk)
        opened.on_failed = told.append
        opened.save("kept", b"1", lambda: done.append("kept"))
        await opened.drain()
        fail(disk)
        opened.save("lost", b"2", lambda: done.append("lost"))
        opened.save("lost too", b"2", lambda: done.append("lost too"))
        await eventually(lambda: told)
        disk.full = disk.broken = False
        opened.save("later", b"3", lambda: done.append("later"))
        await opened.drain()
        await asyncio.sleep(0.02)
        assert done == ["kept"]
        assert len(told) == 1
        assert str(tmp_path / "j") in told[0].why
        opened.close()

    run(life())
    kept = reopened(tmp_path / "j")
    assert kept["kept"] == b"1"
    assert "later" not in kept


def test_a_disk_that_falls_behind_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every queue has a limit; dropping one save and confirming the next would be worse than silence."""
    monkeypatch.setattr(journal, "PENDING_SAVES_MAX", 10)

    async def life() -> None:
        disk, done, told = CountingDisk(), list[int](), list[StorageFailed]()
        opened = Journal.open(tmp_path / "j", disk)
        opened.on_failed = told.append
        disk.gate.clear()
        opened.save("first", b"", lambda: done.append(-1))
        await eventually(lambda: not opened._pending)
        for i in range(20):
            opened.save(f"k{i}", b"", partial(done.append, i))
        assert [event.why for event in told] == ["the disk is 11 saves (23 bytes) behind"]
        before = disk.syncs
        disk.gate.set()
        await eventually(lambda: disk.syncs > before)
        await asyncio.sleep(0.02)
        assert done == []
        opened.close()

    run(life())


def test_what_is_pending_at_close_never_completes(tmp_path: Path) -> None:
    """close() confirms nothing by itself: only a sync does."""

    async def life() -> None:
        opened, done = Journal.open(tmp_path / "j"), list[str]()
        opened.save("k", b"v", lambda: done.append("k"))
        opened.close()
        await asyncio.sleep(0.02)
        assert done == []

    run(life())
