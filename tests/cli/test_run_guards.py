"""Nothing of a command acts after its deadline while any of ``holdfast run``, guardian and agent runs (F14, H150).

Each case stops (SIGSTOP) or kills one or two of the three while a detached grandchild of the command works, deaf to SIGTERM. The hold
then ends, and the command of another agent waits for the same lock. The outside recorder is what the two commands wrote.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.cli.run.guardian import PR_SET_CHILD_SUBREAPER
from tests.agent.lock_fleet import Locks
from tests.cli.recorder import WORKER, Record, alive
from tests.support.agents import AgentProcess, until
from tests.support.realtime import repeated

LENGTH = 3.0  # seconds of a lock: SIGKILL 0.15 s, and the agent's own 0.075 s before its end
MARGIN = 0.0375  # seconds: the agent and the process that it ends may both be late by half of the shortest margin
STOPPED, KILLED = signal.SIGSTOP, signal.SIGKILL
SINGLE = [(who, how) for who in ("run", "guardian", "agent") for how in (STOPPED, KILLED)]
PAIRS = [
    ((one, how), (other, too))
    for one, other in (("guardian", "run"), ("guardian", "agent"), ("run", "agent"))
    for how in (STOPPED, KILLED)
    for too in (STOPPED, KILLED)
]
SHORT = [  # one of each who is left alone with it
    (("guardian", STOPPED), ("run", KILLED)),
    (("guardian", STOPPED), ("run", STOPPED)),
    (("guardian", KILLED), ("run", KILLED)),
    (("guardian", KILLED), ("run", STOPPED)),
    (("guardian", STOPPED), ("agent", KILLED)),
]
Fault = tuple[str, signal.Signals]


class Run(NamedTuple):
    """One ``holdfast run``."""

    process: subprocess.Popen[bytes]
    record: Record

    def pid(self, who: str, agent: AgentProcess) -> int:
        return {"run": self.process.pid, "agent": agent.pid, "guardian": children(self.process.pid)[0]}[who]


Start = Callable[..., Run]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locks]:
    with Locks(tmp_path_factory.mktemp("locks")) as locks:
        locks.agent()
        locks.agent()
        yield locks


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Orphans come to this process, of the same session: under init, the kernel would wake a stopped guardian when `holdfast run` dies."""
    libc = ctypes.CDLL(None)
    started: list[Run] = []
    guardians: set[int] = set()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def run(agent: AgentProcess, name: str, *worker: object) -> Run:
        record = Record(tmp_path / f"record{len(started)}")
        flags = ["--agent", agent.socket, "--hold", f"lock:{name}", "--option", f"length={LENGTH}"]
        command = [sys.executable, "-S", "-E", *map(str, (WORKER, record.path, *worker))]
        process = subprocess.Popen([sys.executable, "-m", "holdfast", "run", *flags, "--", *command], stderr=subprocess.DEVNULL)
        started.append(Run(process, record))
        return started[-1]

    yield run
    for each in started:
        guardians.update(children(each.process.pid) if each.process.poll() is None else ())
        each.process.kill()
        each.process.wait()
    for pid in {*guardians, *(pid for each in started for pid in each.record.pids())} & set(children(os.getpid())):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def name_of(faults: tuple[Fault, ...]) -> str:
    return " ".join(f"{who} {'stopped' if how is STOPPED else 'killed'}" for who, how in faults)


def attempt(locks: Locks, start: Start, faults: tuple[Fault, ...], name: str, *worker: object) -> str:
    """What went wrong: all that the first one wrote must be older than the second one."""
    touched = any(who == "agent" for who, _ in faults)
    agent = locks.agent() if touched else locks.agents[0]
    first = start(agent, name, "daemon", 100, "deaf", *worker)
    until(first.record.working, "the first one works")
    second = start(locks.agents[1], name)
    for pid, how in [(first.pid(who, agent), how) for who, how in faults]:
        os.kill(pid, how)
    if not (touched or ("run", KILLED) in faults or faults == (("guardian", KILLED),)):  # In these the hold ends by itself.
        locks.service.take_away(name)
    until(second.record.working, "the second one works")
    until(lambda: alive(first.record.pids()) == set(), "nothing is left of the first one")
    if touched:
        agent.process.kill()
    last, begun = max(first.record.times("work") + first.record.times("term")), second.record.times("start")[0]
    return "" if last < begun else f"the first one acted {last - begun:.3f} s after the second one had begun"


def check(locks: Locks, start: Start, faults: tuple[Fault, ...], *worker: object) -> None:
    repeated(lambda number: attempt(locks, start, faults, f"{name_of(faults)} {worker} {number}", *worker), margin=MARGIN)


@pytest.mark.parametrize("fault", SINGLE, ids=lambda fault: name_of((fault,)))
def test_one_is_stopped_or_killed(locks: Locks, start: Start, fault: Fault) -> None:
    """F14, H150: one of the three is stopped or killed; the two others end everything in time, a detached grandchild too."""
    check(locks, start, (fault,))


@pytest.mark.parametrize("faults", SHORT, ids=name_of)
def test_one_is_left(locks: Locks, start: Start, faults: tuple[Fault, ...]) -> None:
    """F14, H150: two of the three are stopped or killed; the last one ends everything in time."""
    check(locks, start, faults)


@pytest.mark.nightly
@pytest.mark.parametrize("faults", [pair for pair in PAIRS if pair not in SHORT], ids=name_of)
def test_any_one_is_left(locks: Locks, start: Start, faults: tuple[Fault, ...]) -> None:
    """F14, H150: as above, for all other pairs."""
    check(locks, start, faults)


@pytest.mark.parametrize(
    "faults",
    [
        (("guardian", STOPPED), ("run", KILLED)),
        pytest.param((("guardian", STOPPED), ("run", STOPPED)), marks=pytest.mark.nightly),
        pytest.param((("guardian", KILLED), ("run", STOPPED)), marks=pytest.mark.nightly),
        pytest.param((("guardian", STOPPED), ("agent", KILLED)), marks=pytest.mark.nightly),
        pytest.param((("guardian", KILLED), ("agent", STOPPED)), marks=pytest.mark.nightly),
    ],
    ids=name_of,
)
def test_descent_is_enough(locks: Locks, start: Start, faults: tuple[Fault, ...]) -> None:
    """H150: a grandchild with an empty environment bears no mark; it is found below run or the guardian, stopped or not."""
    check(locks, start, faults, "bare")
