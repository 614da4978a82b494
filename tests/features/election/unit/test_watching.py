"""When an election starts.  Spec: election 5.8, D10, D15, D19, D25; foundation F11."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.features.election.protocol.config import INITIATORS
from holdfast.features.election.protocol.facts import Initiated
from holdfast.features.election.protocol.messages import Leader, Query
from holdfast.features.election.protocol.rules import Rules
from tests.features.election.stand import BASE, HYBRID, NAME, TIMEOUT, Stand, Town, life, ranked_names

NODES = ranked_names(5)
TERM = 1_700_000_000_500
WATCH = 6 * TIMEOUT


def stand(at: int = 4, *, stands: bool = True, **changes: Any) -> Stand:
    others = [name for index, name in enumerate(NODES) if index != at]
    found = Stand(*others, me=NODES[at], made=BASE, **changes)
    return (found.stand() if stands else found).quiet()


def led(found: Stand, who: int = 0, term: int = TERM) -> Stand:
    found.hear(NODES[who], Leader(NAME, BASE, term, life(NODES[who]), active=True))
    return found.quiet()


def began(found: Stand) -> list[str]:
    return [fact.why for fact in found.facts(Initiated)]  # type: ignore[attr-defined]


def test_a_first_candidate_waits_a_moment() -> None:
    """5.8: who begins to stand, and knows no listed leader, arms the watch with U(0, 2 TIMEOUT)."""
    found = stand()
    found.host.pass_time(2 * TIMEOUT + 0.001)
    assert began(found) == ["watch"]


def test_a_candidate_of_a_led_name_waits() -> None:
    """5.8: the leader is listed."""
    found = led(stand(stands=False))
    found.stand()
    found.host.pass_time(20 * WATCH)
    assert began(found) == []


def test_the_leader_that_is_gone_is_replaced() -> None:
    """5.8: the list drops it: after U(0, init_spread), here as one of eight or fewer."""
    found = led(stand())
    found.lists.lose(NODES[0])
    found.host.pass_time(2 * TIMEOUT + 0.001)
    assert began(found) == ["gone"]


def test_a_suspicion_starts_nothing() -> None:
    """5.8: SUSPECT does not trigger."""
    found = led(stand())
    found.lists.suspects[NODES[0]] = None
    found.lists.bumps += 1
    found.lists.updated(NODES[0])
    found.host.pass_time(20 * WATCH)
    assert began(found) == []


def test_a_leader_that_is_back_in_time_is_not_replaced() -> None:
    """5.8: "if it is still gone"."""
    found = led(stand(init_spread=10.0))
    found.lists.lose(NODES[0])
    found.lists.find(NODES[0])
    found.host.pass_time(20.0)
    assert began(found) == []


def test_who_heard_a_query_does_not_start() -> None:
    """5.8: "no QUERY was heard in the last TIMEOUT"; the watch stays (D10)."""
    found = led(stand(init_spread=0.1))
    found.lists.lose(NODES[0])
    found.hear(NODES[1], Query(NAME, BASE, 1, 1, 0, 0))
    found.host.pass_time(0.11)
    assert began(found) == []
    found.host.pass_time(2 * WATCH)
    assert began(found)[0] == "watch"


def test_resigning_is_quicker() -> None:
    """5.8: a quarter of the spread if it resigned: no false alarm."""
    found = led(stand(init_spread=8.0))
    found.exchange.table("elected").learn([_over(TERM, NODES[0])])
    found.host.pass_time(2.001)
    assert began(found) == ["gone"]


def _over(term: int, who: str):  # type: ignore[no-untyped-def]
    import msgspec

    from holdfast.features.election.protocol.reigns import Row
    from holdfast.kit.rows import Row as KitRow

    return KitRow(NAME, msgspec.msgpack.encode(Row(NAME, BASE, term, who, 1, over=True)), 0.0)


@pytest.mark.parametrize("few", [True, False])
def test_few_start_when_a_leader_is_gone(few: bool) -> None:
    """D25: of forty members that see it at once, eight begin; without the rule all do, each with c+f questions."""
    names = ranked_names(40)
    starts = 0
    for index in range(1, 40):
        found = Stand(*(name for name in names if name != names[index]), me=names[index], made=BASE, rules=Rules(few_initiators=few))
        led_by = Leader(NAME, BASE, TERM, life(names[0]), active=True)
        found.hear(names[0], led_by)
        found.lists.lose(names[0])
        found.host.pass_time(2 * TIMEOUT + 0.001)
        starts += bool(found.facts(Initiated))
    assert starts == (INITIATORS if few else 39)


def test_another_eight_stand_in_for_the_next_term() -> None:
    """D25: drawn by hash of name, term, member."""
    names = ranked_names(40)

    def chosen(term: int) -> set[str]:
        found = Stand(*names[1:], me=names[0], made=BASE)
        found.hear(names[1], Leader(NAME, BASE, term, life(names[1]), active=True))
        contest = found.machine._core.contests[NAME]
        watching = found.machine._watching
        lots = sorted(watching._lot(contest, str(term), life(name)) for name in names)
        return {each.name for _, each in lots[:INITIATORS]}

    assert chosen(TERM) != chosen(TERM + 1)


@pytest.mark.parametrize("watch", [True, False])
def test_all_who_saw_a_query_watch(watch: bool) -> None:
    """D10: the initiator dies after its questions; a member that was asked starts an election itself."""
    found = stand(rules=Rules(watch=watch), stands=False)
    found.hear(NODES[0], Query(NAME, BASE, 1, 1, 0, 0))
    found.host.pass_time(2 * WATCH + 0.01)
    assert bool(began(found)) is watch


def test_a_dead_initiator_is_replaced_end_to_end() -> None:
    """D10: it dies after its first QUERY; the others elect the best-ranked one all the same."""
    town = Town(5, made=HYBRID)
    town.stand()
    town.run(0.02)
    initiator = town.names[3]
    town.elections[initiator].elect(NAME)
    town.run(0.015)
    town.crash(initiator)
    town.detect(initiator)
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[0]]


def test_the_watch_is_armed_again() -> None:
    """5.8: it re-arms while a candidate is known and no leader, whatever came of the election."""
    found = stand(query_rounds=1)
    found.host.pass_time(5 * 2 * WATCH)
    assert len(began(found)) >= 4


def test_the_watch_rests_while_none_stands() -> None:
    """E13: a name that no client asks for has no leader and no elections."""
    found = stand(stands=False, candidates=[])
    found.hear(NODES[0], Query(NAME, BASE, 1, 1, 0, 0))
    found.host.pass_time(20 * WATCH)
    assert began(found) == []
    assert found.machine._core.contests[NAME].watch is None
    found.rows.publish(life(NODES[2]), found.machine._core.contests[NAME].row, _post())
    found.host.pass_time(1.0 + 2 * WATCH)
    assert began(found)


def _post() -> bytes:
    from tests.features.election.stand import post

    return post(BASE)


def test_a_late_watch_waits_for_what_was_said_meanwhile() -> None:
    """F11: a process that was stopped reads first; its list may be old."""
    found = stand(stands=False)
    found.hear(NODES[0], Query(NAME, BASE, 1, 1, 0, 0))
    found.host.pause(2 * WATCH + 2.5)
    assert began(found) == []
    found.host.pass_time(2 * WATCH)
    assert began(found)


@pytest.mark.parametrize("settled", [True, False])
def test_two_that_start_apart_elect_no_two_leaders(settled: bool) -> None:
    """D19: a member whose seeds are others' addresses, and that has not met the group, is not settled and takes part in nothing."""
    found = Stand(me="m0", made=HYBRID, rules=Rules(settled=settled)).stand()
    found.lists.unsettled["m0"] = None
    found.host.pass_time(20.0)
    assert bool(found.client.granted) is not settled


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_groups_elect(n: int) -> None:
    """D15: 1 at once; of 2 the survivor elects itself; of 3 one may fail."""
    town = Town(n, made=HYBRID, c=None, f=None).stand()
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[0]]
    if n > 1:
        town.crash(town.names[0])
        town.detect(town.names[0])
        town.run_until(town.agreed)
        assert town.leaders() == [town.names[1]]


def test_a_name_goes_quiet_when_it_is_led() -> None:
    """5.7: learn cancels the watch; a minute of calm costs no QUERY."""
    town = Town(5, made=HYBRID).stand()
    town.run_until(town.agreed)
    town.run(2 * TIMEOUT)  # LEADER is said twice (H441).
    town.sent.clear()
    town.run(20.0)
    assert not [message for _, _, message in town.sent if isinstance(message, Query | Leader)]
