"""The paper's placement with real agents: cells move to other agents, who leaves hands them on, and a ticket whose guardians were killed.

Spec: tickets 4, 5.7, 9.5, 9.6; D27, H140. One agent is the seat, which keeps the first cell of every pool. A pool of four tickets has four
holders, and each of the other three cells is kept by the three other holders. What is asked of an agent it is asked as a user does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ring_fleet import free_addresses
from holdfast.features.tickets.calls import AbandonTicket, ReadTickets
from holdfast.features.tickets.protocol.abandoning import ABANDONED_FENCE
from holdfast.local.calls import Acquire, GrantItem, Info, Stopped
from tests.agent.raw_client import RawClient, Sent, now
from tests.support.agents import AgentProcess, Fleet, until

OF = 4
LEASE = 7.0  # seconds in which a question about a killed holder is asked: the guardian that is left still counts with it
ROUND = 0.3
COMMAND_TIMEOUT = 60.0


class Member:
    """An agent and one client of it, which asks and holds."""

    def __init__(self, agent: AgentProcess) -> None:
        self.agent, self.client = agent, RawClient(agent.socket)
        self.client.sock.settimeout(COMMAND_TIMEOUT)
        self.serial = 0  # of what it asked for last

    def hold(self, pool: str) -> GrantItem:
        self.serial = self.client.say(Acquire, "ticket", pool, {"of": OF})
        return self.client.grant(self.serial, "granted")

    def until_renewed(self) -> None:
        """By a question that was asked from now on: what was asked before extends no ticket for a whole lease from now."""
        asked_at = now()
        while self.client.grant(self.serial, "extended").deadline < asked_at + LEASE:
            pass

    def count(self, what: str) -> int:
        """One of its numbers about tickets; those that are zero are not told."""
        info: dict[str, Any] = self.client.ask(Info)
        return int(info["metrics"].get(f"ticket_{what}", 0))


class Ringed:
    """A seat that nothing happens to, and members: a group of its own for each test, because one kills most of it."""

    def __init__(self, fleet: Fleet, folder: Path, seat: str) -> None:
        self._fleet = fleet
        self.seat = Member(fleet.start(name="seat", bind=seat, state_dir=str(folder / "state")))
        self.all = [self.seat]

    def member(self, name: str) -> Member:
        agent = self._fleet.start(name=name, runtime=self._fleet.folder / name)
        agent.until_said("Joined", member=agent.id)
        member = Member(agent)
        self.all.append(member)
        return member

    def members(self, *names: str) -> list[Member]:
        with ThreadPoolExecutor(len(names)) as pool:
            return [*pool.map(self.member, names)]

    def settled(self, pool: str, names: str) -> tuple[list[Member], list[GrantItem]]:
        """Four holders; the first has the first ticket, and each of the others is kept by all but itself."""
        members = self.members(*(f"{pool}-{name}" for name in names))
        held = [each.hold(pool) for each in members]
        assert sorted(item.number for item in held) == [0, 1, 2, 3]
        assert held[0].number == 0
        until(lambda: [each.count("guardian_cells") for each in members] == [3, 2, 2, 2], "the guardians are where the paper wants them")
        return members, held


@pytest.fixture
def ringed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ringed]:
    folder = tmp_path_factory.mktemp("ringed")
    (seat,) = free_addresses(1)
    numbers = {"ticket_lease": LEASE, "ticket_round": ROUND, "longest_grant": LEASE, "lease": 2.0}
    with Fleet(folder, seeds=[seat], ticket_guardians="ring", ticket_k=1, **numbers) as fleet:
        ringed = Ringed(fleet, folder, seat)
        yield ringed
        for each in ringed.all:
            each.client.sock.close()


def test_whoever_leaves_hands_on_what_it_keeps(ringed: Ringed) -> None:
    """9.6: the cell of the second holder is kept by the other three, and two of them leave at the same time. They go only when others keep
    it: it is renewed, read by a majority, and its holder notices nothing. That the cells moved is counted (5.7)."""
    members, held = ringed.settled("leaving", "abcd")
    assert sum(each.count("moves") for each in members) > 0
    stays = members[1]
    before = stays.count("moves")
    for each in members[2:]:
        each.agent.process.terminate()
    for each in members[2:]:
        each.client.grant(each.serial, "stop")
        each.client.ask(Stopped, each.serial)
    assert [each.agent.wait() for each in members[2:]] == [0, 0]
    stays.until_renewed()
    assert stays.count("moves") > before
    holders = {each.number: each.token for each in members[0].client.ask(ReadTickets, "leaving").holders}
    assert holders == {item.number: item.token for item in held[:2]}
    assert members[0].count("cells_lost") == 0


def test_a_ticket_whose_guardians_were_killed(ringed: Ringed) -> None:
    """9.5, D27: kill -9 of three holders leaves each of their cells one guardian of three. While that one counts with a grant, nothing is
    given up; then the cell is lost, which is said and counted. After an operator's word its ticket is had again, under a token that is
    2^20 beyond what its guardians had seen."""
    members, held = ringed.settled("killed", "abcd")
    first, lost = members[0], (held[0].number - 1) % OF
    for each in members[1:]:
        each.agent.process.kill()
    for each in members[1:]:
        each.agent.wait()
    with pytest.raises(Sent, match="one of its guardians granted it lately"):
        ringed.seat.client.ask(AbandonTicket, "killed", lost)
    assert (first.count("abandoned"), first.count("cells_lost")) == (0, 0)
    until(lambda: first.count("cells_lost") == 1, "the cell is lost")
    assert first.agent.said("CellLost", pool="killed", level="warning") is not None
    with pytest.raises(Sent, match="Unavailable"):
        first.client.ask(ReadTickets, "killed")
    words = [sys.executable, "-m", "holdfast", "ticket", "abandon", "killed", str(lost), "--holder-is-dead", "--agent", first.agent.socket]
    told = subprocess.run(words, stderr=subprocess.PIPE, timeout=COMMAND_TIMEOUT, check=False)
    assert (told.returncode, told.stderr) == (0, b"")
    assert first.count("abandoned") == 1
    again = first.hold("killed")
    assert again.number == lost
    (former,) = [item.token for item in held if item.number == lost]
    assert again.token > former + ABANDONED_FENCE
