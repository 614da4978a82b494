"""The recorder of `tickets-storm`, and its weather: what it must find, and that whatever is broken is mended again.

The storm itself, short and with real processes, is in tests/features/tickets.  Spec: tickets 1.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tickets_storm, tickets_storm_fleet
from benchmarks.ring_fleet import NeverHappened
from benchmarks.tickets_storm import judged, ratios
from benchmarks.tickets_storm_client import Client
from benchmarks.tickets_storm_fleet import Storm, Weather
from benchmarks.tickets_storm_record import END, START, USE, WAIT, Line, Use, Writer, late, lines, overlaps, shrunk, uses


def use(number: int, token: int, client: int, began_at: float, ended_at: float, deadline: float = 99.0) -> Use:
    return Use(number, token, client, began_at, ended_at, deadline)


def test_lines_of_one_token_are_one_use() -> None:
    """Beside others: each use has a start and an end; who was killed has its last look at the clock."""
    found = uses(
        [
            Line(WAIT, 1, 0.5),
            Line(START, 1, 1.0, 3, 7, 2.0),
            Line(USE, 1, 1.5, 3, 7, 3.0),
            Line(END, 1, 2.0, 3, 7, 3.0),
            Line(START, 2, 1.2, 4, 7, 2.0),  # another ticket, killed at once
        ]
    )
    assert found == [use(3, 7, 1, 1.0, 2.0, 3.0), use(4, 7, 2, 1.2, 1.2, 2.0)]


@pytest.mark.parametrize(
    "found, two",
    [
        ([use(0, 1, 1, 0.0, 1.0), use(0, 2, 2, 1.1, 2.0), use(1, 1, 3, 0.5, 1.5)], 0),
        ([use(0, 1, 1, 0.0, 1.0), use(0, 2, 2, 1.0, 2.0)], 1),
        ([use(0, 1, 1, 0.0, 5.0), use(0, 2, 2, 1.0, 2.0), use(0, 3, 3, 3.0, 4.0)], 2),  # a long one over two short ones
        ([use(0, 1, 1, 0.0, 1.0), use(0, 1, 2, 0.5, 1.0)], 1),  # the same token twice
        ([use(0, 2, 2, 1.0, 2.0), use(0, 1, 1, 0.0, 1.5)], 1),  # whatever their order
    ],
)
def test_two_users_of_one_ticket_are_found(found: list[Use], two: int) -> None:
    """G1: by the overlap of intervals, per ticket, whatever the tokens say."""
    assert len(overlaps(found)) == two


def test_tokens_that_do_not_grow_are_found() -> None:
    """G3: from use to use of one ticket, in the order of time."""
    assert shrunk([use(0, 1, 1, 0.0, 1.0), use(0, 2, 2, 2.0, 3.0), use(1, 1, 3, 2.5, 3.0)]) == []
    assert len(shrunk([use(0, 2, 1, 0.0, 1.0), use(0, 1, 2, 2.0, 3.0)])) == 1
    assert len(shrunk([use(0, 2, 1, 0.0, 1.0), use(0, 2, 2, 2.0, 3.0)])) == 1


def test_a_use_after_the_deadline_is_found() -> None:
    """F9: nobody acts when its deadline has passed, whoever else may or may not have the ticket."""
    assert late([use(0, 1, 1, 0.0, 1.9, 2.0)]) == []
    assert len(late([use(0, 1, 1, 0.0, 2.0, 2.0)])) == 1


def test_records_are_read_from_files_and_judged(tmp_path: Path) -> None:
    """A line that its writer did not finish is none."""
    for name, began_at in (("1", 1.0), ("2", 1.5)):
        writer = Writer(str(tmp_path / name))
        writer.write(START, began_at, 0, int(name), 9.0)
        writer.write(END, began_at + 1.0, 0, int(name), 9.0)
    with (tmp_path / "2").open("ab") as file:
        file.write(b'["use",7,9.0')
    assert len([*lines(tmp_path)]) == 4
    found = judged(tmp_path)
    assert (found["uses"], found["used_by_two"], found["tokens_not_growing"], found["used_after_deadline"]) == (2, 1, 0, 0)
    assert found["shown"][0][0]["client"] == os.getpid()


def test_a_storm_that_was_not_seen_to_its_end_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that broke off proves nothing."""
    assert not tickets_storm.GOALS["clients_served_after"].met_by(ratios([])["clients_served_after"])

    def broken(*_: Any) -> dict[str, Any]:
        raise NeverHappened("never happened: seat 0 votes")

    monkeypatch.setattr(tickets_storm, "storm_apart", broken)
    report = tickets_storm.run(1)
    assert report.verdict == "miss"
    assert "seat 0 votes" in report.as_text()


