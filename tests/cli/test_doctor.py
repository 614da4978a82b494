"""``holdfast doctor``: each finding is there when its fault is planted, and only then."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

import pytest

from holdfast.agent.observe import symptoms
from holdfast.agent.socket import files
from holdfast.config import Config
from holdfast.features.tickets.missing import few_guardians
from holdfast.local.calls import Finding
from holdfast.net.bind import RECEIVE_BYTES
from holdfast.wire.keys import generate
from tests.cli.command import Run
from tests.cli.diagnosis import diagnosed
from tests.cli.fake_agent import FakeAgent
from tests.support.agents import AgentProcess, Fleet, until

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A healthy group of two; tests plant their faults beside it."""
    with Fleet(tmp_path_factory.mktemp("doctor")) as fleet:
        fleet.group(2)
        yield fleet


@pytest.fixture
def healthy(fleet: Fleet) -> AgentProcess:
    return fleet.agents[0]


def planted(fleet: Fleet, code: str) -> dict[str, str]:
    """What makes an agent run this code before anything else."""
    folder = fleet.folder / f"plant{len(fleet.agents)}"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_healthy_agent_has_no_errors(holdfast: Run, fleet: Fleet) -> None:
    """Exit code 0: what is left are warnings and notes. A slow preset, so that a busy machine is no fault."""
    calm = fleet.start(group="calm", preset="wan")
    ended = holdfast("doctor", "--agent", calm.socket)
    assert ended.code == 0, ended.out
    assert "error:" not in ended.out
    assert "warning: no_seats: seats" in ended.out
    calm.kill()


@pytest.mark.parametrize(
    "settings,code,severity",
    [
        ({"key": generate()}, "wrong_key", "error"),
        ({"key": None}, "plaintext", "error"),
        ({"group": "other"}, "wrong_group", "note"),
    ],
    ids=["wrong-key", "no-key", "other-group"],
)
def test_somebody_who_is_not_understood(
    holdfast: Run, fleet: Fleet, healthy: AgentProcess, settings: dict[str, Any], code: str, severity: str
) -> None:
    """H184: the group counts what it cannot read and names the sender; the stranger finds the port of its seed open and hears nothing
    that it understands, and its log says so once, after the third try."""
    stranger = fleet.start(seeds=[healthy.address], **settings)
    until(lambda: diagnosed(holdfast, healthy, code)["severity"] == severity, f"{code} while it goes on")
    assert stranger.address in diagnosed(holdfast, healthy, code)["text"]
    found = diagnosed(holdfast, stranger, "strange_port", about=healthy.address)
    assert (found["severity"], "another key, group or version" in found["text"]) == ("error", True)
    said = stranger.until_said("seed does not answer")
    assert (said["level"], said["seed"]) == ("warning", healthy.address)
    assert "another key, group or version" in said["text"]
    assert diagnosed(holdfast, stranger, "not_a_member")["severity"] == "error"
    stranger.kill()


def test_sealed_where_there_is_no_key(holdfast: Run, fleet: Fleet) -> None:
    """The other way round: an agent without a key hears from one that has one."""
    plain = fleet.start(key=None, group="plain")
    sealed = fleet.start(group="plain", seeds=[plain.address])
    assert diagnosed(holdfast, plain, "sealed")
    sealed.kill()
    plain.kill()


def test_closed_port_and_one_seat(holdfast: Run, fleet: Fleet, healthy: AgentProcess) -> None:
    """A seed where nobody listens is an error that names it; fewer than three seeds make one seat, which is a warning."""
    closed = f"127.0.0.1:{unused_port()}"
    joiner = fleet.start(seeds=[healthy.address, closed])
    assert diagnosed(holdfast, joiner, "closed_port", about=closed)["severity"] == "error"
    assert diagnosed(holdfast, joiner, "one_seat", about=healthy.address)["severity"] == "warning"
    joiner.stop()


def test_seats_that_differ(holdfast: Run, tmp_path: Path) -> None:
    """F12: an agent without seeds counts no seats, and one that names it in seeds takes it for the seat; doctor says so at both ends, and
    what to set. With that setting the finding is gone, and the seat is heard."""
    with Fleet(tmp_path) as fleet:
        first = fleet.start(name="a")
        second = fleet.start(name="b", seeds=[first.address])
        for agent in (first, second):
            found = diagnosed(holdfast, agent, "seats_differ", about="a")
            assert found["severity"] == "error"
            assert f"a counts none; b counts {first.address}." in found["text"]
            assert found["advice"].startswith(f'Set seats = ["{first.address}"] on a and restart')
        first.stop()
        first = fleet.start(name="a", bind=first.address, seeds=[second.address], seats=[first.address], state_dir=str(tmp_path / "state"))
        until(lambda: first.said("Joined", member=second.id) or second.said("Joined", member=first.id), "they are one group again")
        for agent in (first, second):
            ended = holdfast("doctor", "--agent", agent.socket, "--timeout", "1.5", "--json")
            assert "seats_differ" not in {each["code"] for each in ended.json["findings"]}


