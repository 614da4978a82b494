"""A client that waits for the seats is told why and how long, once.  Foundation F13; H155."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from holdfast import sync
from holdfast.agent.grants.delays import FIRST_LOOK, GREETINGS, LOOK_PERIOD, QUIET, SURE_AFTER, Delays
from holdfast.cli.demo.fleet import free_ports
from holdfast.errors import AcquireTimeout
from holdfast.events import GrantsDelayed
from holdfast.kit.delay import JUST_STARTED, Delay
from holdfast.kit.seats import Seats
from holdfast.local.calls import GrantItem
from tests.agent.law import Stand
from tests.support.agents import Fleet, until

LONGEST = 90.0  # seconds that the seat waits; nothing here takes so long


class FakeSeats:
    """Seats that grant nothing for a reason of the test's."""

    def __init__(self, delay: Delay | None) -> None:
        self.now, self.greetings = delay, 0

    def delay(self) -> Delay | None:
        return self.now

    def greet(self) -> None:
        self.greetings += 1


def stand_of(delay: Delay | None) -> tuple[Stand, FakeSeats]:
    stand, seats = Stand(), FakeSeats(delay)
    Delays(stand.host, cast(Seats, seats), stand.law)
    return stand, seats


def test_each_waiting_client_is_told_once() -> None:
    """H155: why, and until when on its clock; the event comes once for all of them."""
    stand, _ = stand_of(Delay("why", 4.5))
    one, two = stand.session(), stand.session()
    asked_at = stand.host.now
    stand.ask(one)
    stand.ask(two)
    assert one.items == []
    stand.host.pass_time(FIRST_LOOK)
    assert [item for _, item in one.items] == [GrantItem("queued", 0, asked_at + FIRST_LOOK + 4.5, 0, "why")]
    stand.host.pass_time(2 * LOOK_PERIOD)
    stand.ask(two, serial=2)
    stand.host.pass_time(2 * LOOK_PERIOD)
    assert (len(one.items), len(two.items)) == (1, 2)
    assert stand.host.events(GrantsDelayed) == [GrantsDelayed("why", 4.5)]


def test_who_waits_behind_a_holder_hears_nothing() -> None:
    """H155: and the seats are not greeted for ever."""
    stand, seats = stand_of(None)
    client = stand.session()
    stand.ask(client)
    stand.host.pass_time(60)
    assert client.items == []
    assert seats.greetings == GREETINGS
    seats.now = Delay("later", 1.0)  # The seats were restarted while it waited.
    stand.host.pass_time(LOOK_PERIOD)
    assert [item.why for _, item in client.items] == ["later"]


def test_too_few_seats_are_said_when_it_is_sure() -> None:
    """H155: a seat may be starting just now; how long it takes is not known then. The event is repeated once a minute at most."""
    stand, _ = stand_of(Delay("few", None))
    client = stand.session()
    stand.ask(client)
    stand.host.pass_time(SURE_AFTER / 2)
    assert client.items == []
    stand.host.pass_time(SURE_AFTER + LOOK_PERIOD)
    assert [item for _, item in client.items] == [GrantItem("queued", 0, 0.0, 0, "few")]
    for _ in range(3):
        stand.ask(stand.session())
        stand.host.pass_time(SURE_AFTER + 2 * LOOK_PERIOD)
    assert stand.host.events(GrantsDelayed) == [GrantsDelayed("few", None)]
    stand.host.pass_time(QUIET)
    stand.ask(stand.session())
    stand.host.pass_time(SURE_AFTER + 2 * LOOK_PERIOD)
    assert len(stand.host.events(GrantsDelayed)) == 2


def test_everything_that_waits_for_new_seats_says_so(tmp_path: Path) -> None:
    """H155, with a real agent that is a new seat: the Python client, its events, the log, `run`, `ticket acquire`, `leader`, `doctor`."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with Fleet(tmp_path, longest_grant=LONGEST) as fleet:
        agent = fleet.start(name="ada", bind=address, seeds=[address], state_dir=str(tmp_path / "state"))
        with sync.join(agent=agent.socket, timeout=30) as group:
            watch = group.watch()
            with pytest.raises(AcquireTimeout, match=f"{JUST_STARTED}; they grant nothing for another [0-9]+\\.[0-9] s"):
                group.lead("x", timeout=3).__enter__()
            told = next(event for event in watch if isinstance(event, GrantsDelayed))
        assert told.why == JUST_STARTED
        assert told.seconds is not None
        assert 0 < told.seconds <= LONGEST * 1.01
        assert agent.until_said("GrantsDelayed", why=JUST_STARTED)

        def command(*words: str) -> subprocess.CompletedProcess[str]:
            full = [sys.executable, "-m", "holdfast", *words, "--agent", agent.socket]
            return subprocess.run(full, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)

        for words in (("ticket", "acquire", "p:1", "--timeout", "2"), ("leader",), ("leader", "x", "--wait", "--timeout", "1")):
            assert JUST_STARTED in command(*words).stderr, words
        assert command("ticket", "acquire", "p:1", "--timeout", "2").stderr.count("holdfast: waiting: ") == 1
        full = [sys.executable, "-m", "holdfast", "run", "--agent", agent.socket, "--lead", "x", "--timeout", "2", "--", "true"]
        ran = subprocess.run(full, capture_output=True, text=True, timeout=60, check=False)
        assert ran.stderr.count(f"holdfast: waiting: {JUST_STARTED}; they grant nothing for another ") == 1
        until(lambda: "seats_waiting" in (found := command("doctor")).stdout and found.returncode == 0, "doctor finds it, and no error")
