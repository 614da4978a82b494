"""What a life told its clients, as the next one finds it.  Spec: foundation F6, F14; decisions H78, H161."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agent.life import home as homes
from holdfast.agent.life.home import LEFT_FILE, Home
from holdfast.agent.life.told import Told, this_clock
from holdfast.config import Config
from holdfast.net import clock

CLOCK = b"c" * 16


def open_home(folder: Path) -> Home:
    return Home.open(
        Config(group="g", name="a", bind="127.0.0.1:0", key="", insecure=True, state_dir=str(folder / "state"), socket=str(folder / "s")),
        {},
    )


def test_what_was_told_is_there_for_the_next_life(tmp_path: Path) -> None:
    """F14: the instant is in the file when ``note`` returns, whatever happens to the process after that."""
    told = Told(tmp_path / "told", CLOCK)
    assert told.until is None
    told.begin(5.0)
    assert told.note(12.5)
    assert Told(tmp_path / "told", CLOCK).until == 12.5


def test_an_earlier_end_changes_nothing(tmp_path: Path) -> None:
    """F14: of several clients the one that may act longest counts."""
    told = Told(tmp_path / "told", CLOCK)
    told.begin(0.0)
    assert told.note(12.5)
    assert told.note(11.0)
    assert Told(tmp_path / "told", CLOCK).until == 12.5


@pytest.mark.parametrize("content", [b"", b"x", b"d" * 16 + bytes(8), CLOCK + b"\x00\x00\x00\x00\x00\x00\xf0\x7f", CLOCK + b"\xff" * 8])
def test_a_file_of_another_clock_says_nothing(tmp_path: Path, content: bytes) -> None:
    """H161: another start of the machine, a damaged file, infinity, no number: then the longest wait counts."""
    (tmp_path / "told").write_bytes(content)
    assert Told(tmp_path / "told", CLOCK).until is None


def test_what_cannot_be_written_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H161: if the disk takes neither the instant nor the end of the file, the client is told nothing."""
    told = Told(tmp_path / "told", CLOCK)
    told.begin(0.0)

    def refuse(*args: object) -> int:
        raise OSError("no room")

    monkeypatch.setattr("os.pwrite", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    assert not told.note(1.0)
    monkeypatch.undo()
    monkeypatch.setattr("os.pwrite", refuse)
    assert told.note(1.0), "without the file the next life waits for the longest time, so clients may be told"
    assert not (tmp_path / "told").exists()


def test_a_life_that_told_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """H161, F6: after a crash the next life knocks when what was told has ended; nothing was."""
    if this_clock() is None:
        pytest.skip("this machine does not say which clock it has")
    open_home(tmp_path).close()  # no goodbye: a crash
    home = open_home(tmp_path)
    assert home.wait == 0.0
    assert home.note_told(clock.now() + 0.4)
    home.close()
    after = open_home(tmp_path)
    assert 0.0 < after.wait <= 0.4
    after.close()


def test_a_release_that_does_not_write_it_down_is_waited_for(tmp_path: Path) -> None:
    """H161: a former life of an older release wrote only for how long it may have told clients; an older file beside it says nothing."""
    open_home(tmp_path).close()
    (tmp_path / "state" / LEFT_FILE).write_bytes(b"0.511000\n")
    home = open_home(tmp_path)
    assert home.wait == pytest.approx(0.511)
    home.close()
    assert homes.EXACTLY_BYTES in (tmp_path / "state" / LEFT_FILE).read_bytes()
