"""The state directory: one process at a time, a boot number per life.  Spec: foundation F1, F6."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.disk.state_directory import State
from holdfast.errors import StorageDamaged, StorageError, StorageLocked

HOLDER = """
import sys
from pathlib import Path
from holdfast.disk.state_directory import State
state = State.open(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def life(path: Path, wall: float) -> int:
    state = State.open(path, wall=lambda: wall)
    state.close()
    return state.boot


def test_boot_grows_with_every_life_also_when_the_wall_clock_goes_back(tmp_path: Path) -> None:
    """F1: boot = max(stored + 1, wall-clock ms)."""
    path = tmp_path / "state"
    assert life(path, wall=1000.0) == 1_000_000
    assert life(path, wall=1000.0) == 1_000_001
    assert life(path, wall=900.0) == 1_000_002
    assert life(path, wall=2000.0) == 2_000_000


def test_the_directory_belongs_to_its_user(tmp_path: Path) -> None:
    """Safe by default: created 0700, and what is in it is for its owner alone."""
    path = tmp_path / "a" / "b" / "state"
    life(path, wall=1.0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """F6: the lock is exclusive, and the kernel gives it up with the process, also after kill -9."""
    path = tmp_path / "state"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        boot = (path / "boot").read_bytes()
        with pytest.raises(StorageLocked, match=f"in use by process {holder.pid}"):
            State.open(path)
        assert (path / "boot").read_bytes() == boot, "a life that never began used up a boot number"
        holder.kill()
        holder.wait()
        State.open(path).close()


def test_two_lives_in_one_process_are_two_lives(tmp_path: Path) -> None:
    """F6: the lock belongs to the open state, not to the process."""
    state = State.open(tmp_path / "state")
    with pytest.raises(StorageLocked, match=f"process {os.getpid()}"):
        State.open(tmp_path / "state")
    state.close()


def test_a_damaged_boot_number_is_refused(tmp_path: Path) -> None:
    """A damaged state file names itself; nothing is overwritten and nothing is guessed."""
    path = tmp_path / "state"
    life(path, wall=1000.0)
    for wrong in (b"", b"1000000\n", b"2000000 00000000\n", b"\0" * 17):
        (path / "boot").write_bytes(wrong)
        with pytest.raises(StorageDamaged, match=f"{path / 'boot'} is damaged at offset 0"):
            State.open(path)
        assert (path / "boot").read_bytes() == wrong


@pytest.mark.parametrize("damaged", [b"not a journal at all", b"", bytes(100), b"holdfast"], ids=["other", "empty", "zeros", "cut"])
def test_a_damaged_journal_leaves_everything_as_it_was(tmp_path: Path, damaged: bytes) -> None:
    """Bad input overwrites nothing: not even the boot number of the life that could not begin."""
    State.open(tmp_path).close()
    (tmp_path / "journal").write_bytes(damaged)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name != "lock"}
    with pytest.raises(StorageDamaged):
        State.open(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name != "lock"} == before


def test_a_journal_without_a_boot_number_is_refused(tmp_path: Path) -> None:
    """F1: the boot number is stored before the first journal, so its absence means that somebody removed it."""
    path = tmp_path / "state"
    life(path, wall=1000.0)
    (path / "boot").unlink()
    with pytest.raises(StorageDamaged, match="boot is missing beside a journal"):
        State.open(path)


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """One clear line for what only the user can mend."""
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(StorageError, match=f"cannot use the state directory {path}"):
            State.open(path)
    # A refused opening leaves no lock behind.
    assert life(tmp_path / "state", wall=1.0) == 1000
