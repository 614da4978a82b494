"""``holdfast lab node``: real processes on real sockets, and every fault that bad input or a bad machine brings."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.demo.fleet import free_ports
from holdfast.disk.state_directory import State
from holdfast.wire.keys import generate
from tests.cli.command import Run

DEADLINE = 30.0
INTERVAL = 0.2  # seconds between two OKs; a takeover takes three of them and what a busy machine adds


class Process:
    """One node and the events it printed so far."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-m", "holdfast", "lab", "node", *map(str, words)]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.events: list[dict[str, Any]] = []
        self.errors = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.events.append(json.loads(line))

    def wait_for(self, what: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            for event in list(self.events):
                if what(event):
                    return event
            assert self.child.poll() is None, self.end()
            time.sleep(0.02)
        raise AssertionError(f"it did not happen; seen: {self.events}")

    def end(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """Exit code and stderr."""
        if number is not None and self.child.poll() is None:
            self.child.send_signal(number)
        code = self.child.wait(DEADLINE)
        self._reader.join(DEADLINE)
        assert self.child.stdout is not None
        assert self.child.stderr is not None
        if not self.child.stderr.closed:
            self.errors = self.child.stderr.read()
        self.child.stdout.close()
        self.child.stderr.close()
        return code, self.errors


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts nodes, and ends those that a failing test left behind."""
    started: list[Process] = []

    def begin(*words: object) -> Process:
        started.append(Process(*words))
        return started[-1]

    yield begin
    for process in started:
        process.end(signal.SIGKILL)


def leader_is(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["event"] == "LeaderChanged" and str(event["leader"]).startswith(f"{name}#")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(generate())
    path.chmod(0o600)
    return path


def test_three_sealed_nodes_elect_and_take_over(start: Start, key_file: Path, tmp_path: Path) -> None:
    """Omega on real sockets: a leads; after kill -9 of a, b leads; a returns under a higher boot and takes nothing away."""
    ports = dict(zip("abc", free_ports(3), strict=True))
    peers = ",".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items())

    def node(name: str) -> Process:
        words = ("--name", name, "--bind", f"127.0.0.1:{ports[name]}", "--peers", peers, "--key-file", key_file)
        return start(*words, "--state-dir", tmp_path / name, "--interval", INTERVAL, "--group", "test")

    nodes = {name: node(name) for name in "abc"}
    for process in nodes.values():
        process.wait_for(leader_is("a"))
    boot = nodes["a"].events[0]["node"]
    assert nodes["a"].end(signal.SIGKILL)[0] == -signal.SIGKILL
    for name in "bc":
        nodes[name].wait_for(leader_is("b"))
    again = node("a")
    again.wait_for(leader_is("b"))
    assert int(again.events[0]["node"].partition("#")[2]) > int(boot.partition("#")[2])
    for process in (nodes["b"], nodes["c"], again):
        code, errors = process.end(signal.SIGTERM)
        assert (code, errors) == (0, "")
        assert process.events[-1]["event"] == "Stopped"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_in_good_order(start: Start, number: signal.Signals) -> None:
    """SIGTERM (and Ctrl-C) end it with exit code 0; the last line says so."""
    process = start("--name", "a", "--bind", "127.0.0.1:0", "--insecure", "--interval", INTERVAL)
    started = process.wait_for(lambda event: event["event"] == "Started")
    assert started["address"].startswith("127.0.0.1:")
    assert started["members"] == ["a"]
    assert isinstance(started["seed"], int)
    process.wait_for(leader_is("a"))
    assert process.end(number) == (0, "")
    assert process.events[-1]["event"] == "Stopped"


def test_it_ends_when_nobody_reads_it(start: Start) -> None:
    """A reader that goes away ends the node without a traceback."""
    command = [sys.executable, "-m", "holdfast", "lab", "node", "--name", "a", "--bind", "127.0.0.1:0", "--insecure", "--interval", "0.2"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(DEADLINE) == 0
    with child.stderr:
        assert child.stderr.read() == ""


NODE = ("lab", "node", "--name", "a")
LOCAL = (*NODE, "--bind", "127.0.0.1:0")


@pytest.mark.parametrize(
    "words,told",
    [
        ((*LOCAL,), ["no key", "--key-file FILE", "--insecure"]),
        ((*LOCAL, "--key-file", "none"), ["key file none", "No such file"]),
        ((*LOCAL, "--key-file", "bad"), ["key file bad", "accepted"]),
        ((*LOCAL, "--key-file", "."), ["key file", "directory"]),
        ((*LOCAL, "--insecure", "--key-file", "bad"), ["give one of the two"]),
        ((*NODE, "--bind", "0.0.0.0:0", "--insecure"), ["--insecure with 0.0.0.0", "loopback"]),
        ((*LOCAL, "--insecure", "--peers", "b=10.0.0.1:1"), ["--insecure with 10.0.0.1:1", "loopback"]),
        ((*NODE, "--bind", "nowhere.invalid:1", "--insecure"), ["--bind: cannot resolve nowhere.invalid:1"]),
        ((*LOCAL, "--insecure", "--peers", "b=nowhere.invalid:1"), ["--peers b: cannot resolve nowhere.invalid:1"]),
        ((*NODE, "--bind", "127.0.0.1", "--insecure"), ["'127.0.0.1'", "accepted are"]),
        ((*NODE, "--bind", "127.0.0.1:99999", "--insecure"), ["between 0 and 65535"]),
        ((*LOCAL, "--insecure", "--peers", "b"), ["--peers: 'b' has no address", "a=HOST:PORT"]),
        ((*LOCAL, "--insecure", "--peers", "b=127.0.0.1:1,b=127.0.0.1:2"), ["'b' is listed twice"]),
        ((*LOCAL, "--insecure", "--peers", ",".join(f"n{i}=127.0.0.1:{i + 1}" for i in range(65))), ["65 members", "up to 64"]),
        ((*LOCAL, "--insecure", "--interval", "0"), ["--interval 0: accepted are 0.01 to 60"]),
        ((*LOCAL, "--insecure", "--group", "x" * 65), ["group", "1 to 64 bytes"]),
        (("lab", "node", "--name", "a=b", "--bind", "127.0.0.1:0", "--insecure"), ["--name 'a=b'", "without = and ,"]),
        (("lab", "node", "--name", "", "--bind", "127.0.0.1:0", "--insecure"), ["--name ''"]),
    ],
)
def test_bad_input(holdfast: Run, tmp_path: Path, words: tuple[str, ...], told: list[str]) -> None:
    """Bad input: one clear line that names the flag, exit 2, and the state directory is not even made."""
    (tmp_path / "bad").write_text("not a key")
    holdfast(*words, "--state-dir", "state").refused(2, *told)
    assert not (tmp_path / "state").exists()


def test_a_key_file_that_everybody_may_write_to(holdfast: Run, key_file: Path) -> None:
    """Bad input: such a key is no secret."""
    key_file.chmod(0o666)
    holdfast(*LOCAL, "--key-file", key_file).refused(2, "every user may write to it")


def test_a_readable_key_is_warned_about(start: Start, key_file: Path) -> None:
    """A key that others can read is a warning: containers mount them so."""
    key_file.chmod(0o644)
    process = start("--name", "a", "--bind", "127.0.0.1:0", "--key-file", key_file)
    process.wait_for(lambda event: event["event"] == "Started")
    code, errors = process.end(signal.SIGTERM)
    assert code == 0
    assert errors == f"holdfast: key file {key_file}: other users of this machine can read it; chmod 600 it\n"


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_port_in_use(holdfast: Run, kind: socket.SocketKind) -> None:
    """The machine: a port that is taken, for UDP or for TCP, is one clear line and exit 3."""
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        holdfast(*NODE, "--bind", address, "--insecure").refused(3, f"--bind: cannot listen on {address}", "in use")


def test_a_locked_state_directory(holdfast: Run, tmp_path: Path) -> None:
    """The machine: two processes on one state directory; exit 3, and the first one is not disturbed."""
    state = State.open(tmp_path / "state")
    try:
        holdfast(*LOCAL, "--insecure", "--state-dir", "state").refused(3, "in use by process", str(os.getpid()))
    finally:
        state.close()


@pytest.mark.parametrize("name", ["boot", "journal"])
def test_a_damaged_state_file(holdfast: Run, tmp_path: Path, name: str) -> None:
    """The machine: a damaged file is not guessed at and not overwritten; exit 3."""
    State.open(tmp_path / "state").close()
    file = tmp_path / "state" / name
    damaged = b"\x00damaged\x00" + file.read_bytes()[9:]
    file.write_bytes(damaged)
    holdfast(*LOCAL, "--insecure", "--state-dir", "state").refused(3, f"state/{name}", "damaged")
    assert file.read_bytes() == damaged


def test_a_state_directory_that_cannot_be_made(holdfast: Run, tmp_path: Path) -> None:
    """The machine: a file is where the directory should be; exit 3, and the file stays as it is."""
    (tmp_path / "state").write_text("precious")
    holdfast(*LOCAL, "--insecure", "--state-dir", "state").refused(3, "cannot use the state directory state")
    assert (tmp_path / "state").read_text() == "precious"
