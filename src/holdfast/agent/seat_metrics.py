"""Numbers about seats for Prometheus.  docs/http.md (metrics)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.agent.metrics import Metric, gauge
from holdfast.kit.seats import SeatState

if TYPE_CHECKING:
    from holdfast.agent.agent import Agent
    from holdfast.kit.seats import Seats


def of_seats(agent: Agent) -> Iterable[Metric]:
    """Nothing where there are no seats."""
    seats = agent.seats
    if seats is None:
        return
    yield gauge("seats", "Seats of the group.", len(seats.slots))
    yield gauge("seats_voting", "Seats that vote, as known here; without a majority nothing is granted.", voting(agent, seats))
    if seats.own is not None:
        yield gauge("seat_voting", "1 while the seat of this agent votes.", float(seats.state is SeatState.SERVING))


def voting(agent: Agent, seats: Seats) -> int:
    """The own one by its state; another one if the life that sat there when it was last heard is still a member."""
    members = {member.id for member in agent.view().members}
    others = sum(seats.life(slot.number) in members for slot in seats.slots if slot.number != seats.own)
    return others + (seats.own is not None and seats.state is SeatState.SERVING)
