"""``holdfast lab ring``: members on real sockets, the orders they take, and what bad input gets."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.ring_fleet import Settings, fleet, free_addresses
from tests.cli.command import Run

DEADLINE = 30.0
RING = ("lab", "ring")
LOCAL = (*RING, "--members", "a=127.0.0.1:0")


@pytest.mark.parametrize(
    "words, told",
    [
        ((*LOCAL,), ["no key", "--key-file FILE", "--insecure"]),
        ((*RING, "--members", "a", "--insecure"), ["--members: 'a' has no address", "a=HOST:PORT"]),
        ((*RING, "--members", "a=127.0.0.1:1,a=127.0.0.1:2", "--insecure"), ["'a' is listed twice"]),
        ((*RING, "--members", ",".join(f"n{i}=127.0.0.1:0" for i in range(257)), "--insecure"), ["257 of them", "up to 256"]),
        ((*RING, "--members", "a=10.0.0.1:1", "--insecure"), ["--insecure with 10.0.0.1:1", "loopback"]),
        ((*RING, "--members", "a=nowhere.invalid:1", "--insecure"), ["--members a: cannot resolve nowhere.invalid:1"]),
        ((*LOCAL, "--insecure", "--seeds", "127.0.0.1"), ["'127.0.0.1'", "accepted are"]),
        ((*LOCAL, "--insecure", "--seeds", ",".join(f"127.0.0.1:{i + 1}" for i in range(65))), ["65 of them", "up to 64"]),
        ((*LOCAL, "--insecure", "--found", "b"), ["--found b: does not run here", "accepted are a"]),
        ((*LOCAL, "--insecure", "--lease", "0"), ["lease: 0.0", "0.03 to 30"]),
        ((*LOCAL, "--insecure", "--k", "9"), ["k: 9", "1 to 8"]),
        ((*LOCAL, "--insecure", "--idle"), ["--idle without --orders"]),
        ((*RING, "--members", "a=127.0.0.1:0,b=127.0.0.1:0", "--advertise", "127.0.0.1:1", "--insecure"), ["--advertise with 2 members"]),
    ],
)
def test_bad_input(holdfast: Run, tmp_path: Path, words: tuple[str, ...], told: list[str]) -> None:
    """Bad input: one clear line that names the flag, exit 2, and the state directory is not even made."""
    holdfast(*words, "--state-dir", "state").refused(2, *told)
    assert not (tmp_path / "state").exists()


def test_a_port_in_use(holdfast: Run) -> None:
    """The machine: a port that is taken is one clear line and exit 3."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        holdfast(*RING, "--members", f"a={address}", "--insecure").refused(3, f"--members a: cannot listen on {address}", "in use")


def test_orders_start_crash_and_end_members() -> None:
    """Orders: members start, crash without a word, start again in a new life and leave; what is no order is refused; marks are answered."""
    addresses = dict(zip("abc", free_addresses(3), strict=True))
    with fleet(Settings(lease=0.2, seeds=(addresses["a"],))) as it:
        process = it.start(addresses, "--found", "a", "--idle")
        for name in "abc":
            process.order("start", name)
        it.until_agreed("abc", "three members are one ring")
        former = it.view["c"]["node"]
        process.order("crash", "c")
        process.order("start", "c")  # At once: its port must be free again.
        it.until(lambda: it.view.get("c", {}).get("node", former) != former, "another life of c")
        it.until_agreed("abc", "c is back")
        process.order("leave", "b")
        it.until_agreed("ac", "b has left")
        it.until(lambda: "b" not in it.view, "b has said all it had to say")
        assert it.found("Failed", member=former) != []
        assert [line["reason"] for line in it.found("Departed", was_member=True)] == ["graceful"]
        process.order("dance", "c")
        process.order("start", "d")
        it.until(lambda: len(it.found("Refused")) == 2, "what is no order is refused")
        assert {line["order"] for line in it.found("Refused")} == {"dance c", "start d"}
        marked = it.mark()
        assert set(marked) == set("ac")
        assert all(line["worst"] >= 0.0 and line["sent"] > 0 for line in marked.values())


def test_it_ends_with_its_orders() -> None:
    """Orders: when nobody can give any more, the members leave and the process ends with exit code 0; nothing is on stderr."""
    command = [sys.executable, "-m", "holdfast", *LOCAL, "--found", "a", "--insecure", "--orders", "--lease", "0.2"]
    done = subprocess.run(command, input=b"mark\n", capture_output=True, timeout=DEADLINE, check=True)
    events = [msgspec.json.decode(line)["event"] for line in done.stdout.splitlines()]
    assert (events[0], events[-1]) == ("Started", "Stopped")
    assert "Departed" in events
    assert done.stderr == b""
