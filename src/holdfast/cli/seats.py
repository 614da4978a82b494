"""``holdfast seats``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import asked
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.show import print_json, print_table
from holdfast.local.calls import Seats, SeatView


def seats(*, as_json: Annotated[bool, JSON] = False, agent: Annotated[str, AGENT] = "", group: Annotated[str, GROUP] = "") -> None:
    """The slots that remember, as this agent sees them. Exit code 2 and the missing setting if the group has none."""
    found: tuple[SeatView, ...] = asked(agent, group, Seats)
    if as_json:
        print_json({"seats": [{name: getattr(seat, name) for name in seat.__struct_fields__} | {"life": _life(seat)} for seat in found]})
    else:
        print_table(("SEAT", "NAME", "ADDRESS", "STATE", "WHO"), [_row(seat) for seat in found])


def _life(seat: SeatView) -> dict[str, str | int] | None:
    return None if seat.life is None else {"name": seat.life.name, "boot": seat.life.boot}


def _row(seat: SeatView) -> tuple[str, ...]:
    state = f"{seat.state}, {seat.wait:.1f} s left" if seat.wait > 0 else seat.state
    who = "" if seat.life is None else str(seat.life)
    return str(seat.number), seat.name, seat.address, state, f"{who} (this one)" if seat.own else who
