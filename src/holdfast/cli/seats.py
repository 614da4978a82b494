"""``holdfast seats``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import asked
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.show import print_json, print_table, say
from holdfast.local.calls import Seats, SeatView
from holdfast.local.verdict import verdict


def seats(*, as_json: Annotated[bool, JSON] = False, agent: Annotated[str, AGENT] = "", group: Annotated[str, GROUP] = "") -> None:
    """List the voters (seats) and their state: each is asked. Exit code 2 and the missing setting if the group has none."""
    found: tuple[SeatView, ...] = asked(agent, group, Seats)
    if as_json:
        shown = [{name: getattr(seat, name) for name in seat.__struct_fields__} | {"life": _life(seat)} for seat in found]
        print_json({"seats": shown, "voting": sum(seat.state == "serving" for seat in found), "needed": len(found) // 2 + 1})
    else:
        print_table(("SEAT", "NAME", "ADDRESS", "STATE", "WHO"), [_row(seat) for seat in found])
        say(f"seats: {verdict(found)}")


def _life(seat: SeatView) -> dict[str, str | int] | None:
    return None if seat.life is None else {"name": seat.life.name, "boot": seat.life.boot}


def _row(seat: SeatView) -> tuple[str, ...]:
    more = f", {seat.wait:.1f} s left" if seat.wait > 0 else ""
    if seat.state == "silent" and seat.heard_ago is not None:
        more = f", last heard {seat.heard_ago:.0f} s ago"
    state = f"{seat.state}{more}{f': {seat.why}' if seat.why else ''}"
    who = "" if seat.life is None else str(seat.life)
    return str(seat.number), seat.name, seat.address, state, f"{who} (this one)" if seat.own else who
