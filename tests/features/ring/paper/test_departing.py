"""Departing, and coming back: paper 000, section III.4 (forced departures); spec ring 5.5, D12, D13, D21, D23; foundation F14."""

from __future__ import annotations

import pytest

from holdfast.events import Event, Expelled, Failed, Left
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed, JoinStarted, Removed
from holdfast.features.ring.protocol.forgetting import EPOCHS_MAX, forget
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Address, Message, NodeId
from tests.features.ring.stand import STEP, T_A, T_ARB, T_L, Stand, crowd, expelled_again

NAMES = list("abcefg")


# Out first, then said.


def test_out_before_anybody_is_told() -> None:
    """Ring 5.5: the user's event and the loss of ownership come before any message."""
    stand, _ = crowd()
    order: list[str] = []
    emit, send = stand.host.emit, stand.host.send

    def note_event(event: Event) -> None:
        if isinstance(event, Departed | Expelled):
            order.append(type(event).__name__ if not stand.ring.claims(1000) else "too early")
        emit(event)

    def note_message(to: NodeId | Address, message: Message) -> None:
        order.append(type(message).__name__)
        send(to, message)

    stand.ring.raw.emit, stand.ring.raw.send = note_event, note_message  # type: ignore[method-assign]
    stand.ring.depart("test")
    assert order[:3] == ["Departed", "Expelled", "Leave"]
    assert set(order[2:]) == {"Leave"}


def test_leave_is_said_three_times() -> None:
    """Ring 3, 5.5: to every pair peer, three copies r T_l apart."""
    stand, _ = crowd()
    stand.ring.leave()
    finished = []
    for _ in range(3):
        assert stand.told(m.Leave) == NAMES
        finished.append(stand.ring.left)
        stand.host.pass_time(T_L / 8)
    assert stand.told(m.Leave) == []
    assert finished == [False, False, True]  # With the last copy out, the process may end.


def test_a_departed_process_answers_for_its_former_id() -> None:
    """Ring 5.5: for 2 T_arb, LR to the former id is answered with Leave; other questions, other rings and later ones are not."""
    stand, peers = crowd()
    stand.ring.leave()
    stand.host.pass_time(T_L)
    stand.host.sent.clear()
    stand.say(peers[0], stand.request(peers[0], 9))
    assert stand.told(m.Leave) == ["a"]
    stand.say(peers[0], stand.request(peers[0], 9, ring=stand.ring.ring + 1))
    stand.say(peers[0], m.Vouch(*stand.head(peers[0]), peers[1].id))
    assert stand.host.sent == []
    stand.host.pass_time(2 * T_ARB)
    stand.say(peers[0], stand.request(peers[0], 10))
    assert stand.host.sent == []


def test_leave_ends_a_membership_at_once() -> None:
    """Ring 5.5 (on Leave): removed, certain, no arbitration and no waiting."""
    stand, peers = crowd()
    gen = stand.ring.fencing.gen
    stand.say(peers[0], m.Leave(*stand.head(peers[0]), "graceful", gen + 5))
    assert [(event.id, event.certain, event.reason, event.gen) for event in stand.host.events(Removed)] == [
        (peers[0].id, True, "left", gen + 6)
    ]
    assert [event.member.id for event in stand.host.events(Left)] == [peers[0].node]
    assert stand.told(m.Arb) == []
    assert peers[0].id not in stand.ring.pairs


def test_published_deadlines_bind_who_leaves() -> None:
    """F14: nothing is said before the last deadline that was told to a client has passed, not even to those who ask."""
    stand, peers = crowd()
    owned = stand.ring.owns(1000)
    assert owned is not None
    stand.ring.leave()
    stand.say(peers[0], stand.request(peers[0], 9))
    assert stand.take(m.Leave) == []
    stand.host.pass_time(owned.until - stand.host.now - 0.001)
    assert stand.take(m.Leave) == []
    stand.host.pass_time(0.001)
    assert stand.told(m.Leave) == NAMES


def test_ownership_is_published_for_half_a_lease() -> None:
    """Ring 5.5: at most T_l/2 at a time, and never beyond safe_until."""
    stand, peers = crowd()
    owned = stand.ring.owns(1000)
    assert owned is not None
    assert owned.until == stand.host.now + T_L / 2
    while stand.ring.safe_until - stand.host.now > T_L / 4:
        stand.live(STEP, silent=peers[:1])
        if stand.departures():
            break
        again = stand.ring.owns(1000)
        assert again is None or again.until <= min(stand.ring.safe_until, stand.host.now + T_L / 2)


