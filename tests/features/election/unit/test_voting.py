"""Voters of mode ``members``: what they promise, save, and may not forget.  Spec: election 5.2, 5.7, D9, D20, section 4 (W)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import StorageDamaged
from holdfast.features.election.protocol.config import QUARANTINE, UNANSWERED_MAX
from holdfast.features.election.protocol.contest import SPENT
from holdfast.features.election.protocol.facts import VoterReady
from holdfast.features.election.protocol.manner import manner
from holdfast.features.election.protocol.messages import Leader, LeaderAck, NotifyLeader, NotifyNack, Query, Response
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.voting import SYNC_ROUNDS
from holdfast.host import NodeId
from holdfast.lab.fake_host import FakeStorage
from tests.features.election.stand import NAME, TIMEOUT, Stand, Town, life, ranked_names

NODES = ranked_names(5)
TERM = 1_700_000_000_500
MEMBERS = manner("hybrid", "members")
TTL = 6 * TIMEOUT


def stand(at: int = 0, **changes: Any) -> Stand:
    others = [name for index, name in enumerate(NODES) if index != at]
    return Stand(*others, me=NODES[at], made=MEMBERS, **changes).stand()


def voter(at: int = 0, **changes: Any) -> Stand:
    found = stand(at, **changes)
    found.machine._core.contests[NAME].voter = True
    return found.quiet()


def acks(found: Stand) -> list[tuple[str, int, bool, int]]:
    return [(to.name, ack.term, ack.ok, ack.promised) for to, ack in found.host.take(LeaderAck) if isinstance(to, NodeId)]


def leads(found: Stand, who: int, term: int, *, active: bool = False) -> None:
    found.hear(NODES[who], Leader(NAME, MEMBERS, term, life(NODES[who]), active))


def synced(found: Stand, source: str, **fields: object) -> None:
    """The answer of a member to the last QUERY(sync)."""
    eid = found.machine._voting._syncs[NAME].eid
    found.hear(source, Response(NAME, MEMBERS, eid, **fields))  # type: ignore[arg-type]


def is_voter(found: Stand) -> bool:
    state = found.machine.state(NAME)
    assert state is not None
    return state.voter


def test_one_term_is_promised_to_one_life() -> None:
    """5.7: a higher term, or the same one to the same life, is accepted; the same to another, and a lower one, are refused."""
    found = voter()
    leads(found, 1, TERM)
    leads(found, 1, TERM)
    leads(found, 2, TERM)
    leads(found, 2, TERM - 1)
    leads(found, 2, TERM + 1)
    assert acks(found) == [
        (NODES[1], TERM, True, TERM), (NODES[1], TERM, True, TERM), (NODES[2], TERM, False, TERM), (NODES[2], TERM - 1, False, TERM),
        (NODES[2], TERM + 1, True, TERM + 1),
    ]  # fmt: skip


def test_an_active_leader_is_not_acknowledged() -> None:
    """Section 3: LEADERACK while tentative."""
    found = voter()
    leads(found, 1, TERM, active=True)
    assert acks(found) == []
    assert found.machine.leader(NAME).leader == life(NODES[1])  # type: ignore[union-attr]


def test_a_promise_is_durable_before_it_is_said() -> None:
    """5.7: persist, then LEADERACK; what was overtaken while the disk worked is not acknowledged."""
    found = voter()
    found.host.disk.auto = False
    leads(found, 1, TERM)
    leads(found, 2, TERM + 1)
    assert acks(found) == []
    found.host.disk.complete()
    assert acks(found) == [(NODES[2], TERM + 1, True, TERM + 1)]


def test_a_restart_remembers() -> None:
    """5.2: a promise in the storage is loaded: voter once settled, without quarantine; the term stays promised to that life."""
    found = voter()
    leads(found, 1, TERM)
    again = stand(storage=FakeStorage(found.host.disk.durable, auto=True), boot=2).quiet()
    assert is_voter(again)
    leads(again, 2, TERM)
    leads(again, 1, TERM)
    assert acks(again) == [(NODES[2], TERM, False, TERM), (NODES[1], TERM, True, TERM)]


def test_a_record_that_is_none_is_damage() -> None:
    """Foundation 3: what is unreadable is not guessed."""
    with pytest.raises(StorageDamaged, match="the promise for 'n' is unreadable"):
        stand(storage=FakeStorage({"election/n": b"\xff"}, auto=True))


def test_a_non_voter_does_nothing() -> None:
    """5.2: it never acks, initiates, answers elections or accepts NOTIFYLEADER, to which it says "not yet" (H396); it learns."""
    found = stand().quiet()
    leads(found, 1, TERM)
    found.hear(NODES[4], NotifyLeader(NAME, MEMBERS, 1, TERM + 1, final=True))
    assert acks(found) == []
    assert [(message.term, message.gone) for _, message in found.host.take(NotifyNack)] == [(0, False)]
    assert found.ask(NODES[4]) is None
    assert found.role() is Role.FOLLOWER
    assert not found.machine._initiator.begin(found.machine._core.contests[NAME], "watch")
    leads(found, 1, TERM, active=True)
    assert found.machine.leader(NAME) is not None


def test_quarantine_then_sync_then_voter() -> None:
    """5.2: 1.1 candidacy_ttl from the start, QUERY(sync) to all, min(W, N_ref-1) other names; the highest term is taken as SPENT."""
    found = stand().quiet()
    found.host.pass_time(QUARANTINE * TTL - 0.02)
    assert found.host.take(Query) == []
    found.host.pass_time(0.03)
    asked = found.host.take(Query)
    assert sorted(str(to) for to, _ in asked) == sorted(str(life(name)) for name in NODES[1:])
    assert all(query.sync for _, query in asked)
    synced(found, NODES[1], term=TERM)
    synced(found, NODES[1], term=TERM)
    synced(found, NODES[2], term=TERM - 3)
    assert not is_voter(found)
    synced(found, NODES[3])
    assert is_voter(found)
    state = found.machine.state(NAME)
    assert state is not None
    assert (state.promised, state.promised_to) == (TERM, SPENT)
    assert [fact.answers for fact in found.facts(VoterReady)] == [3]  # type: ignore[attr-defined]
    leads(found, 1, TERM)
    assert acks(found) == [(NODES[1], TERM, False, TERM)]


def test_a_former_life_does_not_count() -> None:
    """5.2: the own name does not count: the set must meet every majority that it may have forgotten."""
    found = stand(boot=2).quiet()
    found.host.pass_time(QUARANTINE * TTL + 0.01)
    for source in (NODES[0], NODES[1], NODES[2]):
        synced(found, source)
    assert not is_voter(found)


def test_more_known_names_need_more_answers() -> None:
    """5.2: every answer counts, and W follows the largest ``known``; after twelve rounds it begins anew, so that one that lied and is gone
    does not count for ever."""
    found = stand().quiet()
    found.host.pass_time(QUARANTINE * TTL + 0.01)
    synced(found, NODES[1], known=40)
    for name in NODES[2:]:
        synced(found, name)
    assert not is_voter(found)
    found.host.pass_time(SYNC_ROUNDS * TIMEOUT)
    for name in NODES[2:]:
        synced(found, name)
    assert is_voter(found)


def test_who_is_the_group_needs_no_quarantine() -> None:
    """5.2, D15: N_ref = 1: voter, and leader, at once."""
    town = Town(1, made=MEMBERS).stand()
    assert town.run_until(town.agreed) < 2 * TIMEOUT + 0.05


def test_sync_repeats_to_the_silent() -> None:
    """5.2: every TIMEOUT to those that have not answered."""
    found = stand().quiet()
    found.host.pass_time(QUARANTINE * TTL + 0.01)
    found.host.take(Query)
    synced(found, NODES[1])
    found.host.pass_time(TIMEOUT)
    assert sorted(str(to) for to, _ in found.host.take(Query)) == sorted(str(life(name)) for name in NODES[2:])


@pytest.mark.parametrize("rules, votes", [(Rules(), False), (Rules(synced=False), True), (Rules(quarantined=False), False)])
def test_a_forgotten_promise_is_not_given_again(rules: Rules, votes: bool) -> None:
    """D20: X acked a term and lost its memory. Without sync it would accept another leader of that term at once."""
    found = stand(boot=2, rules=rules).quiet()
    leads(found, 2, TERM)
    assert bool(acks(found)) is votes


def test_without_quarantine_it_asks_at_once() -> None:
    """D20: the quarantine covers majorities that are still being collected."""
    for quarantined in (True, False):
        found = stand(boot=2, rules=Rules(quarantined=quarantined))
        found.host.pass_time(1.01)
        assert bool(found.host.take(Query)) is not quarantined


def test_d20_end_to_end() -> None:
    """D20: N=5. X accepts (t, L1) and restarts without memory; L2 collects for the same term. Never two leaders of one term."""
    elected: dict[int, set[str]] = {}
    town = Town(5, made=MEMBERS, seed=3).stand()
    town.run_until(town.agreed)
    for name in town.names[1:4]:
        town.crash(name)
        town.restart(name)
        town.stand(name)
        town.run(0.1)
    town.run(5.0)
    for name in town.names:
        for token in town.clients[name].granted:
            elected.setdefault(token, set()).add(name)
    assert all(len(names) == 1 for names in elected.values())
    town.run_until(town.agreed)


def test_pending_promises_are_bounded() -> None:
    """Section 2: at most 256 wait for the disk; what is beyond is not promised, and counted."""
    found = voter()
    found.host.disk.auto = False
    for number in range(UNANSWERED_MAX + 5):
        leads(found, 1, TERM + number)
    assert len(found.host.disk.pending) == UNANSWERED_MAX
    assert found.machine.counts["unsaved"] == 5


def test_a_partition_elects_on_the_side_of_the_majority() -> None:
    """Section 1, Partition: a side with W voters can activate; the minority's leader steps down; on heal all adopt the highest term."""
    town = Town(5, made=MEMBERS).stand()
    town.run_until(town.agreed)
    small, large = town.names[:2], town.names[2:]
    town.lost = lambda source, target, message: (source in small) != (target in small)
    for one in small:
        for other in large:
            town.lists[one].lose(other)
            town.lists[other].lose(one)
    town.run_until(lambda: town.leaders() == [large[0]])
    town.run(2.0)
    assert town.clients[town.names[0]].lost == ["no support"]
    town.lost = lambda source, target, message: False
    for one in small:
        for other in large:
            town.lists[one].find(other)
            town.lists[other].find(one)
    town.run_until(town.agreed)
    assert town.leaders() == [large[0]]


def test_names_that_failed_count_until_they_are_forgotten() -> None:
    """D9: N_ref is of names known, not of those that are listed."""
    found = voter()
    for name in NODES[2:]:
        found.lists.lose(name)
    assert found.machine.state(NAME).needed == 3  # type: ignore[union-attr]
    found.lists.dead.clear()
    assert found.machine.state(NAME).needed == 2  # type: ignore[union-attr]
