"""Finds or starts the agent.  Spec: foundation F12; docs/client.md.

Everything here waits on the thread that calls it, looking every few milliseconds whether it shall stop; the asyncio client calls it in a
thread of its own. A start that fails or stops half-way ends what it started: there is never an agent that was not asked for.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.client.line import Line
from holdfast.client.logs import LogReader
from holdfast.client.options import Plan
from holdfast.client.wire import error_of
from holdfast.errors import AddressUnusable, AgentLost, JoinFailed, JoinTimeout, StorageLocked, shown
from holdfast.local.calls import Look
from holdfast.net.clock import now

LOOK_PERIOD = 0.05  # seconds between looks whether the caller still wants it
REAP_PERIOD = 0.005  # seconds between looks at a process that is about to end
TERM_TIMEOUT = 3.0  # seconds for a process that is not needed to drain and leave, before it is ended at once
READY_BYTES_MAX = 64 * 1024  # of the line with which an agent says that it is ready, or why not
LOG_TIMEOUT = 1.0  # seconds for the last lines of an agent that has ended; handlers of a program may be slow
PROBE_TIMEOUT = 5.0  # seconds for the greeting of an agent that may be there
NAME_GRACE = 1.5  # seconds for a shared agent of another name to end: without clients it looks every 0.5 s whether its parent lives
LEFT_BEHIND_MAX = 256  # processes that were let go and not reaped yet

_left_behind: list[Child] = []  # machine-wide agents that others may use: they end by themselves and are reaped when we come by


class Found(Enum):
    """What listens at the socket of a plan."""

    NONE = "another process starts the agent of this machine, and that agent does not answer"
    LEAVING = "the agent of this machine is leaving the group, and has not ended"
    OTHER_NAME = "the agent of this machine has another name"
    AGENT = "an agent that can be used"


class NotWanted(Exception):
    """The caller does not want it any more."""


class Reached(NamedTuple):
    """An agent that answers."""

    plan: Plan
    child: Child | None  # the process, if we started it


class Child:
    """An agent process that this process started."""

    def __init__(self, plan: Plan) -> None:
        assert plan.settings is not None
        self.path = plan.path
        self.shared = plan.shared
        self._status: int | None = None
        self._seen = b""
        settings = {**plan.settings, **({"config": plan.config} if plan.config else {})}
        reading, writing = os.pipe()
        log_reading, log_writing = os.pipe()
        try:
            self.pid = _spawn(settings, writing, log_writing)
        except BaseException:
            os.close(reading)
            os.close(log_reading)
            raise
        finally:
            os.close(writing)
            os.close(log_writing)
        self._ready_fd = reading
        self._log = LogReader(log_reading, self.pid)

    def ready(self, end_at: float, stopped: Callable[[], bool]) -> None:
        """Wait until it answers. Raises what it says it failed with."""
        poll = select.poll()
        poll.register(self._ready_fd, select.POLLIN)
        while b"\n" not in self._seen:
            if stopped():
                raise NotWanted
            if now() >= end_at:
                raise JoinTimeout(f"the agent (process {self.pid}) was started and is not ready; is the machine overloaded?")
            if poll.poll(1000 * LOOK_PERIOD) and not self._read():
                raise JoinFailed(
                    f"the agent ended with status {self._wait_status()} before it was ready; the log holdfast.agent and stderr say more"
                )
        said = msgspec.json.decode(self._seen.partition(b"\n")[0], type=dict[str, Any])
        if "error" in said:
            raise error_of(str(said["error"]), str(said.get("text", "")))

    def _read(self) -> bool:
        data = os.read(self._ready_fd, READY_BYTES_MAX)
        self._seen += data
        return bool(data) and len(self._seen) <= READY_BYTES_MAX

    @property
    def alive(self) -> bool:
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # Other code has reaped it (a handler of SIGCHLD): it is gone all the same.
                pid, status = self.pid, 0
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
                self._close()
        return self._status is None

    @property
    def status(self) -> int | None:
        return self._status

    def wait(self, timeout: float) -> bool:
        """Whether it ended in time."""
        end_at = now() + timeout
        while self.alive:
            if now() >= end_at:
                return False
            time.sleep(REAP_PERIOD)
        self._log.join(LOG_TIMEOUT)
        return True

    def signal(self, number: int) -> None:
        if self.alive:  # Not reaped yet, so the pid is still its own.
            os.kill(self.pid, number)

    def end(self, timeout: float = TERM_TIMEOUT) -> None:
        """It leaves the group if it can; in the end it is gone."""
        self.signal(signal.SIGTERM)
        try:
            if not self.wait(timeout):
                self.signal(signal.SIGKILL)
        except BaseException:
            self.signal(signal.SIGKILL)
            raise
        finally:
            self.wait(TERM_TIMEOUT)

    def let_go(self) -> None:
        """It is not ours alone and goes on without us."""
        self._close()
        if self.alive:
            _left_behind.append(self)
            del _left_behind[:-LEFT_BEHIND_MAX]

    def _wait_status(self) -> int | None:
        self.wait(TERM_TIMEOUT)
        return self._status

    def _close(self) -> None:
        fd, self._ready_fd = self._ready_fd, -1
        if fd >= 0:
            os.close(fd)
        if self._status is not None and not self.shared:
            with suppress(OSError):
                Path(self.path).unlink()  # It was killed and could not.


def reach(plan: Plan, end_at: float, stopped: Callable[[], bool]) -> Reached:
    """An agent that answers: the one that is there, or a new one. Where several processes start one at once, one of them wins and
    the others attach. A shared agent that is leaving is waited for, and another one is started (H193)."""
    _left_behind[:] = [child for child in _left_behind if child.alive]
    name_until = min(end_at, now() + NAME_GRACE)
    while True:
        found = _probe(plan) if plan.attach else Found.NONE
        if found is Found.AGENT or (found is Found.OTHER_NAME and now() >= name_until):
            return Reached(plan, None)
        if found is Found.NONE:
            child, plan = _start(plan, end_at, stopped)
            if child is not None:
                return Reached(plan, child)
        if stopped():
            raise NotWanted
        if now() >= end_at:
            raise JoinTimeout(f"group {shown(plan.group)}: {found.value}")
        time.sleep(LOOK_PERIOD)


def _start(plan: Plan, end_at: float, stopped: Callable[[], bool]) -> tuple[Child | None, Plan]:
    """A new agent that is ready; None if another process was quicker, and how to try again."""
    child = Child(plan)
    try:
        child.ready(end_at, stopped)
        return child, plan
    except StorageLocked:
        child.end()
        if not plan.shared:
            raise
    except AddressUnusable:
        child.end()
        if not plan.guessed:
            raise
        plan = plan.elsewhere()
    except BaseException:
        child.end()
        raise
    return None, plan


def _probe(plan: Plan) -> Found:
    """Whether an agent is there, and whether it stays. If it must be there, AgentLost says that it is not."""
    try:
        with Line(plan.path, timeout=PROBE_TIMEOUT) as line:
            if plan.settings is None:
                return Found.AGENT
            if line.call(Look, timeout=PROBE_TIMEOUT).state == "leaving":
                return Found.LEAVING
            return Found.OTHER_NAME if plan.name and line.welcome.agent.name != plan.name else Found.AGENT
    except AgentLost:
        if plan.settings is None:
            raise
        return Found.NONE


def _spawn(settings: dict[str, Any], ready_fd: int, log_fd: int) -> int:
    """Start it. Its settings go through memory that has no name: a key is never in a file or among the arguments."""
    settings_fd = os.memfd_create("holdfast-settings")
    try:
        os.write(settings_fd, msgspec.json.encode(settings))
        os.lseek(settings_fd, 0, os.SEEK_SET)
        numbers = {"--settings-fd": settings_fd, "--ready-fd": ready_fd, "--log-fd": log_fd, "--parent": os.getpid()}
        words = [word for name, number in numbers.items() for word in (name, str(number))]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.agent", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(settings_fd, ready_fd, log_fd),
            start_new_session=True,  # Ctrl-C in a terminal is for the parent, which then leaves in order.
            env=_environment(),
        )
    finally:
        os.close(settings_fd)
    process.returncode = 0  # From here on it is waited for by ``Child``; an object that forgets a running process would warn.
    return process.pid


def _environment() -> dict[str, str]:
    """Ours. With -P the child imports nothing from the directory it happens to run in, so it is told where this package is."""
    import sysconfig

    home = str(Path(__file__).resolve().parents[2])
    if home in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return dict(os.environ)
    rest = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{home}{os.pathsep}{rest}" if rest else home}
