"""The lock file that the state directory, the local socket and the one agent of a machine are guarded by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.disk.lock import HOLDER_BYTES_MAX, LockTaken, own_pid, pid_of, take


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_one_at_a_time(tmp_path: Path) -> None:
    """F6, F12: the lock is exclusive, says what its holder wrote, and is free when its descriptor is closed."""
    first = take(tmp_path / "lock", b"first")
    before = descriptors()
    with pytest.raises(LockTaken) as taken:
        take(tmp_path / "lock", b"second")
    assert taken.value.holder == b"first"
    assert descriptors() == before
    os.close(first)
    second = take(str(tmp_path / "lock"), b"2")
    assert (tmp_path / "lock").read_bytes() == b"2"  # nothing is left of a longer text
    os.close(second)
    assert (tmp_path / "lock").exists()


def test_what_is_read_of_a_holder_is_bounded(tmp_path: Path) -> None:
    """F12: what is in the file is for the text of an error: any file may be there, and any text of a holder is one."""
    lock = take(tmp_path / "lock", b"7" * 4000)
    with pytest.raises(LockTaken) as taken:
        take(tmp_path / "lock", own_pid())
    assert taken.value.holder == b"7" * HOLDER_BYTES_MAX
    os.close(lock)
    assert pid_of(own_pid()) == str(os.getpid())
    assert pid_of(b"") == "unknown"
    assert pid_of(b"\xff 12" + b"3" * 100) == "\ufffd 12" + "3" * 16


def test_there_is_none_through_a_symlink(tmp_path: Path) -> None:
    """F12: it would be written through."""
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        take(tmp_path / "lock", own_pid())
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_a_lock_that_cannot_be_written_is_given_up() -> None:
    """F6: a process that could not take it as a whole holds nothing. A device has a lock, and no length."""
    before = descriptors()
    with pytest.raises(OSError, match="Invalid argument"):
        take("/dev/full", own_pid())
    assert descriptors() == before
