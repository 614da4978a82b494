"""What an agent says about the seats: to clients, over HTTP, in ``doctor``.  Spec: foundation F12, F13; H189.

A seat has one of these states. Of its own slot an agent knows it; of another it repeats what that seat said when it was last heard.

    asking    it has no journal yet and asks the other seats whether they ever met another one of its slot
    waiting   it grants nothing yet: what it may have promised before must end first
    serving   it votes
    failed    it answers and does not vote: its disk failed, or its journal is lost; ``why`` says which
    silent    it does not answer any more
    unheard   it was never heard by this agent
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING

from holdfast.kit.seats import Seats, SeatState
from holdfast.kit.slots import Slot
from holdfast.local.calls import SeatView

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent

SURVEY = 0.6  # seconds that a seat has to answer when a user asks: three greetings of 0.2 s
SURVEY_TRIES = 30  # looks at whether all have answered
ASK_EVERY = 10  # looks between two greetings: one lost datagram is no silence
NAMES = {SeatState.SILENT: "failed"}  # all others by their own name


def seat_views(agent: Agent, heard_since: float | None = None) -> tuple[SeatView, ...]:
    """All slots. With ``heard_since`` a seat that was not heard after that instant counts as silent."""
    seats = agent.seats
    assert seats is not None
    trouble = {} if agent.seat_watch is None else agent.seat_watch.trouble
    return tuple(
        _own(seats, slot) if slot.number == seats.own else _other(seats, slot, agent.host.now, heard_since, trouble.get(slot.number, ""))
        for slot in seats.slots
    )


class SeatSurvey:
    """Asks all seats how they are, and tells ``done`` when the last one has answered or ``SURVEY`` seconds have passed."""

    def __init__(self, agent: Agent, done: Callable[[tuple[SeatView, ...]], None]) -> None:
        assert agent.seats is not None
        self._agent, self._seats, self._done = agent, agent.seats, done
        self._began_at = agent.host.now

    def start(self) -> None:
        self._on_look(SURVEY_TRIES)

    def _on_look(self, tries_left: int) -> None:
        if tries_left and not self._complete():
            if tries_left % ASK_EVERY == 0:
                self._seats.greet()
            self._agent.host.after(SURVEY / SURVEY_TRIES, lambda: self._on_look(tries_left - 1))
        else:
            self._done(seat_views(self._agent, self._began_at))

    def _complete(self) -> bool:
        seen = [self._seats.seen(slot.number) for slot in self._seats.slots if slot.number != self._seats.own]
        return all(each is not None and each.heard_at > self._began_at for each in seen)


def _own(seats: Seats, slot: Slot) -> SeatView:
    wait = seats.keeper.wait if isfinite(seats.keeper.wait) and seats.state is SeatState.WAITING else 0.0
    return SeatView(slot.number, slot.name, str(slot.address), seats.life(slot.number), True, _name(seats.state), wait, None, seats.why)


def _other(seats: Seats, slot: Slot, now: float, heard_since: float | None, trouble: str) -> SeatView:
    seen, life = seats.seen(slot.number), seats.life(slot.number)
    place = slot.number, slot.name, str(slot.address), life, False
    if seen is None:
        return SeatView(*place, "unheard", 0.0, None, trouble)
    ago = max(0.0, now - seen.heard_at)
    if not seats.is_heard(slot.number) or (heard_since is not None and seen.heard_at < heard_since):
        return SeatView(*place, "silent", 0.0, ago, trouble)
    if seen.grants_at(now):
        return SeatView(*place, "serving", 0.0, ago)
    assert seen.state is not None
    wait = max(0.0, seen.heard_at + seen.wait - now) if seen.state is SeatState.WAITING else 0.0
    return SeatView(*place, _name(seen.state), wait, ago, seen.why)


def _name(state: SeatState) -> str:
    return NAMES.get(state, state.name.lower())
