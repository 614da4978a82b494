"""The agent as a process: how it starts, what it refuses, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from holdfast.wire.keys import generate
from tests.support.agents import AgentProcess, Fleet, clean_environ, until

PARENT = """
import os, subprocess, sys, time
command = [sys.executable, "-m", "holdfast.agent", "--settings-fd", "0", "--ready-fd", "1", "--parent", str(os.getpid())]
subprocess.Popen(command)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Many tests share the first agent; whoever ends one starts it itself."""
    with Fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def first(fleet: Fleet) -> AgentProcess:
    """The agent that began a group of three: in a ring of two, whoever outlives the other may have to begin again."""
    return fleet.group(3)[0]


def run(tmp_path: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """One that ends by itself."""
    command = [sys.executable, "-m", "holdfast.agent", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environ(tmp_path, environ), timeout=60)


def test_ready_line(fleet: Fleet, first: AgentProcess) -> None:
    """Whoever started it reads one line: where the local socket is, and who answers there."""
    assert first.ready == {
        "socket": first.socket, "pid": first.pid, "address": first.address, "name": "a0", "boot": first.ready["boot"],
    }  # fmt: skip
    assert Path(first.socket).name == "test.sock"
    assert Path(first.socket).parent.parent == fleet.folder
    assert Path(first.socket).stat().st_mode & 0o777 == 0o600
    started = first.until_said("started")
    assert started["sealed"] is True
    assert fleet.settings["key"] not in first.stderr


def test_check_prints_the_settings_without_secrets(tmp_path: Path) -> None:
    """--check: what would be used, and where it comes from; nothing starts."""
    key = generate()
    ended = run(tmp_path, "--check", HOLDFAST_KEY=key, HOLDFAST_PRESET="wan", HOLDFAST_TAGS="zone=eu")
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = msgspec.json.decode(ended.stdout)
    assert (shown["settings"]["lease"], shown["settings"]["key"], shown["settings"]["socket_mode"]) == (4.0, "(hidden)", "0600")
    assert shown["sources"] == {"key": "HOLDFAST_KEY", "preset": "HOLDFAST_PRESET", "tags": "HOLDFAST_TAGS"}
    assert key not in ended.stdout


def test_check_refuses_in_one_line(tmp_path: Path) -> None:
    """--check: exit code 2 and one line that names the setting."""
    ended = run(tmp_path, "--check", HOLDFAST_LEASE="99")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "holdfast: lease: 99.0; accepted are 0.03 to 30 (from HOLDFAST_LEASE)\n"


def test_sigterm_leaves_and_peers_know_at_once(fleet: Fleet, first: AgentProcess) -> None:
    """SIGTERM: leave, exit code 0; peers see Left, no suspicion."""
    other = fleet.start(name="polite", seeds=[first.address])
    first.until_said("Joined", member=other.id)
    assert other.stop() == 0
    first.until_said("Left", member=other.id)
    assert first.said("Suspected", member=other.id) is None
    assert not Path(other.socket).exists()


def test_crash_is_no_leave(fleet: Fleet, first: AgentProcess) -> None:
    """A crash (kill -9): suspected, decided, failed for certain, in that order. Who hears of the decision first suspects no more."""
    other = fleet.start(name="crashed", seeds=[first.address])
    other.until_said("Joined", member=first.id)
    first.until_said("Joined", member=other.id)
    other.kill()
    assert first.until_said("Failed", member=other.id)["certain"] is True
    told = [line["event"] for line in first.log() if line.get("member") == other.id]
    assert [event for event in told if event != "Suspected"] == ["Joined", "Decided", "Failed"]
    assert "Suspected" not in told or told.index("Suspected") == 1


def test_sigterm_during_join(fleet: Fleet) -> None:
    """An agent that knocks where nobody answers can be stopped as any other."""
    alone = fleet.start(name="knocking", seeds=["127.0.0.1:9"])
    alone.until_said("JoinRetry")
    assert alone.stop() == 0


def test_closed_descriptors(tmp_path: Path) -> None:
    """An agent whose stderr was closed does not take the next file that it opens for it."""
    code = "import os, sys; os.close(2); os.close(0); os.execv(sys.executable, [sys.executable, '-m', 'holdfast.agent', '--ready-fd', '1'])"
    environ = clean_environ(tmp_path, {"HOLDFAST_BIND": "127.0.0.1:0", "HOLDFAST_STATE_DIR": str(tmp_path / "state")})
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        assert b'"socket"' in process.stdout.readline()
        assert {str(Path(f"/proc/{process.pid}/fd/{fd}").readlink()) for fd in (0, 2)} == {os.devnull}
        process.terminate()
        assert process.wait(60) == 0


def test_second_signal_ends_at_once(fleet: Fleet) -> None:
    """Who asks twice does not want to wait: at T_l = 30 s leaving takes 7.5 s."""
    slow = fleet.start(name="slow", lease=30.0, group="slow")
    began_at = time.monotonic()
    slow.signal(signal.SIGTERM)
    slow.until_said("leaving", why="SIGTERM")
    slow.signal(signal.SIGTERM)
    assert slow.wait() == 128 + signal.SIGTERM
    assert time.monotonic() - began_at < 7.5
    assert slow.said("stopped") is None


def test_restart_under_the_same_name(fleet: Fleet, first: AgentProcess, tmp_path: Path) -> None:
    """F1: the drawn name is kept in the state directory, the boot grows, and the group sees one life after the other."""
    settings: dict[str, Any] = {"seeds": [first.address], "state_dir": str(tmp_path / "state")}
    former = fleet.start(**settings)
    first.until_said("Joined", member=former.id)
    former.kill()
    later = fleet.start(**settings)
    assert later.name == former.name
    assert later.ready["boot"] > former.ready["boot"]
    first.until_said("Joined", member=later.id)
    assert later.stop() == 0


def test_restart_after_a_crash_is_let_in_at_once(fleet: Fleet, tmp_path: Path) -> None:
    """F6, H43: with the lock of its state directory a new life says that the former one is over, as soon as that is certain."""
    settings: dict[str, Any] = {"name": "phoenix", "group": "crash", "lease": 2.0, "bind": "127.0.0.5:17401"}
    peer = fleet.group(3, group="crash", lease=2.0)[0]
    settings |= {"seeds": [peer.address], "state_dir": str(tmp_path / "state")}
    former = fleet.start(**settings)
    peer.until_said("Joined", member=former.id)
    former.until_said("BecameMember")
    former.kill()
    later = fleet.start(**settings)
    later.until_said("BecameMember")
    assert later.said("JoinRetry", why="nobody answered") is None  # "busy" may be: the door has just let the former life in.
    peer.until_said("Joined", member=later.id)
    assert peer.until_said("Failed", member=former.id)["certain"] is True
    assert later.stop() == 0
    assert (tmp_path / "state" / "left").read_text() == "left\n"


def test_name_in_use(fleet: Fleet, first: AgentProcess) -> None:
    """F5: a name of a living agent is refused: exit code 1, who has it and where; the living one does not notice."""
    holder = fleet.start(name="twice", seeds=[first.address])
    first.until_said("Joined", member=holder.id)
    refused = fleet.start(name="twice", seeds=[first.address], expect_ready=False)
    assert refused.ready["error"] == "NameConflict"
    assert f"{holder.id} lives at {holder.address}" in refused.ready["text"]
    assert refused.wait() == 1
    assert refused.said("Joined") is None
    assert [line["event"] for line in first.log() if str(line.get("member")).startswith("twice#")] == ["Joined"]
    assert holder.stop() == 0


def test_wall_clock_that_went_back(fleet: Fleet, first: AgentProcess, tmp_path: Path) -> None:
    """F5: the group remembers a higher boot of this name, and it is silent: begin again above it, and keep that."""
    ahead = int(time.time() * 1000) + 86_400_000
    former_dir, later_dir = tmp_path / "former", tmp_path / "later"
    former_dir.mkdir()
    digits = str(ahead).encode()
    (former_dir / "boot").write_bytes(b"%s %08x\n" % (digits, crc32(digits)))
    former = fleet.start(name="timely", seeds=[first.address], state_dir=str(former_dir))
    assert former.ready["boot"] == ahead + 1
    first.until_said("Joined", member=former.id)
    former.kill()
    later = fleet.start(name="timely", seeds=[first.address], state_dir=str(later_dir))
    assert later.said("wall clock went back", known=ahead + 1)
    assert later.ready["boot"] == ahead + 2
    assert (later_dir / "boot").read_bytes().startswith(b"%d " % (ahead + 2))
    first.until_said("Joined", member=later.id)
    later.kill()


def test_locked_state_directory(fleet: Fleet, first: AgentProcess, tmp_path: Path) -> None:
    """One process per state directory: exit code 3, and who holds it."""
    settings: dict[str, Any] = {"seeds": [first.address], "state_dir": str(tmp_path / "state")}
    holder = fleet.start(**settings)
    refused = fleet.start(**settings, expect_ready=False)
    assert refused.ready["error"] == "StorageLocked"
    assert f"is in use by process {holder.pid}" in refused.ready["text"]
    assert refused.wait() == 3
    assert refused.stderr == f"holdfast: {refused.ready['text']}\n"
    holder.kill()


def test_port_in_use(fleet: Fleet, first: AgentProcess) -> None:
    """A port that is taken is the machine's affair: exit code 3, naming the setting."""
    refused = fleet.start(bind=first.address, expect_ready=False)
    assert refused.ready["error"] == "AddressUnusable"
    assert refused.ready["text"].startswith(f"bind: cannot listen on {first.address}: the port is in use")
    assert refused.wait() == 3