def test_other_timing(holdfast: Run, fleet: Fleet, healthy: AgentProcess) -> None:
    """F4: another T_l is remembered with both values, by the name of the setting, at both ends."""
    other = fleet.start(name="slow", seeds=[healthy.address], lease=0.7)
    seen = diagnosed(holdfast, healthy, "config_mismatch", about="slow")
    assert seen["severity"] == "error"
    texts = {each["text"] for each in holdfast("doctor", "--agent", healthy.socket, "--json").json["findings"]}
    assert any("lease is 0.7 there and 0.4 here" in text for text in texts), texts
    diagnosed(holdfast, other, "config_mismatch", about="a0")
    other.kill()


def test_pauses(holdfast: Run, fleet: Fleet) -> None:
    """An agent that stood still for 300 ms says so, and others hear it from it."""
    paused = fleet.agents[1]

    def noticed() -> bool:
        """A pause in which no timer was due cannot be seen (F10): another one."""
        paused.signal(signal.SIGSTOP)
        sleep(0.3)
        paused.signal(signal.SIGCONT)
        return paused.said("Paused") is not None

    until(noticed, "it noticed a pause")
    assert "stood still" in diagnosed(holdfast, paused, "pauses", about="a1")["text"]
    assert diagnosed(holdfast, fleet.agents[0], "pauses", about="a1")["severity"] == "warning"


def test_other_version(holdfast: Run, fleet: Fleet, healthy: AgentProcess) -> None:
    """A member of another version is named with it."""
    environ = planted(fleet, "import holdfast.agent.life.version as version\nversion.VERSION = '9.9.9'\n")
    other = fleet.start(name="old", seeds=[healthy.address], environ=environ)
    assert "9.9.9" in diagnosed(holdfast, healthy, "other_version", about="old")["text"]
    other.stop()


def test_a_clock_that_stops(holdfast: Run, fleet: Fleet) -> None:
    """F7: without CLOCK_BOOTTIME the clock stands still in suspend."""
    stopping = fleet.start(key=None, group="napping", environ=planted(fleet, "import time\ndel time.CLOCK_BOOTTIME\n"))
    assert diagnosed(holdfast, stopping, "clock_stops")["severity"] == "warning"
    stopping.kill()


def test_an_exposed_key(holdfast: Run, fleet: Fleet, tmp_path: Path) -> None:
    """A key file that others can read is a warning; after chmod 600 it is none."""
    file = tmp_path / "key"
    file.write_text(generate())
    file.chmod(0o644)
    exposed = fleet.start(key=None, key_file=str(file), group="exposed")
    assert diagnosed(holdfast, exposed, "key_exposed", about=str(file))["severity"] == "warning"
    file.chmod(0o600)
    ended = holdfast("doctor", "--agent", exposed.socket, "--json")
    assert "key_exposed" not in {each["code"] for each in ended.json["findings"]}
    exposed.kill()


@pytest.mark.skipif(symptoms.file_system(SHARED_MEMORY) != "tmpfs", reason="no tmpfs at the usual place")
def test_a_seat_that_would_forget(holdfast: Run, fleet: Fleet) -> None:
    """F13: a seat whose state directory a reboot empties is an error."""
    port = unused_port()
    with TemporaryDirectory(dir=SHARED_MEMORY) as state:
        seat = fleet.start(
            name="s", group="seats", bind=f"127.0.0.1:{port}", seats=[f"s@127.0.0.1:{port}"], seeds=[f"127.0.0.1:{port}"], state_dir=state
        )
        assert diagnosed(holdfast, seat, "state_forgotten", about=state)["severity"] == "error"
        seat.kill()


def test_no_agent(holdfast: Run, tmp_path: Path) -> None:
    """Without an agent that itself is the finding, and the machine is looked at."""
    ended = holdfast("doctor", "--agent", tmp_path / "none.sock", "--json")
    assert (ended.code, ended.json["findings"][0]["code"]) == (1, "no_agent")


def test_a_silent_agent(holdfast: Run, tmp_path: Path) -> None:
    """An agent that accepts and never answers is told from none."""
    with FakeAgent(tmp_path / "a.sock", silent=True) as agent:
        ended = holdfast("doctor", "--agent", agent.path, "--timeout", "0.3", "--json")
    assert (ended.code, ended.json["findings"][0]["code"]) == (1, "agent_silent")


