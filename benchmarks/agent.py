"""`agent`: what an agent costs while nothing happens, and what it costs to ask it.

    rss_mib           resident memory of the largest of the idle agents of a group with seats, without HTTP: ring, leadership and tickets
    rss_ring_mib      of a group without seats: the ring alone
    rss_http_mib      of an idle one with HTTP
    core_share        CPU seconds per second of an idle one without HTTP, the mean of the group; beside it the busiest
    api_p50_ratio     ``group.owns(key)`` of the blocking client / a question to a bare echo; medians
    api_rate_ratio    questions per second of 50 tasks on one connection of the event loop / of a bare echo driven in the same way
    start_ratio       from the start of the process to its answer to Hello / to the end of the same imports in a bare interpreter
    cli_members_ms    wall-clock milliseconds of ``holdfast members``
    cli_members_1000_ms   the same of a group of 1000, into a pipe
    cli_members_1000_terminal_ms   and on a terminal
    event_bytes       of one change among 1000 members, as a client that watches reads it
    event_ms          CPU milliseconds of that client per change, until the event is read and ``group.members`` has it
    event_ratio_look  the same / the answer to a ``Look`` of these 1000 members
    since_bytes       of the answer to a client that missed one change among 1000 members and asks what changed since its version
    since_ms          CPU milliseconds of that client until ``group.members`` has it
    packets_of_equation_2   UDP packets that an idle member sends / the 4k per T_l that Equation 2 of the paper asks for
    packets_of_equation_2_ring   the same of a group without seats: the ring alone, which is what the paper counts

One group serves all but one row: at T_l = 1 s, with a key, state directories and three seats. First it is left alone and watched, then
one of its agents is asked. A second group, without seats, shows what an agent needs that runs the ring alone.
What is compared takes turns, and best round stands against best round.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from itertools import count
from os import openpty, wait4
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.request import urlopen

from benchmarks.agent_events import Watched
from benchmarks.agent_fleet import (
    POLL_INTERVAL,
    AgentProcess,
    Traffic,
    compile_package,
    cpu_seconds,
    group_of,
    group_without_seats,
    lone_agent,
    until,
)
from benchmarks.datagrams import child
from benchmarks.harness import ROOT, Contestant, Report, at_least, at_most, median_ratio, ratio, show_progress, take_turns
from holdfast.local import calls

GOALS = {
    "rss_mib": at_most(32),
    "rss_ring_mib": at_most(29),
    "rss_http_mib": at_most(42),
    "core_share": at_most(0.005),
    "api_p50_ratio": at_most(1.5),
    "api_rate_ratio": at_least(0.6),
    "start_ratio": at_most(2),
    "cli_members_ms": at_most(200),
    "cli_members_1000_ms": at_most(200),
    "cli_members_1000_terminal_ms": at_most(200),
    "event_bytes": at_most(2048),
    "event_ms": at_most(0.2),
    "event_ratio_look": at_most(0.1),
    "since_bytes": at_most(2048),
    "since_ms": at_most(0.2),
}
RATIOS = {  # of seconds: a rate is the other way round
    "api_p50_ratio": ("owns", "echo"),
    "api_p50_ratio_settled": ("owns", "echo_settled"),
    "api_p50_ratio_granted": ("granted", "echo"),
    "api_p50_ratio_look": ("look", "echo_view"),
    **{f"two_cores_{kind}": (f"{kind}_apart", kind) for kind in ("owns", "granted", "look", "echo")},
    "api_rate_ratio": ("echo_piped", "owns_piped"),
    "api_rate_ratio_look": ("echo_view_piped", "look_piped"),
    "api_rate_ratio_unbatched": ("echo_piped_unbatched", "owns_piped"),
    "start_ratio": ("start_agent", "start_imports"),
    "cli_members_ratio": ("cli_members", "cli_nothing"),
    "cli_members_1000_ratio": ("cli_members_1000", "cli_nothing"),
    "event_ratio_look": ("event", "event_look"),
    "event_ratio_told": ("event_told", "event_look"),
}
ONE_BY_ONE = ("owns", "echo", "echo_settled", "granted", "look", "echo_view")  # both sides on one core
ON_TWO_CORES = ("owns_apart", "granted_apart", "look_apart", "echo_apart")
PIPED = ("owns_piped", "echo_piped", "echo_piped_unbatched", "look_piped", "echo_view_piped")
ROUNDS = 12
CROWD = 1000  # members of the group that `holdfast members` is to list within its goal
K = 3
NEIGHBOURS = 2 * K
IP_UDP_BYTES = 28  # of headers around each packet
PAGES = ("/", "/metrics", "/v1/members")
IMPORTS = """
from holdfast.agent.life.lean import lean_imports
with lean_imports():
    import holdfast.agent.life.main
