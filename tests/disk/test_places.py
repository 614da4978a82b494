"""Files that others could change: refused, or used with a warning.  docs/security.md, "State on disk"; docs/decisions.md H176."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.agent.life.home import Home
from holdfast.agent.life.machine_lock import MachineLock
from holdfast.config import load
from holdfast.disk.places import check_folder, check_state
from holdfast.disk.state_directory import State
from holdfast.errors import KeyUnusable, StorageError
from holdfast.wire.keys import exposure, generate, load_key

OTHER_USER = 12_345
Foreign = Callable[[Path], None]


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Foreign:
    """Make a file another user's. Only root can give it away; for others, this process becomes somebody else."""

    def give(path: Path) -> None:
        if os.getuid() == 0:
            os.chown(path, OTHER_USER, -1, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "getuid", lambda: OTHER_USER)
            monkeypatch.setattr("holdfast.wire.keys.getuid", lambda: OTHER_USER)

    return give


def begun(path: Path) -> Path:
    """A state directory that led a life."""
    State.open(path).close()
    return path


def test_a_directory_that_was_made_here_is_fine(tmp_path: Path) -> None:
    """Made with mode 0700, its files with 0600: nobody else may write."""
    state = State.open(begun(tmp_path / "state"))
    assert state.warnings == ()
    state.close()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    """Whoever may write there decides what this agent promised; a sticky bit does not help against a file that is not there yet."""
    path = begun(tmp_path / "state")
    for mode in (0o777, 0o702, 0o1777):
        path.chmod(mode)
        with pytest.raises(StorageError, match=r"state.*every user may write to it; chmod o-w"):
            State.open(path)
    path.chmod(0o755)
    State.open(path).close()


def test_a_directory_of_another_user_is_refused(tmp_path: Path, foreign: Foreign) -> None:
    """Its owner could put back an older journal, or another agent's."""
    path = begun(tmp_path / "state")
    foreign(path)
    with pytest.raises(StorageError, match=r"it belongs to user \d+; chown it, or set state_dir"):
        State.open(path)


def test_a_directory_that_a_group_may_write_to_is_a_warning(tmp_path: Path) -> None:
    """Volumes that are mounted for a group (Kubernetes fsGroup) are so, and the agent has no other place there."""
    path = begun(tmp_path / "state")
    path.chmod(0o2770)
    state = State.open(path)
    assert [f"group {path.stat().st_gid} may write to it" in each for each in state.warnings] == [True]
    state.close()


@pytest.mark.parametrize("name", ["journal", "boot", "lock", "keyring", "boot.new", "anything"])
def test_a_symlink_in_it_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing is read or written through it, and what it leads to stays as it was."""
    path, target = begun(tmp_path / "state"), tmp_path / "target"
    target.write_bytes(b"precious")
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(target)
    with pytest.raises(StorageError, match=f"{name} in it is a symlink"):
        State.open(path)
    assert target.read_bytes() == b"precious"


def test_a_directory_that_is_reached_by_a_symlink_is_fine(tmp_path: Path) -> None:
    """Whoever named it named that too; what is checked is where it leads."""
    begun(tmp_path / "disk")
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    State.open(tmp_path / "state").close()
    (tmp_path / "disk").chmod(0o777)
    with pytest.raises(StorageError, match="every user may write"):
        State.open(tmp_path / "state")


@pytest.mark.parametrize("name", ["journal", "boot", "lock"])
def test_a_file_in_it_that_others_may_change_is_refused(tmp_path: Path, name: str, foreign: Foreign) -> None:
    """A directory that was open once may hold such files still."""
    path = begun(tmp_path / "state")
    (path / name).chmod(0o666)
    with pytest.raises(StorageError, match=f"{name} .*every user may write"):
        State.open(path)
    (path / name).chmod(0o660)
    assert [name in each for each in check_state(path)] == [True]
    (path / name).chmod(0o600)
    foreign(path / name)
    with pytest.raises(StorageError, match="belongs to user"):
        State.open(path)


def test_key_files(tmp_path: Path, foreign: Foreign) -> None:
    """Others may write: refused. Others may read, the group may write, or it is another user's: used with a warning."""
    file = tmp_path / "key"
    file.write_text(generate())
    for mode, text in ((0o600, None), (0o440, None), (0o644, "other users"), (0o620, "group"), (0o664, "other users")):
        file.chmod(mode)
        load_key(file)
        warning = exposure(file)
        assert (warning is None) if text is None else (warning is not None and text in warning)
    file.chmod(0o602)
    with pytest.raises(KeyUnusable, match="every user may write to it"):
        load_key(file)
    file.chmod(0o600)
    foreign(file)
    assert "belongs to user" in (exposure(file) or "")


def test_the_folder_of_a_socket(tmp_path: Path, foreign: Foreign) -> None:
    """Whoever may replace the socket can answer for the agent: a warning, since somebody named it. /tmp has the sticky bit for this."""
    assert check_folder(tmp_path) == ()
    tmp_path.chmod(0o777)
    assert ["every user may write to it" in each for each in check_folder(tmp_path)] == [True]
    tmp_path.chmod(0o1777)
    assert check_folder(tmp_path) == ()
    tmp_path.chmod(0o700)
    assert check_folder(tmp_path / "not-there") == ()
    foreign(tmp_path)
    assert ["belongs to user" in each for each in check_folder(tmp_path)] == [True]


def test_the_lock_of_the_machine_is_no_symlink(tmp_path: Path) -> None:
    """F12: it would be written through."""
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "group.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(StorageError, match="cannot lock"):
        MachineLock.take(tmp_path / "group.lock", "s")
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_all_warnings_of_one_agent(tmp_path: Path) -> None:
    """What an agent says when it starts: its key, its state directory, the folder of its socket."""
    key, state, folder = tmp_path / "key", begun(tmp_path / "state"), tmp_path / "sockets"
    key.write_text(generate())
    key.chmod(0o644)
    state.chmod(0o770)
    folder.mkdir()
    folder.chmod(0o777)
    settings = {"name": "a", "key_file": str(key), "state_dir": str(state), "socket": str(folder / "s"), "bind": "127.0.0.1:0"}
    home = Home.open(load(None, {}, settings), {"HOLDFAST_RUNTIME_DIR": str(tmp_path / "run")})
    try:
        assert [text.split(":")[0].split()[0] for text in home.warnings] == ["key", str(state), "the"]
    finally:
        home.close()
