"""The life of a name, case by case, in calm.  Spec: fast-detection 5, D13-D26, 7; foundation F8-F17."""

from __future__ import annotations

from functools import partial

import pytest

from holdfast.lab.lead_members import Hidden
from holdfast.protocols.detection.lead_campaign import Campaign
from holdfast.protocols.detection.messages import MonitorOk, StartRound, WatchedOk
from tests.support.lead_stand import FOUNDED, RHO, Stand

WALL_MS = 1_700_000_000_000


def test_the_first_candidate_leads_under_wall_clock_milliseconds() -> None:
    """F16, D13: nobody has led it before; two round trips and a write later it leads, and everybody knows."""
    stand = Stand()
    stand.stand("a4")
    stand.run(0.3)
    assert stand.leader() == "a4"
    token = stand.at("a4").token("x")
    assert WALL_MS <= token <= WALL_MS + 4000
    stand.run(1.0)
    assert stand.opinions() == {("a4", token)}
    assert stand.clients["a4", "x"].said == ["leading"]


def test_a_candidate_that_joins_changes_nothing() -> None:
    """Stability (Aguilera): whoever leads goes on leading."""
    stand = Stand()
    stand.stand("a4")
    stand.run(2.0)
    stand.stand("a0", "a1", "a2", "a3")
    stand.run(10.0)
    assert stand.leader() == "a4"
    assert len(stand.led()) == 1
    assert stand.clients["a4", "x"].said == ["leading"]


def test_all_at_once_choose_one() -> None:
    """D17b: everybody asks at the same moment; the seats choose one, and the others follow."""
    stand = Stand(9)
    stand.stand(*stand.names)
    stand.run(6.0)
    assert stand.leader()
    assert len(stand.led()) == 1
    assert len(stand.opinions()) == 1


@pytest.mark.parametrize("seats", [1, 3, 5])
@pytest.mark.parametrize("leader", ["a0", "a6"])
def test_a_killed_leader_is_followed_within_the_bound(seats: int, leader: str) -> None:
    """G2, D26, E9: killed at any instant, a seat itself or not, it is followed within the bound, and everybody knows."""
    if seats == 1 and leader == "a0":
        pytest.skip("the only seat is dead: nobody can lead")
    for seed in range(6):
        stand = Stand(7, seats, seed=seed)
        stand.stand(leader)
        stand.run(5.0 + seed / 6)
        assert stand.leader() == leader
        stand.stand(*(name for name in stand.names if name != leader))
        stand.run(4.0)
        stand.world.crash(leader)
        seconds, _ = stand.takeover()
        assert seconds <= stand.bound
        assert len(stand.opinions()) == 1
        assert stand.opinions() == {(stand.leader(), stand.at(stand.leader()).token("x"))}


def test_a_stopped_leader_knows_by_its_clock() -> None:
    """F9, D19: SIGSTOP beyond the lease; another one leads, and whoever comes back says no at once, before any message or timer."""
    stand = Stand()
    stand.stand("a4")
    stand.run(2.0)
    stand.stand("a3")
    stand.run(2.0)
    stand.world.stop("a4")
    stand.run(4.0)
    assert not stand.at("a4").is_leader("x")
    assert stand.leader() == "a3"
    stand.world.resume("a4")
    assert stand.lost() == [("a4", "lapsed")]
    assert stand.clients["a4", "x"].said[-1] == "lost: lapsed"
    stand.run(10.0)
    assert stand.leader() == "a3"
    assert stand.opinions() == {("a3", stand.at("a3").token("x"))}


def test_a_short_stop_costs_nothing() -> None:
    """D19: a leader that is stopped for less than the rest of its lease goes on."""
    stand = Stand(length=3.0)
    stand.stand("a4", "a3")
    stand.run(3.0)
    leader = stand.leader()
    stand.world.stop(leader)
    stand.run(0.8)
    stand.world.resume(leader)
    stand.run(8.0)
    assert stand.leader() == leader
    assert len(stand.led()) == 1


