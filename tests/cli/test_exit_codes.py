"""The table of exit codes in docs/cli.md against what commands really do, as processes: the code, one line, and nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.agents import AgentProcess, Fleet
from tests.tidy.test_install import BLOCK, BROUGHT_BY_TYPER, extras

LIMIT = 60.0  # seconds; only a broken program reaches it

BAD_INPUT = [
    # words, what is told
    ("nothing", "No such command"),
    ("--nothing", "No such option"),
    ("members --colour", "No such option"),
    ("members --status dead", "dead"),
    ("owner", "KEY"),
    ("leader x --wait --timeout -1", "--timeout"),
    ("agent --check --config missing.toml", "missing.toml"),
    ("agent --lease soon", "lease: 'soon'"),
    ("agent --check --zookeeper a:1,a:1", "names a server twice"),
    ("agent --bind nonsense", "bind"),
    ("agent --bind 127.0.0.1:0 --key-file missing", "missing"),
    ("agent --bind 192.0.2.1:0 --seeds 10.0.0.1:1", "key"),
    ("demo --preset moon", "--preset 'moon'"),
    ("keys generate --out", "--out"),
    ("ticket acquire", "POOL"),
    ("lab run nothing", "there is no such scenario or experiment"),
    ("lab run kit/F8 --set draws=0", "draws"),
    ("lab run kit/F8 --on nonsense", "--on nonsense"),
    ("lab sweep detection/omega --seeds x", "--seeds"),
    ("lab replay", "SCENARIO"),
]
NO_AGENT = [
    "members", "watch", "info", "seats", "owner key", "leader", "ticket ls", "ticket acquire gpu:1", "join 127.0.0.1:9", "leave",
    "force-leave x", "tags", "tags set a=b", "keys list", "send a b", "cast a b", "messages",
]  # fmt: skip
NO_EXTRA = [
    ("lab run kit/F8", "lab"),
    ("lab reproduce kit --quick", "lab"),
    ("lab run kit/F8 --on dask:tcp://127.0.0.1:9", "lab"),
    ("lab sweep detection/omega --on dask:tcp://127.0.0.1:9 --out out/sweeps.jsonl", "cluster"),
    ("agent --group x --bind 127.0.0.1:0 --http 127.0.0.1:0 --state-dir state", "http"),
    ("agent --check --http 127.0.0.1:0", "http"),
    ("agent --check --zookeeper zk1:2181", "zookeeper"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, short enough for a socket's path."""
    with TemporaryDirectory(prefix="hf-") as found:
        yield Path(found)


def ended(folder: Path, words: str, *, prelude: str = "", **variables: str) -> tuple[int, str]:
    """The exit code and what is on stderr. ``prelude`` is run before anything else in every Python process."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    own = {"HOLDFAST_RUNTIME_DIR": str(folder / "run"), "XDG_STATE_HOME": str(folder / "state-home"), "COLUMNS": "200"}
    with TemporaryDirectory() as planted:
        Path(planted, "sitecustomize.py").write_text(prelude)
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words.split()],
            cwd=folder,
            env={**environ, **own, "PYTHONPATH": planted, **variables},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    return done.returncode, done.stderr


def refused(folder: Path, words: str, code: int, told: str, *, prelude: str = "", **variables: str) -> str:
    found, err = ended(folder, words, prelude=prelude, **variables)
    assert (found, err.count("\n"), err[:10]) == (code, 1, "holdfast: "), err
    assert told in err
    return err


@pytest.mark.parametrize("words,told", BAD_INPUT, ids=[words for words, _ in BAD_INPUT])
def test_bad_input(folder: Path, words: str, told: str) -> None:
    """docs/cli.md, code 2: the input cannot be used; nothing was changed."""
    refused(folder, words, 2, told)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", NO_AGENT)
def test_no_agent(folder: Path, words: str) -> None:
    """docs/cli.md, code 3: no agent answers."""
    refused(folder, words, 3, "no agent answers", HOLDFAST_AGENT="none.sock")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words,extra", NO_EXTRA, ids=[words for words, _ in NO_EXTRA])
def test_an_extra_that_is_not_installed(folder: Path, words: str, extra: str) -> None:
    """docs/cli.md, code 3: it is named, and nothing is created."""
    prelude = BLOCK.format(names=[*extras(), *BROUGHT_BY_TYPER])
    refused(folder, words, 3, f"pip install '.[{extra}]' in a clone of Holdfast", prelude=prelude)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_port_in_use_names_the_process(folder: Path, kind: socket.SocketKind) -> None:
    """docs/cli.md, code 3: the text says which process has the port, for the agent's own port and for HTTP."""
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        own = f"in use by process {os.getpid()} ("
        refused(folder, f"agent --bind {where} --log-level error", 3, own)
        if kind == socket.SOCK_STREAM:
            refused(folder, f"agent --bind 127.0.0.1:0 --http {where} --log-level error", 3, own)


def test_doctor_without_an_agent(folder: Path) -> None:
    """docs/cli.md, code 1: for `doctor` it is a finding."""
    assert ended(folder, "doctor", HOLDFAST_AGENT="none.sock")[0] == 1


def test_a_directory_that_cannot_be_used(folder: Path) -> None:
    """docs/cli.md, code 3: a state directory that is a file."""
    (folder / "file").write_text("")
    refused(folder, "agent --bind 127.0.0.1:0 --state-dir file", 3, "file")


def test_not_done_in_time(folder: Path) -> None:
    """docs/cli.md, code 4: it was not done in the time that was given; also by an agent that does not answer."""
    with Fleet(folder) as fleet:
        agent: AgentProcess = fleet.start(group="late", preset="local")
        refused(folder, f"leader nobody --wait --timeout 0.2 --agent {agent.socket}", 4, "nobody")
        assert ended(folder, f"leave --stay --agent {agent.socket}")[0] == 0
        refused(folder, f"join 127.0.0.1:9 --timeout 0.2 --agent {agent.socket}", 4, "")
        os.kill(agent.pid, signal.SIGSTOP)
        try:
            refused(folder, f"members --agent {agent.socket}", 4, "no answer")
        finally:
            os.kill(agent.pid, signal.SIGCONT)