import cryptography.hazmat.primitives.ciphers.aead  # because there is a key
import sys
open(sys.argv[1], "w").close()
sys.stdin.read()
"""


class Size(NamedTuple):
    """How much of it."""

    members: int = 16
    lease: float = 1.0  # T_l
    settle_seconds: float = 15.0  # between the forming of the group and the first look
    idle_seconds: float = 60.0
    idle_ring_seconds: float = 24.0  # without seats: three times as long as it takes until lists are compared again
    calls: int = 500  # one by one, per round
    piped: int = 5000  # by 50 tasks, per round


SIZE = Size()


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    compile_package()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        ring = ring_alone(Path(folder), size)
        show_progress(f"a group of {size.members}")
        agents = stack.enter_context(group_of(size.members, Path(folder), size.lease))
        idle = watched(agents, size)
        contest = Contest(stack, agents[0], Path(folder), size)
        seconds = take_turns(contest.contestants(), rounds)
    ratios = {**_of_idle(idle), **_of_ring(ring), **{name: ratio(seconds, *pair) for name, pair in RATIOS.items()}}
    for name in ("cli_members", "cli_members_1000", "cli_members_1000_terminal"):
        ratios[f"{name}_ms"] = min(seconds[name]) * 1000
    ratios["event_ms"] = min(seconds["event"]) * 1000
    ratios["event_bytes"] = contest.watched.bytes["event"]
    ratios["since_ms"] = min(seconds["event_since"]) * 1000
    ratios["since_bytes"] = contest.watched.bytes["event_since"]
    raw = {**size._asdict(), "rounds": rounds, "idle": idle, "ring": ring, **_raw(seconds, contest)}
    return Report("agent", GOALS, ratios, raw, idle["problems"])


# Left alone.


def watched(agents: Sequence[AgentProcess], size: Size) -> dict[str, Any]:
    """Memory, CPU and traffic of a group in which nothing happens. The questions about it are outside of what is counted."""
    show_progress("the group settles")
    time.sleep(size.settle_seconds)
    views = [agent.ask(calls.Look).version for agent in agents]
    traffic, began_at = [agent.traffic() for agent in agents], time.monotonic()
    cpu = [agent.cpu_seconds for agent in agents]
    show_progress(f"the group is left alone for {size.idle_seconds:g} s")
    time.sleep(size.idle_seconds)
    shares = [(agent.cpu_seconds - before) / (time.monotonic() - began_at) for agent, before in zip(agents, cpu, strict=True)]
    memory = [(agent.rss_mib, agent.private_mib) for agent in agents]
    seconds = time.monotonic() - began_at
    sent = [_since(agent.traffic(), before) for agent, before in zip(agents, traffic, strict=True)]
    moved = [agent.ask(calls.Look).version for agent in agents] != views
    *plain, http = memory
    return {
        "rss_mib": [round(rss, 2) for rss, _ in plain],
        "private_mib": [round(private, 2) for _, private in plain],
        "rss_http_mib": round(http[0], 2),
        "private_http_mib": round(http[1], 2),
        "rss_http_served_mib": round(_served(agents[-1]), 2),
        "core_share": [round(share, 5) for share in shares[:-1]],
        "core_share_mean": round(mean(shares[:-1]), 5),
        "core_share_http": round(shares[-1], 5),
        **sent_per_member(sent, seconds, size),
        "problems": ["the group changed while it was to be idle; is the machine too busy?"] if moved else [],
    }


def ring_alone(folder: Path, size: Size) -> dict[str, Any]:
    """Memory and traffic of a group without seats, settled as the other one."""
    show_progress(f"a group of {size.members} without seats")
    with group_without_seats(size.members, folder, size.lease) as agents:
        time.sleep(size.settle_seconds)
        memory = {
            "rss_mib": [round(agent.rss_mib, 2) for agent in agents],
            "private_mib": [round(agent.private_mib, 2) for agent in agents],
        }
        traffic, began_at = [agent.traffic() for agent in agents], time.monotonic()
        show_progress(f"and is left alone for {size.idle_ring_seconds:g} s")
        time.sleep(size.idle_ring_seconds)
        seconds = time.monotonic() - began_at
        sent = [_since(agent.traffic(), before) for agent, before in zip(agents, traffic, strict=True)]
    return {**memory, **sent_per_member(sent, seconds, size)}


def sent_per_member(sent: Sequence[Traffic], seconds: float, size: Size) -> dict[str, float]:
    """Against Equation 2: each of 2k neighbours is asked once per T_l and answered once."""
    packets = mean(each.packets for each in sent) / seconds
    payload = mean(each.payload_bytes for each in sent) / seconds
    return {
        "packets_per_second": round(packets, 3),
        "payload_bytes_per_second": round(payload, 1),
        "ip_bytes_per_second": round(payload + IP_UDP_BYTES * packets, 1),
        "equation_2_packets_per_second": 2 * min(NEIGHBOURS, size.members - 1) / size.lease,
    }


def _since(now: Traffic, before: Traffic) -> Traffic:
    return Traffic(now.packets - before.packets, now.payload_bytes - before.payload_bytes)


def _served(agent: AgentProcess) -> float:
    """Memory after each page was asked for once."""
    for page in PAGES:
        with urlopen(agent.http + page) as answer:
            answer.read()
    return agent.rss_mib


def _of_ring(ring: Mapping[str, Any]) -> dict[str, float]:
    return {
        "rss_ring_mib": max(ring["rss_mib"]),
        "packets_of_equation_2_ring": ring["packets_per_second"] / ring["equation_2_packets_per_second"],
    }


def _of_idle(idle: Mapping[str, Any]) -> dict[str, float]:
    return {
        "rss_mib": max(idle["rss_mib"]),
        "rss_http_mib": idle["rss_http_mib"],
        "core_share": idle["core_share_mean"],
        "core_share_worst": max(idle["core_share"]),
        "packets_of_equation_2": idle["packets_per_second"] / idle["equation_2_packets_per_second"],
    }


# Asked.


class Contest:
    """One agent, one bare echo, one process that asks both; and processes that are started."""

    def __init__(self, stack: ExitStack, agent: AgentProcess, folder: Path, size: Size) -> None:
        self.cpu: dict[str, list[dict[str, float]]] = {}  # seconds per call or start, of each side
        self._agent, self._folder, self._size = agent, folder, size
        echo, settled = stack.enter_context(echo_server(folder)), stack.enter_context(echo_server(folder, "settled"))
        self._crowd = stack.enter_context(server_of("agent_crowd", str(folder / "crowd"), str(CROWD)))
        self._asker = stack.enter_context(child("agent_calls", agent.socket, str(agent.pid), *echo, *settled))
        self._serial = count()
        self.watched = Watched()

    def contestants(self) -> dict[str, Contestant]:
        members, crowd = ([sys.executable, "-m", "holdfast", "members", "--agent", path] for path in (self._agent.socket, self._crowd[0]))
        return {
            **{kind: partial(self._asked, kind, self._size.calls) for kind in (*ONE_BY_ONE, *ON_TWO_CORES)},
            **{kind: partial(self._asked, kind, self._size.piped) for kind in PIPED},
            "start_agent": self._started,
            "start_imports": self._imported,
            "cli_members": partial(self._ran, "cli_members", members),
            "cli_members_1000": partial(self._ran, "cli_members_1000", crowd),
            "cli_members_1000_terminal": partial(self._ran, "cli_members_1000_terminal", crowd, terminal=True),
            "cli_nothing": partial(self._ran, "cli_nothing", [sys.executable, "-c", "pass"]),
            **{name: partial(self._watched, name, step) for name, step in self.watched.contestants().items()},
        }

    def _asked(self, kind: str, number: int) -> float:
        self._asker.order(kind=kind, calls=number)
        found = self._asker.answer()
        self._note(kind, client=found["client"], server=found["server"])
        return float(found["seconds"])

    def _started(self) -> float:
        began_at = time.perf_counter()
        with lone_agent(self._folder / f"lone{next(self._serial)}") as agent:
            agent.until_it_answers()
            took = time.perf_counter() - began_at
            self._note("start_agent", process=agent.cpu_seconds)
        return took

    def _imported(self) -> float:
        """Looked for in the same way as an agent's socket."""
        mark = self._folder / f"imported{next(self._serial)}"
        began_at = time.perf_counter()
        with subprocess.Popen([sys.executable, "-c", IMPORTS, str(mark)], stdin=subprocess.PIPE) as process:
            until(mark.exists, "everything is imported", POLL_INTERVAL, _nothing)
            took = time.perf_counter() - began_at
            self._note("start_imports", process=cpu_seconds(process.pid))
        return took

    def _watched(self, name: str, step: Contestant) -> float:
        """CPU seconds, of this process."""
        took = step()
        self._note(name, process=took)
        return took

    def _ran(self, name: str, command: list[str], *, terminal: bool = False) -> float:
        """Seconds until it ended."""
        read, write = openpty() if terminal else os.pipe()
        began_at = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=write)
        os.close(write)
        said = b"".join(_read(read))
        os.close(read)
        _, status, used = wait4(process.pid, 0)
        took = time.perf_counter() - began_at
        process.returncode = status
        assert status == 0, f"{command} ended with {status}: {said!r}"
        self._note(name, process=used.ru_utime + used.ru_stime)
        return took

    def _note(self, name: str, **spent: float) -> None:
        self.cpu.setdefault(name, []).append(spent)


