"""Long work shows progress: a bar on a terminal, plain lines elsewhere, never on stdout."""

from __future__ import annotations

import importlib
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.cli.progress import progress
from tests.lab.paths import environment

module = importlib.import_module("holdfast.cli.progress")
OWN = Path(__file__).parents[1] / "lab" / "own_scenario.py"


def test_plain_lines_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a terminal: a first line although nothing is finished yet, with what is expected; later ones go by the pace."""
    monkeypatch.setattr(module, "FIRST_AFTER", 0.01)
    monkeypatch.setattr(module, "LINE_INTERVAL", 0.01)
    seen = ""
    with progress("work", 100, expected=600.0) as advance:
        while "work: 0 of 100, 1 s so far, about 10 min left\n" not in seen:
            time.sleep(0.01)
            seen += capsys.readouterr().err
        advance(100)
        while "work: 100 of 100, " not in seen:
            time.sleep(0.01)
            captured = capsys.readouterr()
            seen += captured.err
            assert captured.out == ""


@pytest.mark.parametrize(
    "count, spent, expected, said",
    [
        (0, 2.0, None, ""),
        (0, 2.0, 62.0, "about 60 s left"),
        (0, 90.0, 62.0, "expected within 62 s"),
        (10, 60.0, 5.0, "about 9 min left"),
        (50, 7200.0, 5.0, "about 2.0 h left"),
        (100, 60.0, 5.0, ""),
    ],
)
def test_what_is_left(count: int, spent: float, expected: float | None, said: str) -> None:
    """Before anything is finished by what is known, then by the pace of what is."""
    assert module._left(count, 100, spent, expected) == said


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """What is over in a moment needs no line."""
    with progress("work", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_without_rich_gets_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``lab`` extra is optional here too."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(module, "FIRST_AFTER", 0.01)
    seen = ""
    with progress("work", 3):
        while "work: 0 of 3, " not in seen:
            time.sleep(0.01)
            seen += capsys.readouterr().err
    assert "\x1b" not in seen  # lines, and no bar


def on_a_terminal(*words: str) -> tuple[int, str, str]:
    """A command whose stderr (and stdout, for the demo) is a real terminal: exit code, stdout, what the terminal saw."""
    master, slave = pty.openpty()
    colourful = environment(TERM="xterm-256color", COLUMNS="120")
    colourful.pop("NO_COLOR", None)
    out = slave if words[1] == "demo" else subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-m", "holdfast", *words], stdout=out, stderr=slave, env=colourful)
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # Linux says so when the last writer is gone.
            break
        if not data:
            break
        seen += data
    os.close(master)
    stdout = child.communicate(timeout=60)[0] or b""
    return child.returncode, stdout.decode(), seen.decode("utf-8", "replace")


def test_a_bar_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal a bar that moves; stdout stays clean for whoever reads it."""
    code, out, seen = on_a_terminal("lab", "sweep", str(OWN), "--seeds", "40", "--out", str(tmp_path / "r.jsonl"), "--json")
    assert code == 1
    assert out.startswith("{")
    assert "own_scenario.py" in seen
    assert "%" in seen
    assert "\x1b[" in seen


def test_the_demo_plays_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal the timeline runs: frames in colour, then the summary."""
    code, _, seen = on_a_terminal("lab", "demo", "--speed", "60", "--out", str(tmp_path))
    assert code == 0
    assert seen.count("virtual seconds") > 3
    assert "\x1b[" in seen
    assert "Everything happened as promised." in seen
