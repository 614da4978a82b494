"""What `agent` measures with: its arithmetic, and that an echo is an echo.

No test here asserts a speed. The whole benchmark, with real agents, runs in ``test_harness``.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.agent import ON_TWO_CORES, ONE_BY_ONE, PIPED, RATIOS, Size, echo_server, least_cpu, sent_per_member
from benchmarks.agent_calls import placed
from benchmarks.agent_echo import EchoConnection, EchoLine
from benchmarks.agent_events import Watched
from benchmarks.agent_fleet import Traffic, compile_package, cpu_seconds


@pytest.mark.parametrize("members, packets", [(16, 12.0), (4, 6.0)])
def test_packets_are_compared_with_equation_2(members: int, packets: float) -> None:
    """Paper 000, Eq. 2: one request and one answer per neighbour and T_l, 4k of them; fewer where all others are fewer than 2k."""
    found = sent_per_member([Traffic(130, 26_000), Traffic(110, 22_000)], 10.0, Size(members=members, lease=1.0))
    assert found["equation_2_packets_per_second"] == packets
    assert (found["packets_per_second"], found["payload_bytes_per_second"]) == (12.0, 2400.0)
    assert found["ip_bytes_per_second"] == 2400 + 12 * 28


def test_agents_have_byte_code(tmp_path: Path) -> None:
    """H221: memory is that of an agent that was installed, and does not compile what it imports."""
    source = tmp_path / "deep" / "module.py"
    source.parent.mkdir()
    source.write_text("answer = 42\n")
    compile_package(tmp_path)
    assert Path(importlib.util.cache_from_source(str(source))).exists()


def test_each_side_keeps_its_best_round() -> None:
    """CPU stands beside the wall clock, per side."""
    assert least_cpu([{"client": 3e-6, "server": 1e-6}, {"client": 2e-6, "server": 4e-6}]) == {"client": 2.0, "server": 1.0}


def test_every_contestant_is_compared() -> None:
    """A number that stands in no ratio is not worth its time."""
    compared = {name for pair in RATIOS.values() for name in pair}
    assert {*ONE_BY_ONE, *ON_TWO_CORES, *PIPED} <= compared


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one core")
def test_who_asks_and_who_answers_are_where_the_kind_says() -> None:
    """H333: one by one on the same core, or on two; tasks at once where the scheduler puts them. Afterwards it is as before."""
    cores = os.sched_getaffinity(0)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as server:
        for kind, sharing in (("owns", {True}), ("owns_apart", {False}), ("owns_piped", {True})):
            with placed(kind, server.pid):
                ours, theirs = os.sched_getaffinity(0), os.sched_getaffinity(server.pid)
                assert {ours == theirs} == sharing
                assert {len(ours), len(theirs)} == ({len(cores)} if "piped" in kind else {1})
            assert os.sched_getaffinity(0) == os.sched_getaffinity(server.pid) == cores


def test_changes_reach_the_client_without_a_look() -> None:
    """H204: every change of a group of 1000 is one frame of less than 2 KB, in the client's list when its event is read."""
    watched = Watched()
    for step in watched.contestants().values():
        assert step() >= 0
    assert (watched.looks, watched.bytes["event"] < 2048 < watched.bytes["event_look"], watched.bytes["event_since"] < 2048) == (
        0,
        True,
        True,
    )


def test_the_clock_of_another_process_is_its_cpu_time() -> None:
    """The same number as the process itself reads, here of this one."""
    before = time.process_time()
    assert before <= cpu_seconds(os.getpid()) <= time.process_time()


def test_an_echo_answers_what_it_was_asked(tmp_path: Path) -> None:
    """Both clients, batched or not, and the server: each frame is decoded and encoded, and goes to whoever asked."""

    async def piped(path: str, *, batched: bool) -> list[int]:
        connection = await EchoConnection.open(path, batched=batched)
        with closing(connection):
            return [*await asyncio.gather(*(connection.ask(number) for number in range(50)))]

    with echo_server(tmp_path, "settled") as (path, _), closing(EchoLine(path)) as line:
        assert line.ask([1, b"key", {"a": None}]) == [1, b"key", {"a": None}]
        for batched in (False, True):
            assert asyncio.run(piped(path, batched=batched)) == list(range(50))