# Forced departures (III.4).


def test_a_forced_departure_is_told_to_the_user_and_to_the_peers() -> None:
    """D13: who has fenced itself may say so; peers then need no arbitration."""
    stand, peers = crowd()
    while stand.pair(peers[0]).susp is None:
        stand.live(STEP, silent=peers[:1])
    stand.vote(no=peers[1:5])
    assert [event.why for event in stand.host.events(Expelled)] == ["rejected"]
    assert stand.told(m.Leave) == NAMES


def test_without_notices_nobody_is_told() -> None:
    """D13 switched off, as in the paper: no Leave, and no answer to those who ask."""
    stand, peers = crowd(rules=Rules(leave_notice=False))
    stand.ring.depart("test")
    stand.say(peers[0], stand.request(peers[0], 9))
    stand.host.pass_time(T_L)
    assert stand.take(m.Leave) == []


@pytest.mark.parametrize("notice", [True, False], ids=["with notices", "as in the paper"])
def test_what_notices_are_for(notice: bool) -> None:
    """D13: one of ten members goes. With notices nobody needs an arbitration; without, each of its 6 monitors does."""
    rings = Rings(2, RingConfig(k=3), rules=Rules(leave_notice=notice))
    rings.form([f"n{i}" for i in range(10)])
    rings.world.run(3.0)
    rings.members["n4"].leave()
    rings.world.run(9.0)
    assert sum(ring.counts["wins"] for ring in rings.members.values()) == (0 if notice else 6)
    assert sum(len(ring.list) == 9 for ring in rings.alive) == 9


def test_who_is_told_that_it_is_gone_departs() -> None:
    """Ring 3 (Gone), 5.7: a member that learns of its own tombstone departs."""
    stand, peers = crowd()
    stand.say(peers[0], m.Gone(*stand.head(peers[0]), peers[1].id, certain=True))
    assert stand.departures() == []
    stand.say(peers[0], m.Gone(*stand.head(peers[0]), stand.ring.id, certain=True))
    assert stand.departures() == ["declared"]


def test_the_gone_are_told_and_otherwise_ignored() -> None:
    """Ring 5.7: a message of a tombstoned id is answered with Gone; its Vote, Leave and Unlock are processed."""
    stand, peers = crowd()
    stand.say(peers[0], m.Leave(*stand.head(peers[0]), "graceful", 0))
    stand.host.sent.clear()
    stand.say(peers[0], stand.request(peers[0], 5))
    assert [message.id for message in stand.to(peers[0], m.Gone)] == [peers[0].id]
    assert stand.take(m.LeaseAck) == []
    stand.say(peers[0], m.Leave(*stand.head(peers[0]), "graceful", 0))
    assert stand.take(m.Gone) == []


def test_a_departed_arbitrators_vote_still_binds() -> None:
    """Ring 5.7: a vote of somebody who left since is counted."""
    stand, peers = crowd()
    while stand.pair(peers[0]).susp is None:
        stand.live(STEP, silent=peers[:1])
    stand.say(peers[1], m.Leave(*stand.head(peers[1]), "graceful", 0))
    stand.vote(yes=peers[1:4])
    assert peers[0].id in stand.ring.condemned


# Coming back.


def test_the_backoff_grows_with_every_forced_departure() -> None:
    """D23: it doubles up to 60 T_l: a broken link must not eject somebody every few seconds."""
    delays = expelled_again(Stand(), 12)
    for number, delay in enumerate(delays, 1):
        assert 0.2 * T_L <= delay <= T_L * min(60, 2**number)
    assert max(delays) > 8 * T_L


def test_long_membership_is_forgiveness() -> None:
    """D23: after 100 T_l of membership the next backoff is a first one again."""
    stand = Stand()
    expelled_again(stand, 8)
    stand.host.emitted.clear()
    delays = expelled_again(stand, 12, calm=100 * T_L)
    assert max(delays) <= 2 * T_L


def test_a_graceful_leaver_stays_out() -> None:
    """Ring 5.5: unless graceful, it rejoins."""
    rings = Rings(1, RingConfig(k=2), seeds=["n0", "n1"])
    rings.form([f"n{i}" for i in range(5)])
    rings.world.run(2.0)
    rings.members["n3"].leave()
    rings.world.run(60.0)
    assert not rings.members["n3"].is_member
    assert {len(ring.list) for ring in rings.alive} == {4}