def test_a_leader_without_one_seat_goes_on() -> None:
    """G7: its link to one seat is cut both ways; a quorum grants, and the seat that misses it finds no second one."""
    stand = Stand()
    stand.stand("a3", "a4")
    stand.run(3.0)
    leader = stand.leader()
    stand.world.network.cut("one", [leader], ["a2"])
    stand.world.network.cut("other", ["a2"], [leader])
    stand.run(15.0)
    assert stand.leader() == leader
    stand.world.network.clear()
    stand.run(5.0)
    assert len(stand.led()) == 1
    assert "at risk" not in stand.clients[leader, "x"].said


def test_a_leader_without_a_quorum_steps_down_first() -> None:
    """I11, D20: cut off from the seats, it is told that it is at risk and loses it by its own clock; only then another one leads."""
    stand = Stand()
    stand.stand("a3")
    stand.run(2.0)
    stand.stand("a4")
    stand.run(2.0)
    stand.world.network.partition("p", [["a3"], ["a0", "a1", "a2", "a4"]])
    stand.run(6.0)
    assert stand.clients["a3", "x"].said == ["leading", "at risk", "lost: lapsed"]
    assert stand.leader() == "a4"
    stand.world.network.clear()
    stand.run(6.0)
    assert stand.opinions() == {("a4", stand.at("a4").token("x"))}
    assert [agent for _, agent in stand.led()] == ["a3", "a4"]


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_hand_over_takes_a_round_trip(loss: float) -> None:
    """RESIGN, E17: the next one leads in less than .2 s in the median, also where START overtakes RESIGN."""
    times = []
    for seed in range(12):
        stand = Stand(7, seed=seed, loss=loss)
        stand.stand(*stand.names)
        stand.run(5.0 + seed / 12)
        leader = stand.leader()
        stand.resign(leader)
        assert stand.leader() == ""
        seconds, after = stand.takeover(seconds=6.0)
        assert after != leader
        assert leader not in [life.name for life in stand.at("a0").candidates("x")]
        times.append(seconds)
    assert sorted(times)[6] < 0.2
    assert loss or max(times) < 0.2


def test_when_the_last_candidate_goes_nobody_leads() -> None:
    """D17b: withdrawn by its last candidate, a name has no leader, on all agents; a later candidate has a higher token."""
    stand = Stand()
    stand.stand("a4")
    stand.run(2.0)
    token = stand.at("a4").token("x")
    stand.resign("a4")
    stand.run(3.0)
    assert stand.opinions() == {("", 0)}
    assert stand.changes("a0") == ["a4", ""]
    stand.stand("a3")
    stand.run(2.0)
    assert stand.leader() == "a3"
    assert stand.at("a3").token("x") > token


def test_a_dead_leader_without_successor_is_nobody() -> None:
    """F15: nobody else stands; its word ends with its membership, and all agents say that nobody leads."""
    stand = Stand()
    stand.stand("a4")
    stand.run(2.0)
    stand.world.crash("a4")
    stand.run(8.0)
    assert stand.opinions() == {("", 0)}


def test_the_last_living_candidate_leads() -> None:
    """D23: all candidates but one die at once; each dead one costs Delta_c at most, because the next steps in."""
    stand = Stand(9)
    stand.stand("a3", "a4", "a5", "a6", "a7", "a8")
    stand.run(4.0)
    survivor = next(name for name in ("a3", "a4") if name != stand.leader())
    for name in ("a3", "a4", "a5", "a6", "a7", "a8"):
        if name != survivor:
            stand.world.crash(name)
    seconds, after = stand.takeover()
    assert after == survivor
    assert seconds <= stand.bound + 6 * (stand.config.delta_c + stand.config.w)


