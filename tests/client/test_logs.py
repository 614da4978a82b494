"""The lines of an agent in the log of the program that started it, and of an agent in a terminal.  docs/client.md, docs/agent.md (log)."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client import logs
from holdfast.client.logs import LogReader, handle, wanted_level
from holdfast.client.options import Options, make_plan
from holdfast.wire.keys import generate
from tests.client.spelling import Spelling

DEADLINE = 30.0
AGENT = logging.getLogger("holdfast.agent")


class Kept(logging.Handler):
    """Remembers what came."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, level = Kept(), AGENT.level
    AGENT.addHandler(handler)
    yield handler
    AGENT.removeHandler(handler)
    AGENT.setLevel(level)


def test_a_line_is_a_record(kept: Kept) -> None:
    """Level, words and time are the agent's; its fields are there as they are. What is no line of an agent is passed on."""
    AGENT.setLevel(logging.INFO)
    handle(b'{"at":"2023-11-14T22:13:20.250Z","level":"warning","event":"Failed","member":"a#7","text":"two words"}', 77)
    (record,) = kept.records
    assert (record.name, record.levelno, record.getMessage()) == ("holdfast.agent", logging.WARNING, 'Failed member=a#7 text="two words"')
    assert (record.created, round(record.msecs)) == (1_700_000_000.25, 250)
    assert record.holdfast["member"] == "a#7"  # type: ignore[attr-defined]
    assert record.holdfast["agent_pid"] == 77  # type: ignore[attr-defined]
    for line in (b"", b"no JSON", b"[1]", b"\xff%s", b'{"level":5}', b'{"at":5,"level":"error"}'):
        handle(line, 77)
    assert [each.levelname for each in kept.records[1:]] == ["WARNING"] * 5 + ["ERROR"]
    handle(b'{"level":"debug","event":"noise"}', 77)
    assert len(kept.records) == 7


def test_lines_come_in_any_pieces(kept: Kept) -> None:
    """A pipe has no frames; a line without an end is bounded, and the end of the agent ends the thread."""
    AGENT.setLevel(logging.INFO)
    reading, writing = os.pipe()
    reader = LogReader(reading, 7)
    for piece in (b'{"level":"info",', b'"event":"one"}\n{"level":"info","event":"two"}', b"\n"):
        os.write(writing, piece)
    os.close(writing)
    reader.join(DEADLINE)
    assert [record.getMessage() for record in kept.records] == ["one", "two"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)


@pytest.mark.parametrize("level, wanted", [(logging.DEBUG, "debug"), (logging.INFO, "info"), (25, "warning"), (logging.CRITICAL, "error")])
def test_the_agent_writes_what_is_wanted(kept: Kept, level: int, wanted: str) -> None:
    """An agent that a program starts writes what that program's log lets through, unless a setting says otherwise."""
    AGENT.setLevel(level)
    assert wanted_level() == wanted
    runtime = {"HOLDFAST_RUNTIME_DIR": os.environ["HOLDFAST_RUNTIME_DIR"]}
    settings = make_plan(Options(key=generate()), runtime).settings
    assert settings is not None
    assert settings["log_level"] == wanted
    settings = make_plan(Options(key=generate()), {**runtime, "HOLDFAST_LOG_LEVEL": "info"}).settings
    assert settings is not None
    assert "log_level" not in settings


def test_the_child_logs_into_the_program(client: Spelling, kept: Kept, capfd: pytest.CaptureFixture[str]) -> None:
    """Real processes: every line of the child is a record of its parent, to the last one, and nothing of it is on stderr."""
    AGENT.setLevel(logging.INFO)
    AGENT.propagate = False
    try:
        group = client.join("logged", key=generate(), bind="127.0.0.1:0", preset="local", name="child")
        client.run(group.leave)
    finally:
        AGENT.propagate = True
    told = {record.getMessage().split()[0]: record for record in kept.records}
    assert {"started", "stopped"} <= told.keys()
    assert told["started"].holdfast["name"] == "child"  # type: ignore[attr-defined]
    assert told["started"].holdfast["agent_pid"] == told["started"].holdfast["pid"]  # type: ignore[attr-defined]
    assert capfd.readouterr().err == ""


def test_join_warns_of_unknown_variables(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error in the environment is a warning of the program's log, once per process."""
    monkeypatch.setattr(logs, "_warned", set())
    environ = {"HOLDFAST_RUNTIME_DIR": os.environ["HOLDFAST_RUNTIME_DIR"], "HOLDFAST_LAESE": "1"}
    for _ in range(2):
        make_plan(Options(key=generate()), environ)
    make_plan(Options(agent="/x.sock"), {"HOLDFAST_LAESE": "1"})
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("holdfast", "WARNING")
    assert "did you mean HOLDFAST_LEASE?" in record.getMessage()


@pytest.mark.parametrize("form", ["", "json"], ids=["auto", "on demand"])
def test_an_agent_in_a_terminal(runtime: Path, form: str) -> None:
    """Real process: `holdfast agent` in a terminal prints text, or JSON on demand; an unknown variable is a warning there."""
    theirs, ours = os.openpty()
    environ = {**os.environ, "HOLDFAST_PRESET": "local", "HOLDFAST_BIND": "127.0.0.1:0", "HOLDFAST_LAESE": "1"}
    words = ["agent", *(["--log-format", form] if form else [])]
    agent = subprocess.Popen([sys.executable, "-P", "-m", "holdfast", *words], stdin=ours, stdout=ours, stderr=ours, env=environ)
    os.close(ours)
    seen, end_at = "", time.monotonic() + DEADLINE
    try:
        while "started" not in seen:
            assert time.monotonic() < end_at, seen
            if select.select([theirs], [], [], 0.1)[0]:
                seen += os.read(theirs, 65536).decode()
    finally:
        agent.send_signal(signal.SIGTERM)
        while agent.poll() is None:
            if select.select([theirs], [], [], 0.1)[0]:
                try:
                    os.read(theirs, 65536)
                except OSError:
                    break
        agent.wait()
        os.close(theirs)
    lines = seen.splitlines()
    assert "did you mean HOLDFAST_LEASE?" in lines[0]
    if form:
        assert json.loads(lines[0])["level"] == "warning"
    else:
        assert " WARNING unknown variable text=" in lines[0]
        assert any(" INFO    started " in line for line in lines)


def test_a_command_warns_of_unknown_variables() -> None:
    """Real process: one line on stderr before the command's own, and the exit code is the command's."""
    environ = {**os.environ, "HOLDFAST_AGNET": "/x.sock"}
    ended = subprocess.run([sys.executable, "-P", "-m", "holdfast", "version"], env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert ended.stderr == "holdfast: warning: HOLDFAST_AGNET: is no setting and changes nothing; did you mean HOLDFAST_AGENT?\n"