def test_socket_in_use(fleet: Fleet, first: AgentProcess) -> None:
    """A local socket that another agent answers on is not taken away from it."""
    refused = fleet.start(socket=first.socket, expect_ready=False)
    assert (refused.ready["error"], refused.wait()) == ("StorageLocked", 3)


def test_wrong_key_and_wrong_group_are_not_heard(fleet: Fleet, first: AgentProcess) -> None:
    """Neither joins, each side counts why under its name, and nobody logs every packet."""
    strangers = [fleet.start(name="key", key=generate(), seeds=[first.address]), fleet.start(group="other", seeds=[first.address])]
    until(lambda: all(any(why in line for line in first.log()) for why in ("wrong_key", "wrong_group")), "the drops are summed up")
    for stranger in strangers:
        assert first.said("Joined", member=stranger.id) is None
        assert stranger.said("Joined") is None
        stranger.kill()
    assert len([line for line in first.log() if line.get("event") == "dropped"]) <= 6


def test_other_lease_is_refused_by_name(fleet: Fleet, first: AgentProcess) -> None:
    """F4: an agent that counts with another T_l is told which field and both values, and does not join."""
    other = fleet.start(name="other-lease", lease=0.8, arbitration=0.2, seeds=[first.address])
    line = other.until_said("ConfigMismatch", field="T_l")
    assert (line["level"], line["peer"], line["ours"], line["theirs"]) == ("error", first.id, "0.8", "0.4")
    assert other.said("Joined") is None
    assert first.said("Joined", member=other.id) is None
    other.kill()