def test_a_restarted_seat_waits_and_the_others_carry_on() -> None:
    """F13: of three seats one restarts; its promises are waited for, and the leader notices nothing."""
    stand = Stand()
    stand.stand("a4", "a3")
    stand.run(4.0)
    leader = stand.leader()
    stand.world.crash("a1")
    stand.run(0.2)
    stand.world.start("a1")
    stand.run(8.0)
    assert stand.leader() == leader
    assert len(stand.led()) == 1


def test_the_only_seat_restarts() -> None:
    """F13: the leader loses it by its clock, because the seat waits for the longest promise; then somebody leads under a higher token."""
    stand = Stand(4, 1)
    stand.stand("a3")
    stand.run(4.0)
    token = stand.at("a3").token("x")
    stand.world.crash("a0")
    stand.run(0.1)
    stand.world.start("a0")
    stand.run(6.0)
    assert stand.lost() == [("a3", "lapsed")]
    assert stand.leader() == "a3"
    assert stand.at("a3").token("x") > token


def test_a_seat_may_lead() -> None:
    """D17b: the leader's own seat grants without a message, and durably."""
    stand = Stand(3)
    stand.stand("a1")
    stand.run(8.0)
    assert stand.leader() == "a1"
    assert len(stand.led()) == 1


def test_lists_that_differ_choose_one_leader() -> None:
    """D17b, F15: for ten seconds nobody lists the same members; the leader dies meanwhile; one follows, and in the end all agree."""
    hidden = [Hidden(3.0, 10.0, f"a{i}", f"a{(i * 3 + 1) % 7}") for i in range(7) if i != (i * 3 + 1) % 7]
    stand = Stand(7, hidden=hidden)
    stand.stand(*stand.names)
    stand.run(4.0)
    stand.world.crash(stand.leader())
    stand.takeover()
    assert len(stand.opinions()) == 1


def test_thirty_names_are_taken_over_together() -> None:
    """D17b: one report concerns every name of the life that died; all are led again within the bound of one."""
    names = [f"name-{i}" for i in range(30)]
    stand = Stand(7)
    for name in names:
        stand.stand("a6", name=name)
    stand.run(3.0)
    assert all(stand.leader(name) == "a6" for name in names)
    for name in names:
        stand.stand("a0", "a3", "a4", "a5", name=name)
    stand.run(3.0)
    stand.world.crash("a6")
    died_at = stand.world.now
    stand.run(6.0)
    followed = [stand.led(name)[1] for name in names]
    assert max(at for at, _ in followed) - died_at <= stand.bound
    assert len({agent for _, agent in followed}) >= 3  # by hash(name, agent)


def test_two_hundred_names_cost_the_packets_of_one() -> None:
    """D17b: heartbeats go by agent, not by name; 28 short names fit a page, so 7 agents send what 7 leaders of one name would."""
    names = [f"name-{i:03}" for i in range(196)]
    stand = Stand(7)
    for place, name in enumerate(names):
        stand.stand(stand.names[place % 7], name=name)
    stand.run(4.0)
    assert all(stand.leader(name) for name in names)
    sent_before = {kind: _sent(stand, kind) for kind in (WatchedOk, MonitorOk)}
    stand.run(10.0)
    for kind, before in sent_before.items():
        per_interval = (_sent(stand, kind) - before) / 10
        assert per_interval <= 7 * 6 * 1.05


def _sent(stand: Stand, kind: type) -> int:
    return sum(host.endpoint.sent[kind] for host in stand.world.nodes.values())


def test_names_of_a_hundred_bytes_go_by_pages() -> None:
    """D17b: what does not fit one datagram is spread over pages of one stamp; each page is granted by itself."""
    names = [f"{i:02}" + "n" * 98 for i in range(30)]
    stand = Stand()
    for name in names:
        stand.stand("a4", "a3", name=name)
    stand.run(8.0)
    assert all(stand.leader(name) for name in names)
    assert all(len(stand.led(name)) == 1 for name in names)


