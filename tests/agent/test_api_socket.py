"""The socket file: whose it is, and which agent may serve there.  docs/local-api.md (the socket)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.agent.socket.api import LocalServer
from holdfast.errors import ConfigError, StorageError, StorageLocked
from tests.agent.live import Live
from tests.agent.raw_client import RawClient

HOLDER = (
    "import fcntl, os, sys, time; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
)


def serve(live: Live, path: str, mode: int = 0o600) -> LocalServer:
    """One more socket of the same agent; closed by the test."""
    started = asyncio.run_coroutine_threadsafe(LocalServer.start(live.agent, path, mode), live.loop)
    return started.result(30)


def close(live: Live, server: LocalServer) -> None:
    asyncio.run_coroutine_threadsafe(server.close(), live.loop).result(30)


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_permissions(tmp_path: Path, mode: int, umask: int) -> None:
    """The socket belongs to its user (0600) unless told otherwise, whatever the umask is."""
    before = os.umask(umask)
    try:
        with Live(tmp_path) as live:
            assert stat.S_IMODE(Path(live.path).stat().st_mode) == 0o600
            other = serve(live, str(tmp_path / "other.sock"), mode)
            assert stat.S_IMODE(Path(other.path).stat().st_mode) == mode
            close(live, other)
    finally:
        os.umask(before)


def test_what_a_dead_agent_left_is_replaced(tmp_path: Path) -> None:
    """A socket file without a living agent behind it is no obstacle."""
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with Live(tmp_path) as live, RawClient(live.path) as client:
        assert client.welcome is not None


@pytest.mark.parametrize("stopped", [False, True])
def test_a_living_agent_is_not_replaced(tmp_path: Path, stopped: bool) -> None:
    """Also one that is stopped and answers nobody: its lock says that it lives, and its pid is named."""
    path = tmp_path / "other.sock"
    with Live(tmp_path) as live:
        if stopped:
            words = [sys.executable, "-c", HOLDER, f"{path}.alive"]
            with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
                assert holder.stdout is not None
                holder.stdout.readline()
                holder.send_signal(signal.SIGSTOP)
                with pytest.raises(StorageLocked, match="another agent"):
                    serve(live, str(path))
                holder.kill()
            close(live, serve(live, str(path)))
        else:
            with pytest.raises(StorageLocked, match=f"pid {os.getpid()}"):
                serve(live, live.path)
            with RawClient(live.path) as client:
                assert client.welcome is not None


@pytest.mark.parametrize("path", ["", "/x" * 60, "a\0b"])
def test_paths_that_cannot_be(path: str) -> None:
    """Bad input names the field and what is accepted."""
    with pytest.raises(ConfigError, match=r"socket: .*accepted"):
        asyncio.run(LocalServer.start(cast(Any, None), path))


def test_a_file_is_not_removed(tmp_path: Path) -> None:
    """Whoever names a file by mistake keeps it."""
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(ConfigError, match="no socket"):
        asyncio.run(LocalServer.start(cast(Any, None), str(path)))
    assert path.read_text() == "data"
    with pytest.raises(StorageError, match="folder must exist"):
        asyncio.run(LocalServer.start(cast(Any, None), str(tmp_path / "nowhere" / "a.sock")))
