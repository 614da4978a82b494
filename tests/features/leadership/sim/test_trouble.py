"""Leadership when something outside goes wrong: a full table, a broken clock, closed seats, withdrawals that cross.

Spec: detection D14, D16.
"""

from __future__ import annotations

from functools import partial

import pytest

from holdfast.bounds import CLOCK_MIN
from holdfast.features.leadership.detector.messages import Lead, MonitorOk, WatchedOk
from holdfast.features.leadership.protocol.messages import StartRounds, Succession
from holdfast.features.leadership.protocol.pulse import Pulse
from holdfast.host import NodeId
from holdfast.kit import rows
from holdfast.lab.host import LabHost
from tests.features.leadership.stand import Stand


def test_a_full_table_costs_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: the row that names the leader is a hint; who leads is not ended by a table without room."""
    stand = Stand()
    stand.stand("a3")
    monkeypatch.setattr(rows, "KEYS_MAX", 1)
    stand.run(2.0)
    assert stand.leader() == "a3"
    assert stand.at("a3").board.counts["table_full"] > 0


@pytest.mark.parametrize("number", [1, CLOCK_MIN - 1])
def test_low_numbers_of_a_peer_count_for_nobody(number: int) -> None:
    """F16: tokens begin with wall-clock milliseconds; a heartbeat or a START with less is malformed."""
    stand = Stand()
    peer = stand.host("a4").me
    for agent in stand.names[:4]:
        machine = stand.at(agent)
        beat = WatchedOk(1, 1, (Lead("x", 0, number, False, 1.5),), (), 0.0, 0.0)
        start = StartRounds((Succession("x", number, *stand.host("a3").me),))
        stand.do(agent, partial(machine.on_message, peer, beat))
        stand.do(agent, partial(machine.on_message, peer, start))
    stand.stand("a3")
    stand.run(3.0)
    assert stand.clients["a3", "x"].token > CLOCK_MIN


def test_a_clock_that_is_not_set_gives_a_token_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """F16: after a start in 1970 numbers begin at the least that a set clock could say, and seats with such a clock refuse nobody."""
    stand = Stand()
    monkeypatch.setattr(LabHost, "wall", lambda host: 12.0)
    stand.stand("a3")
    stand.run(3.0)
    assert stand.clients["a3", "x"].token >= CLOCK_MIN


@pytest.mark.parametrize("seed", range(4))
def test_one_seat_that_is_not_open_keeps_nobody_waiting(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """F13: a seat that waits after its start is one of three; the other two promise at once, whoever answers first."""
    stand = Stand(seed=seed)
    monkeypatch.setattr(stand.at("a0")._seats.keeper, "_opens_at", stand.world.now + 30.0)
    stand.stand("a3")
    stand.run(5.0)
    assert stand.leader() == "a3"


def test_two_who_withdrew_do_not_call_each_other_without_end() -> None:
    """START that crosses two withdrawals is passed on once in a while, not from one to the other for ever."""
    stand = Stand()
    lives = {agent: stand.host(agent).me for agent in ("a3", "a4")}
    for agent, other in (("a3", "a4"), ("a4", "a3")):
        board = stand.at(agent).board
        board.candidates = lambda name, life=lives[other]: (life,)  # type: ignore[method-assign,misc]
    number = int(stand.host("a0").wall() * 1000)
    stand.do(
        "a3", partial(stand.at("a3").on_message, NodeId("a0", lives["a3"].boot), StartRounds((Succession("x", number, *lives["a3"]),)))
    )
    stand.run(1.0)
    hops = sum(stand.at(agent).office.counts["starts"] for agent in lives)
    assert 1 <= hops <= 2 * (2 + 1.0 / stand.config.delta_c)


def test_who_hears_one_seat_alone_keeps_nobody_waiting() -> None:
    """D14, give_up: first in the order, granted by all and told so by one seat only, it gives up after two heartbeats and Delta_c, names
    the next one, and waits longer each time; without that a healthy candidate waits for rounds of a whole promise."""
    stand = Stand(agents=6, length=10.0)
    stand.run(10.0)
    stand.stand("a5", "a4", "a3")
    stand.run(5.0)
    leader = stand.leader()
    order = [life.name for life in stand.at("a0").candidates("x")]
    deaf = order[(order.index(leader) + 1) % 3]
    stand.world.network.lose_if(lambda source, target, message: target == deaf and source != "a0" and isinstance(message, MonitorOk))
    stand.resign(leader)
    seconds, after = stand.takeover(seconds=40.0)
    assert (deaf, "start") in stand.asked()
    assert after not in (leader, deaf)
    assert seconds <= 2 * stand.config.t_itv + stand.config.delta_c + stand.config.w + 4 * stand.config.t_rtt
    stand.run(40.0)
    assert stand.leader() == after


def test_a_hope_from_a_false_alarm_is_not_hoped_for_ever() -> None:
    """D16: somebody was named once and never asked; when the leader dies later, that old word keeps nobody from naming a successor."""
    stand = Stand(length=10.0)
    stand.run(10.0)
    stand.stand("a4", "a3", "a2")
    stand.run(5.0)
    leader = stand.leader()
    bystander = next(life for life in stand.at("a0").candidates("x") if life.name != leader)
    for agent in stand.names:
        machine = stand.at(agent)
        assert machine.reigns.expect("x", machine.reigns.highest("x") + 1, bystander)
    stand.run(20.0)
    assert stand.leader() == leader
    stand.world.crash(leader)  # Its promise runs on for so long that it is found dead before anybody would look.
    seconds, after = stand.takeover(seconds=20.0)
    assert after != leader
    assert seconds <= stand.bound
    assert stand.asked()[-1][1] in ("start", "next")  # It was named, and did not have to look.


def _after_standing_still(phase: float, stopped: float) -> tuple[bool, int]:
    """A leader stands still, beginning at that part of a heartbeat, for so many heartbeats. Whether it leads on; terms that were lost."""
    stand = Stand(7)
    stand.stand(*stand.names)
    stand.run(10.0 + phase)
    leader = stand.leader()
    stand.world.stop(leader)
    stand.run(stopped)
    stand.world.resume(leader)
    stand.run(5.0)
    return stand.leader() == leader, len(stand.lost())


PHASES = (0.02, 0.2, 0.45, 0.52, 0.7, 0.95)


@pytest.mark.parametrize("phase", PHASES)
def test_a_leader_that_stands_still_for_most_of_a_heartbeat_leads_on(phase: float) -> None:
    """H132: a term of 1.5 heartbeats is renewed at every half, so a machine may stand still for almost a whole one, whenever it begins."""
    assert _after_standing_still(phase, 0.9) == (True, 0)


def test_renewed_once_per_heartbeat_it_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """H132: without the renewal in between, the same pause costs the term unless it begins soon after a heartbeat."""
    monkeypatch.setattr(Pulse, "_on_between", lambda pulse: None)
    found = [_after_standing_still(phase, 0.9) for phase in PHASES]
    assert 2 <= found.count((False, 1)) < len(PHASES)