def test_a_deaf_member_disturbs_nobody() -> None:
    """D14, I10, E15: a candidate and monitor that hears nothing, but is heard, changes nothing, for as long as it likes."""
    stand = Stand()
    stand.stand(*stand.names)
    stand.run(5.0)
    deaf = next(name for name in stand.names if name != stand.leader())
    leader = stand.leader()
    stand.world.network.cut("deaf", [name for name in stand.names if name != deaf], [deaf])
    stand.run(60.0)
    assert stand.leader() == leader
    assert len(stand.led()) == 1


def test_a_candidate_that_hears_nobody_gives_up() -> None:
    """Section 5, give_up: it was told to ask, its asking is granted, and it hears none of it; another one leads soon after."""
    stand = Stand()
    stand.stand("a4", "a3", "a2")
    stand.run(5.0)
    leader = stand.leader()
    candidates = [life.name for life in stand.at("a0").candidates("x")]
    after = candidates[(candidates.index(leader) + 1) % 3]
    stand.world.network.cut("deaf", ["a0", "a1", "a2", "a3", "a4"], [after])
    stand.world.network.heal()
    stand.resign(leader)
    stand.run(0.012)  # START has arrived, grants have not.
    stand.world.network.cut("deaf", [name for name in stand.names if name != after], [after])
    seconds, who = stand.takeover(seconds=15.0)
    assert who != after or seconds < 0.1
    assert stand.leader() not in ("", after) or seconds < 0.1


def test_without_permission_to_renew_it_lapses_and_passes_on() -> None:
    """F14: the agent takes the permission away; the lease ends by the clock, the next one leads at once, and who lost it does not ask."""
    stand = Stand()
    stand.stand("a4")
    stand.run(2.0)
    stand.stand("a3")
    stand.run(2.0)
    deadline = stand.clients["a4", "x"].deadline
    stand.do("a4", partial(stand.at("a4").renew_allowed, "x", False))
    stand.run(3.0)
    assert stand.clients["a4", "x"].deadline == deadline
    assert stand.clients["a4", "x"].said == ["leading", "lost: lapsed"]
    assert stand.leader() == "a3"
    stand.resign("a3")
    stand.run(5.0)
    assert stand.leader() == ""
    stand.do("a4", partial(stand.at("a4").renew_allowed, "x", True))
    stand.run(3.0)
    assert stand.leader() == "a4"


def test_withdrawn_while_it_asks() -> None:
    """A candidate that goes while it waits for the end of a promise gives back what it was granted, and never leads."""
    stand = Stand()
    stand.stand("a4")
    stand.run(2.0)
    stand.stand("a3")
    stand.run(2.0)
    stand.world.crash("a4")
    stand.run(1.3)
    stand.resign("a3")
    stand.stand("a2")
    stand.run(5.0)
    assert stand.clients["a3", "x"].said == []
    assert stand.leader() == "a2"


def test_a_late_asker_looks_again() -> None:
    """F11: a candidate that was stopped while it asked acts on nothing it knew; nobody is disturbed, and one leads in the end."""
    stand = Stand()
    stand.stand("a4")
    stand.run(2.0)
    stand.stand("a3", "a2")
    stand.run(2.0)
    stand.world.crash("a4")
    for _ in range(200):
        stand.run(0.01)
        asker = stand.asked()[-1][0]
        if asker != "a4":
            break
    assert asker != "a4"
    stand.world.stop(asker)
    stand.run(1.0)
    stand.world.resume(asker, "shuffled")
    stand.run(8.0)
    assert stand.leader() in ("a2", "a3")
    assert len(stand.opinions()) == 1


def test_the_next_life_of_a_leader_waits_like_anybody() -> None:
    """F1, D18: a new life is another holder: it leads only when the promise to the former one is over, under a higher token."""
    stand = Stand()
    stand.stand("a4")
    stand.run(3.0)
    token, until = stand.at("a4").token("x"), stand.at("a4").deadline("x")
    left = until - stand.host("a4").now
    stand.world.crash("a4")
    stand.world.start("a4")
    stand.stand("a4")
    died_at = stand.world.now
    seconds, agent = stand.takeover()
    assert agent == "a4"
    assert stand.led()[-1][0] >= died_at + left
    assert seconds <= stand.bound
    assert stand.at("a4").token("x") > token