LIMITED = ("sh", "-c", 'ulimit -Sn 300; ulimit -Hn "$0"; exec "$@"')  # then the hard limit, and the command


def test_few_files(tmp_path: Path) -> None:
    """A hard limit of open files that an agent with clients would meet; it raises a soft one itself, so that is no finding."""
    words = [sys.executable, "-m", "holdfast", "doctor", "--agent", str(tmp_path / "none"), "--json"]
    ended = subprocess.run([*LIMITED, "500", *words], capture_output=True, text=True, check=False)
    assert '"few_files"' in ended.stdout
    ended = subprocess.run(["sh", "-c", 'ulimit -Sn 300; exec "$@"', "sh", *words], capture_output=True, text=True, check=False)
    assert ('"few_files"' in ended.stdout) == (files.allowed() < files.FILES_NEEDED)


def test_few_files_of_an_agent(fleet: Fleet, holdfast: Run) -> None:
    """It has raised its limit as far as it may, and says how many clients that is for."""
    agent = fleet.start(name="narrow", group="narrow", before=(*LIMITED, "900"))
    try:
        limits = Path(f"/proc/{agent.pid}/limits").read_text()
        assert re.search(r"^Max open files\s+900\s+900\s", limits, re.MULTILINE)
        found = diagnosed(holdfast, agent, "few_files")
    finally:
        agent.kill()
    assert (found["severity"], found["about"]) == ("warning", "ulimit -Hn")
    assert f"room for {files.clients_at(900)} of 1024 clients" in found["text"]


@pytest.mark.parametrize("limit, severity", [(0, "warning"), (1003, "warning"), (1004, "note"), (3775, "note"), (3776, None), (8192, None)])
def test_how_many_files_are_few(limit: int, severity: str | None) -> None:
    """H460: below 100 clients a warning; from what the tables of an agent can take, 1024 clients with grants, none."""
    assert codes(symptoms.few_files(limit)) == ([("few_files", severity)] if severity else [])


def test_settings_that_are_no_good_idea(holdfast: Run, tmp_path: Path) -> None:
    """--config: no key beyond loopback is a warning, a setting that cannot be used is an error. No socket is opened for it."""
    (tmp_path / "insecure.toml").write_text('bind = "192.0.2.1:7946"\ninsecure = true\n')
    (tmp_path / "bad.toml").write_text("lease = -1\n")
    found = holdfast("doctor", "--agent", tmp_path / "none", "--config", tmp_path / "insecure.toml", "--json").json["findings"]
    assert ("insecure", "warning") in {(each["code"], each["severity"]) for each in found}
    found = holdfast("doctor", "--agent", tmp_path / "none", "--config", tmp_path / "bad.toml", "--json").json["findings"]
    assert (found[0]["code"], "lease" in found[0]["text"]) == ("bad_settings", True)


def codes(findings: Iterator[Finding]) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in findings]


def test_a_small_receive_buffer() -> None:
    """F10: what waits while a process stands still needs room; in a large group its lack is a warning."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert codes(symptoms.of_machine(udp.fileno(), members=2)) == [("small_receive_buffer", "note")]
        assert codes(symptoms.of_machine(udp.fileno(), members=100)) == [("small_receive_buffer", "warning")]
    assert codes(symptoms.small_buffer(RECEIVE_BYTES, members=100)) == []


def test_file_systems(tmp_path: Path) -> None:
    """The kind of the innermost mount decides; a path that is not there yet has that of its parent."""
    assert symptoms.file_system(Path("/proc/self")) == "proc"
    assert symptoms.file_system(tmp_path / "not" / "there") == symptoms.file_system(tmp_path) != ""


def test_a_seat_on_a_disk_is_fine() -> None:
    """Only file systems that forget are an error; a loopback group without key is no warning."""
    kept = Config(seats=("s@127.0.0.1:1",), state_dir="/proc")
    assert codes(symptoms.of_settings(kept, Path("/proc"), seat=True)) == []


def test_few_guardians_on_the_ring() -> None:
    """H140, tickets D27: the paper's placement with k below 2 is allowed, and no good idea."""
    for k, told in ((1, True), (0, True), (2, False), (3, False)):
        found = list(few_guardians(Config(ticket_guardians="ring", ticket_k=k)))
        assert codes(iter(found)) == ([("few_guardians", "warning")] if told else [])
        assert all("ticket_k = 2" in each.advice for each in found)
    assert codes(few_guardians(Config())) == []