def _read(file: int) -> Iterator[bytes]:
    """To its end, which on a terminal is an error."""
    with suppress(OSError):
        while data := os.read(file, 1 << 16):
            yield data


def _nothing() -> None:
    """There is nothing to check while it is waited for."""


def echo_server(folder: Path, *words: str) -> AbstractContextManager[tuple[str, str]]:
    return server_of("agent_echo", str(folder / "-".join(("echo", *words))), *words)


@contextmanager
def server_of(module: str, path: str, *words: str) -> Iterator[tuple[str, str]]:
    """Its path and its pid."""
    process = subprocess.Popen([sys.executable, "-m", f"benchmarks.{module}", path, *words], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield path, str(process.pid)
    finally:
        process.kill()
        process.communicate()


def _raw(seconds: Mapping[str, list[float]], contest: Contest) -> dict[str, object]:
    asked = [name for name in seconds if not name.startswith(("start", "cli"))]
    return {
        "microseconds": {name: round(min(seconds[name]) * 1e6, 2) for name in asked},
        "event_frame_bytes": contest.watched.bytes,
        "calls_per_second": {name: round(1 / min(seconds[name])) for name in asked if "piped" in name},
        "milliseconds": {name: round(min(each) * 1e3, 1) for name, each in seconds.items() if name not in asked},
        "cpu_microseconds": {name: least_cpu(contest.cpu[name]) for name in seconds},
        "median_ratio_of_a_round": {name: round(median_ratio(seconds, *pair), 3) for name, pair in RATIOS.items()},
        "wall_seconds": {name: [round(each, 7) for each in times] for name, times in seconds.items()},
    }


def least_cpu(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each side in its best round, microseconds; for those who distrust the wall clock of a busy machine."""
    return {side: round(min(each[side] for each in rounds) * 1e6, 2) for side in rounds[0]}
