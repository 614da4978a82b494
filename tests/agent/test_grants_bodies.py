"""Bodies: which process made a connection, and the kernel's word that it is dead.  Spec: foundation F14."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agent.grants import bodies
from holdfast.agent.grants.bodies import Body, body_of, peer_body, peer_pid
from holdfast.errors import ConfigError, Unavailable
from holdfast.local.process import stat_of
from tests.agent.raw_client import now
from tests.support.realtime import eventually, run

CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdin.read()"


def is_dead(body: Body) -> bool:
    """As the kernel says now."""
    return body.dead


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """Another process, and our end of its connection."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        with subprocess.Popen([sys.executable, "-c", CONNECT, str(tmp_path / "socket")], stdin=subprocess.PIPE) as process:
            connection, _ = listener.accept()
            with connection:
                yield process, connection
            process.kill()


@pytest.fixture(params=["named by the kernel", "by pid and start"])
def old_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Linux below 6.5 cannot name the process behind a socket: an option that does not exist stands for it."""
    if request.param == "by pid and start":
        monkeypatch.setattr(bodies, "SO_PEERPIDFD", 9999)
        return True
    return False


def test_the_process_behind_a_connection(caller: tuple[subprocess.Popen[bytes], socket.socket], old_kernel: bool) -> None:
    """F14: its pidfd tells when it is dead, also before anybody waited for it."""
    process, connection = caller
    assert peer_pid(connection) == process.pid
    body = peer_body(connection, now())
    assert body is not None
    assert not is_dead(body)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(body)
    body.close()
    body.close()
    assert is_dead(body)


def test_a_pid_that_was_given_to_somebody_younger(
    caller: tuple[subprocess.Popen[bytes], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F14: a process that started after the greeting is not the one that greeted, whatever its pid; then only the deadline counts."""
    process, connection = caller
    monkeypatch.setattr(bodies, "SO_PEERPIDFD", 9999)
    born_at = stat_of(process.pid).started_at
    assert born_at - 0.1 < now()
    assert peer_body(connection, born_at - 0.05) is None
    assert peer_body(connection, float("-inf")) is None
    process.kill()
    process.wait()
    assert peer_body(connection, now()) is None


def test_a_kernel_without_pidfds(caller: tuple[subprocess.Popen[bytes], socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: nobody's death is confirmed there, which is no error."""
    monkeypatch.setattr(bodies, "SO_PEERPIDFD", 9999)
    monkeypatch.delattr(os, "pidfd_open")
    assert peer_body(caller[1], now()) is None
    assert body_of(os.getpid()) is None


def test_no_descriptors_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lack of descriptors is not a lack of pidfds: the client is told, instead of quietly getting less than it asked for."""

    def full(pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", full)
    with pytest.raises(Unavailable, match="ulimit"):
        body_of(os.getpid())


@pytest.mark.parametrize("pid", [0, -1, 1 << 31, 1 << 60])
def test_pids_that_cannot_be(pid: int) -> None:
    """Bad input names the field and what is accepted."""
    with pytest.raises(ConfigError, match=r"pid: .*accepted"):
        body_of(pid)


def test_a_command_that_was_waited_for() -> None:
    """Body: a pid that was not waited for yet; a zombie is one, and dead; afterwards the pid is nobody's."""
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    body = body_of(child)
    assert body is not None
    assert is_dead(body)
    body.close()
    os.waitpid(child, 0)
    with pytest.raises(ConfigError, match="no process"):
        body_of(child)


def test_a_death_is_told_once() -> None:
    """The loop hears of it soon, once, and is not kept busy by a descriptor that stays readable."""
    process = subprocess.Popen(["/bin/sleep", "60"])

    async def main() -> None:
        body = body_of(process.pid)
        assert body is not None
        deaths: list[float] = []
        body.watch(lambda: deaths.append(time.monotonic()))
        await asyncio.sleep(0)
        assert deaths == []
        process.send_signal(signal.SIGKILL)
        await eventually(lambda: deaths, "the death is told")
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(deaths) == 1
        body.close()

    run(main())
    process.wait()


def test_threads_live_on_after_their_first_one() -> None:
    """F14: a process is dead when all of its threads are, not when the first one has ended."""
    words = "import ctypes, sys, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); print(flush=True)"
    leave = "; ctypes.CDLL(None).pthread_exit(None)"  # of this thread alone
    with subprocess.Popen([sys.executable, "-c", words + leave], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        body = body_of(process.pid)
        assert isinstance(body, Body)
        state = Path(f"/proc/{process.pid}/stat")
        end_at = time.monotonic() + 30
        while state.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < end_at:
            time.sleep(0.01)
        assert not is_dead(body)
        process.kill()
        end_at = time.monotonic() + 30
        while not is_dead(body) and time.monotonic() < end_at:
            time.sleep(0.01)
        assert is_dead(body)
        body.close()
