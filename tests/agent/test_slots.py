"""The list of slots, with and without a journal.  Spec: foundation F12; docs/roadmap.md (views need it); H202."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.life.agent import Agent
from holdfast.agent.life.home import Home
from holdfast.agent.observe.logs import Log
from holdfast.config import load
from holdfast.host import Address
from holdfast.kit.slots import NO_SEATS, WRITTEN_CHARS_MAX, OwnSlots, Slot, written

OTHERS = ("127.0.0.1:1", "127.0.0.1:2")


def opened(tmp_path: Path, *, state_home: str, **settings: Any) -> tuple[OwnSlots, bool, str]:
    """The slots of an agent that has taken its port, whether it has Seats, and which setting is missing for them."""

    async def run() -> tuple[OwnSlots, bool, str]:
        environ = {"HOLDFAST_RUNTIME_DIR": str(tmp_path / "run"), "XDG_STATE_HOME": state_home}
        home = Home.open(load(None, {}, {"group": "slots", "preset": "local", "socket": str(tmp_path / "s"), **settings}), environ)
        quiet = os.open(os.devnull, os.O_WRONLY)
        try:
            agent = await Agent.open(home, Log(level="error", fd=quiet))
            await agent.close()
            return agent.slots, agent.seats is not None, agent.seats_missing
        finally:
            home.close()
            os.close(quiet)

    return asyncio.run(run())


def free_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "no journal"])
def test_slots_are_known_without_a_journal(tmp_path: Path, journal: bool) -> None:
    """F12: who the seats are follows from the settings alone. A seat without a state directory has no Seats, and still knows the list
    and its own place in it."""
    own = free_address()
    state_home = str(tmp_path / "state") if journal else "/dev/null/nowhere"
    slots, has_seats, missing = opened(tmp_path, state_home=state_home, bind=own, seeds=[own, *OTHERS])
    assert [str(slot.address) for slot in slots.all] == [own, *OTHERS]
    assert slots.own == 0
    assert has_seats == journal
    assert ("state_dir" in missing) == (not journal)


def test_an_agent_that_is_no_seat_knows_the_slots(tmp_path: Path) -> None:
    """F12: it needs no journal."""
    slots, has_seats, missing = opened(tmp_path, state_home="/dev/null/nowhere", bind="127.0.0.1:0", seeds=[*OTHERS, "127.0.0.1:3"])
    assert (len(slots.all), slots.own) == (3, None)
    assert has_seats
    assert missing == ""


def test_settings_that_name_no_seats_say_which_is_missing(tmp_path: Path) -> None:
    """F12: two groups of settings that allow no list: the reason names the setting."""
    slots, has_seats, missing = opened(tmp_path, state_home="/dev/null/nowhere", bind="127.0.0.1:0", seeds=["localhost:1"])
    assert slots.all == ()
    assert not has_seats
    assert missing == slots.missing
    assert "seats" in missing


def test_a_list_of_seats_as_text() -> None:
    """F12: as the setting takes it; what is too long is cut, and still another text for another list."""
    assert written(()) == NO_SEATS
    assert written((Slot(0, "s1", Address("10.0.0.1", 1)), Slot(1, "10.0.0.2:1", Address("10.0.0.2", 1)))) == "s1@10.0.0.1:1, 10.0.0.2:1"
    long = [tuple(Slot(number, f"{number}{'s' * 120}{end}", Address("10.0.0.1", number + 1)) for number in range(5)) for end in "ab"]
    one, other = map(written, long)
    assert len(one) == len(other) == WRITTEN_CHARS_MAX
    assert one != other