def test_a_paged_start_reaches_whoever_is_no_monitor() -> None:
    """F17: with more candidates than monitors, the one that is told to lead hears it although it is none."""
    stand = Stand(20, 3)
    stand.stand("a1", "a19", "a9")
    stand.run(5.0)
    leader = stand.leader()
    stand.resign(leader)
    seconds, after = stand.takeover(seconds=5.0)
    assert after != leader
    assert seconds < 0.5
    stand.world.crash(after)
    seconds, last = stand.takeover()
    assert last not in (leader, after)
    assert seconds <= stand.bound
    assert StartRound not in stand.at("a0").handles


@pytest.mark.parametrize("agents", [3, 7])
def test_a_leader_is_stable_where_one_message_in_ten_is_lost(agents: int) -> None:
    """E14, G7: three hundred heartbeats with their repeats; it never steps down, and nobody asks in vain for what it holds."""
    stand = Stand(agents, loss=0.1, seed=3)
    stand.stand(*stand.names)
    stand.run(5.0)
    asked, leader = len(stand.asked()), stand.leader()
    stand.run(300.0)
    assert stand.leader() == leader
    assert stand.lost() == []
    assert len(stand.asked()) == asked


def test_seats_that_are_silent_are_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """G7: the test above can fail. If whoever did not answer counted as free, a candidate's own seat and a silent one would be a quorum."""
    monkeypatch.setattr(Campaign, "_busy", lambda self, holdings: 0.0 if len(holdings) < self.office.slots else 1.0)
    stand = Stand(3, loss=0.1, seed=3)
    stand.stand(*stand.names)
    stand.run(5.0)
    asked = len(stand.asked())
    stand.run(100.0)
    assert len(stand.asked()) > asked


def test_seats_without_names_are_seats() -> None:
    """F12: where the seats are the first seeds, their names are learned by talking; takeover is as fast."""
    stand = Stand(7, named=False)
    stand.stand("a6")
    stand.run(4.0)
    stand.stand("a1", "a5")
    stand.run(4.0)
    stand.world.crash("a6")
    seconds, after = stand.takeover()
    assert after in ("a1", "a5")
    assert seconds <= stand.bound


def test_everybody_waits_for_fresh_seats() -> None:
    """F13: seats with new journals promise nothing before the longest length is over; then the first candidate leads at once."""
    stand = Stand(5, length=8.0)
    stand.stand("a4", "a3", length=1.5)
    seconds, _ = stand.takeover(seconds=10.0)
    opened_at = 8.0 * (1 + 2 * RHO)  # after their start, when all had met
    assert opened_at - FOUNDED <= seconds <= opened_at - FOUNDED + 1.0
    assert stand.asked() in ([("a4", "vacant")], [("a3", "vacant")])


def test_a_leader_that_no_list_has_is_known_while_it_is_heard() -> None:
    """D17b, F15: an expelled holder goes on renewing; its monitors say so as long as they hear it, and again when they do again."""
    hidden = [Hidden(0.0, 1000.0, viewer, "a4") for viewer in ("a0", "a1", "a2", "a3")]
    stand = Stand(5, hidden=hidden)
    stand.stand("a4")
    stand.run(4.0)
    assert stand.leader() == "a4"
    # It lists everybody, so everybody is its monitor.
    assert stand.opinions() == {("a4", stand.at("a4").token("x"))}
    stand.world.network.cut("a3", ["a4"], ["a3"])
    stand.run(8.0)
    assert stand.at("a3").leader("x") is None
    stand.world.network.clear()
    stand.run(3.0)
    assert stand.changes("a3") == ["a4", "", "a4"]
    assert len(stand.led()) == 1