def test_seeds_by_name(fleet: Fleet, first: AgentProcess) -> None:
    """F12: a seed may be a name; the log says what it stands for, and that a name makes nobody a seat."""
    named = fleet.start(name="named", seeds=[f"localhost:{first.address.rpartition(':')[2]}"])
    assert first.address in named.until_said("seeds")["addresses"]
    assert "is no IP:PORT" in named.until_said("no seats")["text"]
    first.until_said("Joined", member=named.id)
    assert named.stop() == 0


def test_parent_killed(fleet: Fleet, first: AgentProcess) -> None:
    """A child leaves the group when the process that started it is gone, however that ended."""
    settings = {**fleet.settings, "name": "child", "seeds": [first.address]}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environ(fleet.folder, {}),
    )  # fmt: skip
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(msgspec.json.encode(settings))
    parent.stdin.close()
    ready = msgspec.json.decode(parent.stdout.readline())
    child = f"child#{ready['boot']}"
    first.until_said("Joined", member=child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    first.until_said("Left", member=child)
    until(lambda: not _lives(ready["pid"]), "the child has ended")


def test_alone_on_its_machine(fleet: Fleet, tmp_path: Path) -> None:
    """F12: without seeds, key and network the second agent of a group is refused, and told where the first one is."""
    only = fleet.start(key=None, group="alone", runtime=tmp_path)
    assert only.until_said("SeatOpened")["slot"] == 0
    refused = fleet.start(key=None, group="alone", runtime=tmp_path, socket=str(tmp_path / "other.sock"), expect_ready=False)
    assert (refused.ready["error"], refused.wait()) == ("StorageLocked", 3)
    assert f"process {only.pid} is the agent of this group" in refused.ready["text"]
    assert only.socket in refused.ready["text"]
    only.kill()
    again = fleet.start(key=None, group="alone", runtime=tmp_path)
    assert again.name == only.name  # It remembers beside its lock: a seat must.
    assert again.until_said("SeatOpened")
    assert again.stop() == 0


def test_a_seat_that_cannot_remember_says_so(fleet: Fleet) -> None:
    """H42, H96: an agent that its seeds make a seat, and that can keep nothing, runs all the same and says which setting is missing."""
    nowhere = {"XDG_STATE_HOME": "/dev/null"}
    seat = fleet.start(name="seat", bind="127.0.0.2:17946", seeds=["127.0.0.2:17946"], group="seat", environ=nowhere)
    line = seat.until_said("no seats")
    assert line["text"].startswith("state_dir: cannot use /dev/null/holdfast: Not a directory; set state_dir, or XDG_STATE_HOME")
    assert "and this agent is seat 0 (127.0.0.2:17946)" in line["text"]
    seat.kill()


def test_a_journal_of_another_slot(fleet: Fleet, tmp_path: Path) -> None:
    """F13: a seat's journal belongs to its slot; a list in another order is refused with the setting's name."""
    seats = [f"127.0.0.4:{port}" for port in (17301, 17302, 17303)]
    settings: dict[str, Any] = {"bind": seats[0], "state_dir": str(tmp_path / "state"), "group": "seats"}
    seat = fleet.start(seats=seats, **settings)
    until(lambda: (tmp_path / "state" / "journal").stat().st_size > 100, "the journal names its slot")
    assert seat.stop() == 0
    refused = fleet.start(seats=[seats[1], seats[0], seats[2]], **settings, expect_ready=False)
    assert refused.ready == {"error": "ConfigError", "text": "seats: this journal belongs to slot 0, the configuration says slot 1"}
    assert refused.wait() == 2


def test_systemd_is_told(fleet: Fleet, tmp_path: Path) -> None:
    """READY=1 when it serves, WATCHDOG=1 while it does, RELOADING=1 and READY=1 around a reload, STOPPING=1 before it leaves."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        systemd.settimeout(60)
        agent = fleet.start(group="unit", environ={"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "200000"})
        told = Told(systemd)
        assert f"STATUS={agent.id} at {agent.address}" in told.until("READY=1")
        told.until("WATCHDOG=1")
        told.until("WATCHDOG=1")
        agent.signal(signal.SIGHUP)
        assert "MONOTONIC_USEC=" in told.until("RELOADING=1")
        told.until("READY=1")
        agent.signal(signal.SIGTERM)
        told.until("STOPPING=1")
        assert agent.wait() == 0


class Told:
    """What a service manager hears."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener

    def until(self, word: str) -> str:
        while word not in (text := self._listener.recv(4096).decode()).split("\n"):
            pass
        return text


def test_memory_and_modules(tmp_path: Path) -> None:
    """An agent loads neither a command line nor an HTTP server, nor a second OpenSSL."""
    code = (
        "import sys\nfrom holdfast.agent.life.lean import lean_imports\nwith lean_imports():\n    import holdfast.agent.life.main\n"
        "print([name for name in ('ssl', '_ssl', '_hashlib', 'argparse', 'typer', 'rich', 'starlette', 'uvicorn', 'tomllib', 'email', "
        "'importlib.metadata', 'holdfast.lab', 'holdfast.cli', 'holdfast.client') if name in sys.modules])\nimport ssl, hashlib"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