class Ticket:
    """Valid for some looks."""

    number, token, deadline = 3, 7, 1e12

    def __init__(self, looks: int) -> None:
        self._looks = looks

    @property
    def valid(self) -> bool:
        self._looks -= 1
        return self._looks >= 0


@pytest.mark.parametrize(
    "looks, careless, written",
    [(0, False, []), (2, False, [START, USE]), (9, False, [START, USE, USE, END]), (0, True, [START, USE, USE, END])],
)
def test_a_client_writes_only_what_it_was_allowed(
    looks: int, careless: bool, written: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F9: no look, no line; a careless one writes on, which is what the recorder is there for."""
    at = iter([1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr("benchmarks.tickets_storm_client.now", lambda: next(at))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    client = Client(None, "gpu", 8, Writer(str(tmp_path / "1")), None, careless=careless)  # type: ignore[arg-type]
    client._use(Ticket(looks), until=4.0)
    assert [line.what for line in lines(tmp_path)] == written


class Process:
    """Something that can be killed and stopped."""

    def __init__(self, crew: StubCrew, name: str) -> None:
        self._crew, self.pid = crew, 0
        self._name = name

    def end(self) -> None:
        self._crew.said.append(f"{self._name} ends")

    def kill(self) -> None:
        self.end()

    def wait(self) -> None: ...

    def send_signal(self, number: int) -> None:
        self._crew.said.append(f"{self._name} {signal.Signals(number).name}")


class StubCrew:
    """Three agents and a client that only say what is done to them."""

    can_cut = True

    def __init__(self) -> None:
        self.said: list[str] = []
        self.agents = {number: Process(self, f"agent{number}") for number in range(3)}
        self.clients = {0: Process(self, "client0")}

    def start_agent(self, number: int) -> None:
        self.said.append(f"agent{number} starts")

    def start_client(self, number: int) -> None:
        self.said.append(f"client{number} starts")

    def cut(self, one: int, other: int) -> None:
        self.said.append("cut")

    def heal(self) -> None:
        self.said.append("heal")


@pytest.fixture
def crew(monkeypatch: pytest.MonkeyPatch) -> StubCrew:
    crew = StubCrew()
    monkeypatch.setattr(os, "kill", lambda pid, number: crew.said.append(signal.Signals(number).name))
    return crew


def weather(crew: Any, *faults: str) -> Weather:
    return Weather(crew, Storm(faults=faults, interval=(0.0, 0.0)), seed=1)


@pytest.mark.parametrize(
    "fault, done, mended",
    [
        ("kill", " ends", " starts"),
        ("stop", "SIGSTOP", "SIGCONT"),
        ("cut", "cut", "heal"),
        ("split", "cut", "heal"),
        ("stop_client", "SIGSTOP", "SIGCONT"),
        ("kill_client", " ends", " starts"),
    ],
)
def test_what_is_broken_is_mended(fault: str, done: str, mended: str, crew: StubCrew) -> None:
    """After a storm everybody must be served again, so nothing of it may be left."""
    it = weather(crew, fault)
    getattr(it, f"_{fault}")()
    it.clear()
    assert done in crew.said[0]
    assert mended in crew.said[-1]
    assert sum(it.counts.values()) == 1


def test_no_more_agents_are_in_trouble_than_a_majority_can_bear(crew: StubCrew) -> None:
    """Safety needs no majority, but a run without one shows nothing."""
    it = weather(crew, "kill")
    for _ in range(10):
        it._kill()
    assert it.counts["agents killed"] == tickets_storm_fleet.TROUBLED_MAX


def test_overlapping_cuts_are_healed_together(crew: StubCrew) -> None:
    """The filter forgets all rules at once, so the last cut to end heals."""
    it = weather(crew, "cut")
    it._cut()
    it._split()
    it._healed()
    assert "heal" not in crew.said
    it._healed()
    assert crew.said[-1] == "heal"


@pytest.mark.parametrize("can_cut", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_every_kind_of_fault_happens(can_cut: bool, seed: int, crew: StubCrew, monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: a short storm has each kind that is possible here, whatever the seed and however slow the machine; none that is not."""
    clock = [0.0]
    monkeypatch.setattr(tickets_storm_fleet, "now", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    crew.can_cut = can_cut
    stub: Any = crew
    it = Weather(stub, Storm(), seed)
    it.blow(0.0)
    cuts = {"links cut", "partitions"} if can_cut else set()
    assert set(it.counts) == {"agents killed", "agents stopped", "clients killed", "clients stopped"} | cuts
    it.blow(60.0)
    assert clock[0] >= 60.0