def test_an_expelled_member_comes_back_under_a_new_id() -> None:
    """Ring 5.5, D12, D21: rejoins after backoff, at the same position, with another inc, and is listed once."""
    rings = Rings(1, RingConfig(k=2), configure=_seeded)
    rings.form([f"n{i}" for i in range(6)])
    rings.world.run(2.0)
    former = rings.members["n3"].id
    rings.members["n3"].depart("test")
    rings.world.run(20.0)
    ring = rings.members["n3"]
    assert ring.is_member
    assert ring.id.pos == former.pos
    assert ring.id.inc != former.inc
    assert all(former not in other.list and ring.id in other.list for other in rings.alive)


def _seeded(name: str, config: RingConfig) -> RingConfig:
    return RingConfig(k=2, seeds=(Address("n0", 7946), Address("n1", 7946)))


def test_a_restart_is_noticed_at_once() -> None:
    """D12, F6: the next life of a crashed member says that the former one is over, so it is back long before a lease could run out."""
    rings = Rings(1, RingConfig(k=2), configure=_seeded)
    rings.form([f"n{i}" for i in range(6)])
    rings.world.run(2.0)
    removed: list[tuple[float, str]] = []
    rings.world.listeners.append(
        lambda host, event: removed.append((rings.world.now, event.reason)) if isinstance(event, Removed) else None
    )
    rings.world.crash("n3")
    rings.start("n3")
    rings.world.run(12.0)
    assert rings.members["n3"].is_member
    assert {reason for _, reason in removed} == {"restarted"}
    # Nothing that the former life published runs any more after T_l/2; the first knock may come before and the next one after a backoff.
    assert max(when for when, _ in removed) < 2.0 + 4 * T_L


def test_former_memberships_are_named_in_the_next_attempt() -> None:
    """D12: Discover names the memberships of this life that are over, once nobody acts under them."""
    stand = Stand(config=RingConfig(k=3, seeds=(Address("seed", 1),)))
    former = stand.ring.id
    owned = stand.ring.owns(1000)
    assert owned is not None
    stand.ring.depart("test")
    stand.host.pass_time(5 * T_L)
    assert stand.host.events(JoinStarted)
    named = [message.former for _, message in stand.take(m.Discover)]
    assert named[-1] == (former,)


def test_failed_is_for_users_what_removed_is_for_checkers() -> None:
    """Foundation 5: a declared member is reported as Failed with certainty, one that said goodbye as Left, both with their NodeId."""
    stand, peers = crowd(rules=Rules(deaf=False))  # the group is asked at once
    stand.say(peers[0], m.Leave(*stand.head(peers[0]), "graceful", 0))
    while peers[1].id in stand.ring.pairs and stand.pair(peers[1]).susp is None:
        stand.live(STEP, silent=peers[1:2])
    stand.vote(yes=peers[2:5])
    stand.live(stand.ring.config.wait + T_A)
    assert [event.member.id for event in stand.host.events(Left)] == [peers[0].node]
    assert [(event.member.id, event.certain) for event in stand.host.events(Failed)] == [(peers[1].node, True)]


@pytest.mark.parametrize("beyond, kept", [(0, True), (1, False)])
def test_only_epochs_of_candidates_that_never_came_in_are_forgotten(beyond: int, kept: bool) -> None:
    """Ring 5, F17: up to the limit nothing is dropped. Beyond it those of failed candidates go; ids in the list, in a pair or with a
    tombstone are skipped, because a peer may still speak of their epochs."""
    stand, peers = crowd()
    stand.say(peers[0], m.Leave(*stand.head(peers[0]), "graceful", 0))
    ring = stand.ring
    guarded = {peers[0].id, *(peer.id for peer in peers[1:])}
    assert peers[0].id in ring.list.gone
    assert all(peer.id in ring.list or peer.id in ring.pairs for peer in peers[1:])
    ring.epochs.clear()
    ring.epochs.update(dict.fromkeys(guarded, 3))
    strangers = [RingId(number, 7) for number in range(EPOCHS_MAX + beyond - len(guarded))]
    ring.epochs.update(dict.fromkeys(strangers, 1))
    forget(ring)
    assert guarded <= ring.epochs.keys()
    assert any(each in ring.epochs for each in strangers) is kept
