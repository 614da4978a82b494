"""Seats whose disk fails under them: nothing is granted twice, and it is said.  Spec: tickets 5.2, G1, G3, D20; foundation F13.

The journal itself, killed and cut at every point, is in tests/features/tickets/process/test_journal.py; here it is a seat of a group at
work.
"""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from holdfast import sync
from holdfast.cli.agent_call import AgentCall
from holdfast.host import MemberStatus, NodeId
from holdfast.kit.marks import MARK_PERIOD
from holdfast.local.calls import Look, Seats
from tests.features.tickets.process.fleet import TicketFleet
from tests.support.agents import AgentProcess, until

BROKEN = 2  # the seat to which it happens
ENOUGH = 15  # times that a ticket is taken until the journal is longer than the log


@pytest.fixture
def tickets(tmp_path: Path) -> Iterator[TicketFleet]:
    with TicketFleet(tmp_path) as it:
        until(lambda: all(state_of(seat) == "serving" for seat in it.seats), "all seats vote")
        yield it


def state_of(agent: AgentProcess) -> str:
    with AgentCall(agent.socket) as call:
        return next(str(seat.state) for seat in call.ask(Seats) if seat.own)


def known_to(agent: AgentProcess) -> set[NodeId]:
    """The lives that it holds for alive."""
    with AgentCall(agent.socket) as call:
        return {member.id for member in call.ask(Look).members if member.status is MemberStatus.ALIVE}


def journal(tickets: TicketFleet) -> Path:
    return tickets.folder / f"state{BROKEN}" / "journal"


def taken(tickets: TicketFleet, times: int = 1) -> list[int]:
    """Taken and given back so often, through the first seat; the tokens."""
    tokens = []
    with sync.join("test", agent=tickets.seats[0].socket) as group:
        for _ in range(times):
            with group.ticket("disk", of=1, timeout=60) as ticket:
                tokens.append(ticket.token)
    return tokens


def growing(tokens: list[int]) -> bool:
    return tokens == sorted({*tokens})


def test_a_seat_without_room(tickets: TicketFleet) -> None:
    """5.2: the kernel refuses a write. The seat says so once and answers nothing that it could not save; two seats go on; when there is
    room it is started again and knows what it had answered."""
    tokens = taken(tickets, ENOUGH)
    seat, size = tickets.seats[BROKEN], journal(tickets).stat().st_size
    assert size > 2 * len(seat.stderr), "its log has no room either"
    resource.prlimit(seat.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    tokens += taken(tickets, 2)
    failed = seat.until_said("StorageFailed")
    assert "File too large" in str(failed)
    with AgentCall(tickets.seats[0].socket) as call:  # H189: its neighbour knows, and says why.
        told = call.ask(Seats)[BROKEN]
    assert (told.state, "File too large" in told.why) == ("failed", True)
    tokens += taken(tickets)
    assert len([line for line in seat.log() if line.get("event") == "StorageFailed"]) == 1
    seat.kill()
    tickets.seats[BROKEN] = tickets.seat(BROKEN)
    until(lambda: state_of(tickets.seats[BROKEN]) == "serving", "it votes again")
    until(lambda: len(known_to(tickets.seats[BROKEN]) & known_to(tickets.seats[0])) == len(tickets.seats), "it is a member again")
    tickets.seats[1].kill()  # From here on what the broken one remembers counts.
    assert growing([*tokens, *taken(tickets)])


def test_a_damaged_journal(tickets: TicketFleet) -> None:
    """D20: a seat that cannot read its journal does not start, and names the file; the others go on without it."""
    tokens = taken(tickets)
    tickets.seats[BROKEN].kill()
    whole = journal(tickets).read_bytes()
    journal(tickets).write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    settings: dict[str, Any] = {"bind": tickets.places[BROKEN].bind, "state_dir": str(journal(tickets).parent)}
    broken = tickets.fleet.start(runtime=tickets.folder / "again", name="again", expect_ready=False, **settings)
    assert broken.wait() != 0
    assert str(journal(tickets)) in broken.stderr
    assert "damaged" in broken.stderr
    assert growing([*tokens, *taken(tickets)])


def test_a_lost_journal(tickets: TicketFleet) -> None:
    """D20, F13: nobody knows what it had promised, so it stays silent and says so; the others go on without it."""
    tokens = taken(tickets)
    tickets.seats[BROKEN].kill()
    journal(tickets).unlink()
    tickets.seats[BROKEN] = tickets.seat(BROKEN)
    said = tickets.seats[BROKEN].until_said("StorageFailed")
    assert "lost its journal" in str(said)
    assert state_of(tickets.seats[BROKEN]) == "failed"
    assert growing([*tokens, *taken(tickets)])


def test_a_restored_directory(tickets: TicketFleet) -> None:
    """H156: a copy of a running seat's directory, put back later, does not know what was promised since. The seat stays silent and says so,
    again at its next start; tokens grow on; with its own directory it votes again."""
    tokens = taken(tickets, 2)
    state, copy, kept = journal(tickets).parent, tickets.folder / "copy", tickets.folder / "kept"
    shutil.copytree(state, copy)
    copied_at = monotonic()
    while monotonic() < copied_at + MARK_PERIOD + 1.0:  # Afterwards at least one mark is younger than the copy.
        tokens += taken(tickets)
    tickets.seats[BROKEN].kill()
    state.rename(kept)
    for _ in range(2):
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(copy, state)
        tickets.seats[BROKEN] = tickets.seat(BROKEN)
        said = tickets.seats[BROKEN].until_said("StorageFailed")
        assert "went back in time: its journal is an old copy" in str(said)
        assert state_of(tickets.seats[BROKEN]) == "failed"
        tokens += taken(tickets, 2)
        tickets.seats[BROKEN].kill()
    shutil.rmtree(state)
    kept.rename(state)
    tickets.seats[BROKEN] = tickets.seat(BROKEN)
    until(lambda: state_of(tickets.seats[BROKEN]) == "serving", "it votes again")
    assert growing([*tokens, *taken(tickets)])
