"""The database of link states and numbers; every age is counted from the own question.  Spec: views 5.2, D5, D24."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.features.views.protocol.linkstate import LinkState
from holdfast.features.views.protocol.messages import NEVER, Known, Listed, Lsa
from holdfast.host import NodeId
from tests.features.views.stand import CONFIG, S0, S1, S2, S3, A, B, at
from tests.support.fake_host import FakeHost

OLD = CONFIG.lsa_max_age


class Stand:
    """The database of s0, in a group of three."""

    def __init__(self) -> None:
        self.host = FakeHost(*S0)
        self.states = LinkState(self.host, CONFIG, 3, 0)

    def hear(self, *known: Known, asked_at: float | None = None) -> tuple[int, ...]:
        return self.states.take_known(self.host.now if asked_at is None else asked_at, known)

    def known(self, slot: int) -> Known:
        return next(entry for entry in self.states.known(0) if entry.slot == slot)


@pytest.fixture
def stand() -> Stand:
    return Stand()


def lsa(seq: int, life: NodeId = S1, *clients: Listed, up: tuple[NodeId, ...] = ()) -> Lsa:
    return Lsa(int(life.name[1:]), life, seq, up, clients)


def test_a_new_number_for_every_change_and_none_else(stand: Stand) -> None:
    """Views 5.2: publish if links or clients differ from what was published last; there is no refresh."""
    first = stand.states.publish((S1,), ())
    assert first is not None
    assert first.seq == 2
    assert stand.states.publish((S1,), ()) is None
    second = stand.states.publish((S1,), (Listed(A, 1, at(A)),))
    assert second is not None
    assert second.seq == 3
    assert stand.states.mine is second


def test_a_link_state_counts_from_the_question_whose_answer_named_it(stand: Stand) -> None:
    """Views 5.2, D24: not from its arrival, and not from the arrival of the answer."""
    asked_at = stand.host.now
    stand.states.take(lsa(3))
    assert S1 not in stand.states.fresh()
    stand.host.pass_time(1.0)
    assert stand.hear(Known(1, S1, 3, 0.5, 0, NEVER), asked_at=asked_at) == ()
    assert stand.states.held[1].fresh_at == asked_at - 0.5
    stand.host.clock = asked_at - 0.5 + OLD
    assert stand.states.is_fresh(1, S1)
    stand.host.clock += 0.01
    assert not stand.states.is_fresh(1, S1)
    assert stand.states.fresh_slots() == (0,)
    assert list(stand.states.fresh()) == [S0]


def test_confirmations_arrive_in_any_order(stand: Stand) -> None:
    """Views 5.2: ``fresh_at`` is the latest moment that was ever known."""
    stand.states.take(lsa(3))
    now = stand.host.now
    stand.hear(Known(1, S1, 3, 0.1, 0, NEVER))
    stand.hear(Known(1, S1, 3, 0.7, 0, NEVER))
    stand.hear(Known(1, S1, 3, NEVER, 0, NEVER))
    assert stand.states.held[1].fresh_at == now - 0.1


def test_a_newer_link_state_is_as_fresh_as_the_former_one(stand: Stand) -> None:
    """Views 5.2, D24: it was made after that moment. Its arrival says nothing: a hole that lets it pass once must not make it young."""
    stand.states.take(lsa(3))
    stand.hear(Known(1, S1, 3, 0.0, 0, NEVER))
    was = stand.states.held[1].fresh_at
    stand.host.pass_time(1.0)
    assert stand.states.take(lsa(4))
    assert stand.states.held[1].fresh_at == was


def test_a_new_life_begins_without_a_moment(stand: Stand) -> None:
    """Views 5.2: what was known of the former life says nothing of the next one."""
    stand.states.take(lsa(3))
    stand.hear(Known(1, S1, 3, 0.0, 0, NEVER))
    newer = NodeId(S1.name, S1.boot + 1)
    assert stand.states.take(lsa(1, newer))
    assert stand.states.fresh_slots() == (0,)


def test_what_is_not_newer_is_dropped(stand: Stand) -> None:
    """Views 5.2: by boot and number; so flooding ends."""
    assert stand.states.take(lsa(3))
    version = stand.states.version
    assert not stand.states.take(lsa(3, up=(S2,)))
    assert not stand.states.take(lsa(2))
    assert not stand.states.take(lsa(9, NodeId(S1.name, S1.boot - 1)))
    assert stand.states.held[1].lsa == lsa(3)
    assert stand.states.version == version


def test_what_is_newer_elsewhere_is_asked_for(stand: Stand) -> None:
    """Views 5.2: a pong that names a newer link state makes this server ask, and confirms nothing of the one it holds."""
    stand.states.take(lsa(3))
    assert stand.hear(Known(1, S1, 4, 0.0, 0, NEVER), Known(2, S2, 1, 0.0, 0, NEVER)) == (1, 2)
    assert stand.states.fresh_slots() == (0,)
    assert stand.hear(Known(1, S1, 2, 0.0, 0, NEVER)) == ()
    assert stand.hear(Known(1, NodeId(S1.name, S1.boot - 1), 9, 0.0, 0, NEVER)) == ()


def test_numbers_of_others(stand: Stand) -> None:
    """Views 2 (seen), 5.2: a higher one with its moment, or a later moment for the same one."""
    now = stand.host.now
    stand.hear(Known(1, S1, 0, NEVER, 7, 0.5))
    assert stand.states.has_number(S1, 7)
    assert not stand.states.has_number(S1, 6)
    stand.hear(Known(1, S1, 0, NEVER, 7, 1.0))
    stand.hear(Known(1, S1, 0, NEVER, 6, 0.0))
    stand.host.clock = now - 0.5 + OLD
    assert stand.states.has_number(S1, 7)
    stand.host.clock += 0.01
    assert not stand.states.has_number(S1, 7)
    stand.hear(Known(1, S1, 0, NEVER, 7, 0.0))
    assert stand.states.has_number(S1, 7)
    stand.hear(Known(1, S1, 0, NEVER, 8, 0.0))
    assert not stand.states.has_number(S1, 7)


def test_a_proposal_raises_the_number_and_not_the_moment(stand: Stand) -> None:
    """Views 5.2, D24: the proposal may have been under way for any time."""
    stand.states.saw(1, S1, 5)
    assert not stand.states.has_number(S1, 5)
    stand.hear(Known(1, S1, 0, NEVER, 5, 0.0))
    stand.host.pass_time(OLD / 2)
    stand.states.saw(1, S1, 6)
    assert stand.states.has_number(S1, 6)
    stand.host.pass_time(OLD / 2 + 0.01)
    assert not stand.states.has_number(S1, 6)
    stand.hear(Known(1, S1, 0, NEVER, 6, 0.0))
    assert stand.states.has_number(S1, 6)
    stand.states.saw(1, NodeId(S1.name, S1.boot + 1), 1)
    assert not stand.states.has_number(NodeId(S1.name, S1.boot + 1), 1)


def test_what_it_says_of_others_has_grown_older_here(stand: Stand) -> None:
    """Views 5.1 (LinkPing): ages counted to now; of itself it is always sure."""
    stand.states.take(lsa(3))
    stand.hear(Known(1, S1, 3, 0.25, 9, 0.5))
    stand.host.pass_time(1.0)
    assert stand.states.known(4) == (Known(0, S0, 1, 0.0, 4, 0.0), Known(1, S1, 3, 1.25, 9, 1.5))


def test_of_two_lives_the_newer_one_is_spoken_of(stand: Stand) -> None:
    """Views 3 (known): one entry is of one life; what is known of the other one is not mixed in."""
    newer = NodeId(S1.name, S1.boot + 1)
    stand.states.take(lsa(3))
    stand.hear(Known(1, S1, 3, 0.0, 0, NEVER))
    stand.hear(Known(1, newer, 0, NEVER, 2, 0.0))
    assert stand.known(1) == Known(1, newer, 0, NEVER, 2, 0.0)


def test_what_was_never_confirmed_is_no_confirmation(stand: Stand) -> None:
    """Views 5.2: a peer that only stored a link state knows no moment at which it was the present one."""
    stand.states.take(lsa(3))
    assert stand.known(1) == Known(1, S1, 3, NEVER, 0, NEVER)
    stand.hear(Known(1, S1, 3, NEVER, 0, NEVER))
    assert stand.states.held[1].fresh_at < 0


def test_what_a_peer_says_of_this_server_or_of_no_slot_is_passed_over(stand: Stand) -> None:
    """Views 10: the own slot, a slot that there is not, this life under another number."""
    version, seen = stand.states.version, dict(stand.states._seen)
    strange = (
        Known(0, NodeId("x", 9), 9, 0.0, 9, 0.0),
        Known(3, S3, 9, 0.0, 9, 0.0),
        Known(-1, S3, 9, 0.0, 9, 0.0),
        Known(1, S0, 9, 0.0, 9, 0.0),
    )
    assert stand.hear(*strange) == ()
    assert (stand.states.version, stand.states._seen) == (version, seen)


def test_where_a_client_was_last(stand: Stand) -> None:
    """Views 5.5 (a), D10: the highest identity in the fresh link states of other servers."""
    stand.states.publish((), (Listed(A, 9, at(A)),))
    stand.states.take(lsa(3, S1, Listed(A, 4, at(A)), Listed(B, 1, at(B))))
    stand.states.take(lsa(3, S2, Listed(A, 5, at(A))))
    assert stand.states.newest_of(A.name) == (0, -1)
    stand.hear(Known(1, S1, 3, 0.0, 0, NEVER))
    assert stand.states.newest_of(A.name) == (A.boot, 4)
    stand.hear(Known(2, S2, 3, 0.0, 0, NEVER))
    assert stand.states.newest_of(A.name) == (A.boot, 5)
    assert stand.states.newest_of("other") == (0, -1)


@pytest.mark.parametrize("seed", range(30))
def test_no_delay_makes_anything_look_younger(seed: int) -> None:
    """Views D24, G6: three servers ask each other with any delay there and back, and pass on what they heard. A moment that one of them
    has for a number is never after the origin left it; one for a link state never after the origin replaced it."""
    random = Random(seed)
    hosts = [FakeHost(*life) for life in (S0, S1, S2)]
    states = [LinkState(host, CONFIG, 3, slot) for slot, host in enumerate(hosts)]
    nums, left, replaced = [1, 1, 1], {}, {}
    under_way: list[tuple[float, int, float, tuple[Known, ...]]] = []  # arrival, asker, asked at, what the answer says
    for _ in range(400):
        now = hosts[0].now + random.expovariate(20)
        for host in hosts:
            host.clock = now
        for answer in sorted(under_way):
            if answer[0] <= now:
                under_way.remove(answer)
                states[answer[1]].take_known(answer[2], answer[3])
        at_server = random.randrange(3)
        what = random.random()
        if what < 0.15:
            left[at_server, nums[at_server]] = now
            nums[at_server] += 1
        elif what < 0.3:
            replaced[at_server, states[at_server].mine.seq] = now
            states[at_server].publish((NodeId(f"s{random.random()}", 1),), ())
        elif what < 0.45:
            other = random.choice([slot for slot in range(3) if slot != at_server])
            states[other].take(states[at_server].mine)
            states[other].saw(at_server, hosts[at_server].me, nums[at_server])
        else:
            asker = random.choice([slot for slot in range(3) if slot != at_server])
            known = states[at_server].known(nums[at_server])
            under_way.append((now + random.expovariate(2), asker, now - random.expovariate(2), known))
        for mine, database in enumerate(states):
            for slot, seen in database._seen.items():
                assert seen.at <= left.get((slot, seen.num), now), (mine, slot)
            for slot, held in database.held.items():
                assert slot == mine or held.fresh_at <= replaced.get((slot, held.lsa.seq), now), (mine, slot)
