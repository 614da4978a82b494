"""From production practice: indirect leases, patience, "I am here", early news.  Spec: ring 12, P1 to P4. None of them moves a bound."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.events import Decided, Event
from holdfast.features.ring.lab.watch import Stage
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.arbitration import TIMEOUT
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import LinkBroken, LinkMended, Lost, Suspicion, Won
from holdfast.features.ring.protocol.ids import Peer
from holdfast.features.ring.protocol.lease import RELAYED_MAX
from holdfast.features.ring.protocol.memberlist import Tombstone
from holdfast.features.ring.protocol.metrics import metrics
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.host import LabHost
from tests.features.ring.stand import STEP, T_A, T_L, Stand, crowd, peer

P1, P2, P3 = RingConfig(k=3, indirect=True), RingConfig(k=3, patient=True), RingConfig(k=3, here=True)


# P1: indirect lease.


def test_an_unanswered_request_goes_by_others() -> None:
    """P1: when a retransmission stays unanswered, the same LR(n) is given to other neighbours, too."""
    stand, peers = crowd(config=P1)
    while stand.pair(peers[0]).acked:
        stand.live(STEP, silent=peers[:1])
    stand.take(m.Relay)
    n = stand.pair(peers[0]).n
    stand.live(T_L / 2, silent=peers[:1])
    relays = stand.take(m.Relay)
    assert relays
    assert {(message.target, message.request.n, message.request.source) for _, message in relays} == {(peers[0].id, n, stand.ring.id)}
    assert peers[0].node not in {to for to, _ in relays}


def test_a_neighbour_passes_it_on_and_back() -> None:
    """P1: Relay goes on to its target as Relayed, and the answer comes back the same way."""
    stand, peers = crowd(config=P1)
    asker, target = peers[0], peers[5]
    request = replace(stand.request(asker, 7), source=asker.id, to=target.id.inc)
    stand.say(asker, m.Relay(*stand.head(asker), target.id, request))
    (relayed,) = stand.to(target, m.Relayed)
    assert relayed.request == request
    ack = replace(stand.ack(target, 7), to=asker.id.inc)
    stand.say(target, m.RelayedAck(*stand.head(target), asker.id, ack))
    (back,) = stand.to(asker, m.RelayedAck)
    assert (back.origin, back.ack) == (asker.id, ack)


def test_a_relayed_request_is_served_like_any_other() -> None:
    """P1: the target acks by the way it came; who suspects does not ack (Rule 1)."""
    stand, peers = crowd(config=P1)
    asker, relay = peers[0], peers[1]
    stand.say(relay, m.Relayed(*stand.head(relay), stand.request(asker, 7)))
    (back,) = stand.to(relay, m.RelayedAck)
    assert (back.origin, back.ack.n) == (asker.id, 7)
    while stand.pair(asker).susp is None:
        stand.live(STEP, silent=[asker])
    stand.take(m.RelayedAck)
    stand.say(relay, m.Relayed(*stand.head(relay), stand.request(asker, 8)))
    assert stand.to(relay, m.RelayedAck) == []


def test_members_open_a_pair_by_others() -> None:
    """P1, H27: two who become neighbours by a crash may never have had a link; what opens their pair says the same by any road."""
    stand, peers = crowd(config=P1)
    new, relay = peer("new", 1050), peers[1]
    stand.say(relay, m.Relayed(*stand.head(relay), stand.request(new, 1, open=True, peer=new)))
    (back,) = stand.to(relay, m.RelayedAck)
    assert (back.origin, back.ack.n, stand.pair(new).state) == (new.id, 1, State.DORMANT)
    stand.say(relay, m.Relayed(*stand.head(relay), stand.request(new, 2, ready=True, peer=new)))
    assert stand.pair(new).state is State.ACTIVE


@pytest.mark.parametrize("why", ["candidate", "gone", "other ring", "other inc", "nobody"])
def test_what_is_not_served_by_others(why: str) -> None:
    """P1: candidates come to the door themselves (5.6), the gone stay gone (5.7), and what was meant for another membership is not ours."""
    stand, peers = crowd(config=P1)
    new, relay = peer("new", 1050), peers[1]
    request = stand.request(new, 1, open=True, peer=new)
    if why == "candidate":
        stand.say(new, m.Lock(stand.ring.ring, new.id, 0, 1))
        request = replace(request, join=True)
    elif why == "gone":
        stand.ring.list.announce(new.id, Tombstone(certain=True, gen=0, reason="left"))
    elif why == "other ring":
        request = replace(request, ring=stand.ring.ring + 1)
    elif why == "other inc":
        request = replace(request, to=stand.ring.id.inc + 1)
    else:
        request = replace(request, peer=None)
    stand.say(relay, m.Relayed(*stand.head(relay), request))
    assert new.id not in stand.ring.pairs
    assert stand.to(relay, m.RelayedAck) == []


def test_an_ack_by_others_establishes_the_session() -> None:
    """P1: it still certifies that the peer was acking at or after s_n, so est is the session's start, and no later."""
    stand, peers = crowd(config=P1)
    pair = stand.pair(peers[0])
    while pair.acked:
        stand.live(STEP, silent=peers[:1])
    stand.live(T_L / 2, silent=peers[:1])
    stand.say(peers[1], m.RelayedAck(*stand.head(peers[1]), stand.ring.id, stand.ack(peers[0], pair.n)))
    assert stand.pair(peers[0]).acked
    assert (pair.est, pair.relayed) == (pair.s, 1)


@pytest.mark.parametrize("indirect", [True, False], ids=["on", "off"])
def test_one_bad_link_costs_nobody_the_membership(indirect: bool) -> None:
    """P1, E14: the link between two neighbours is dead for 20 T_l: with indirect leases nobody leaves, without them one of the two does."""
    stage = Stage(RingConfig(k=2, indirect=indirect), Rules(), 1, size=8).without_return()
    stage.run(2.0)
    stage.cut("n02", "n03")
    stage.run(20.0)
    assert len(stage.watch.departed) == (0 if indirect else 1)
    assert stage.watch.breaches == {}


def test_a_broken_link_is_reported_and_costs_nobody() -> None:
    """P1, H27: after 60 T_l by others alone it is said at both ends, and again every 60 T_l; nobody leaves; whole, that is said."""
    stage = Stage(RingConfig(k=2), Rules(), 1, size=6).without_return()
    stage.run(2.0)
    stage.cut("n02", "n03")
    stage.run((RELAYED_MAX - 5) * T_L)
    ends = ("n02", "n03")
    early = [stage.seen(LinkBroken, name) for name in ends]
    stage.run(12 * T_L)
    once = [stage.seen(LinkBroken, name) for name in ends]
    assert [metrics(stage[name])["links_broken"] for name in ends] == [1, 1]
    stage.run(RELAYED_MAX * T_L)
    assert (early, once, [stage.seen(LinkBroken, name) for name in ends]) == ([0, 0], [1, 1], [2, 2])
    stage.mend("n02", "n03")
    stage.run(2 * T_L)
    assert [stage.seen(LinkMended, name) for name in ends] == [1, 1]
    assert [metrics(stage[name])["links_relayed"] for name in ends] == [0, 0]
    assert (stage.watch.departed, stage.watch.breaches) == ([], {})


def test_neighbours_without_a_link_become_a_pair() -> None:
    """P1, H27: a member crashes, and two that have no link become neighbours; they are a pair all the same, and nobody is unmet."""
    stage = Stage(RingConfig(k=2), Rules(), 1, size=8).without_return()
    stage.run(2.0)
    stage.cut("n02", "n05")
    stage.world.crash("n03")
    stage.run(12.0)
    pair = stage.pair("n02", "n05")
    assert pair is not None
    assert pair.state is State.ACTIVE
    assert stage["n02"].neighbours.unmet == stage["n05"].neighbours.unmet == {}
    assert (stage.watch.departed, stage.watch.breaches) == ([], {})


def test_a_candidate_needs_all_its_links() -> None:
    """P1, H27 (what it does not do): the link to one of its neighbours-to-be is broken: a candidate stays outside until it is whole."""
    stage = Stage(RingConfig(k=2), Rules(), 1, size=6, late={"n20": 2.5})
    stage.run(2.0)
    stage.cut("n20", "n03")
    stage.start("n20")
    stage.run(20.0)
    inside = [stage["n20"].is_member]
    assert metrics(stage["n20"])["join_failed: a neighbour is silent"] >= 1
    stage.mend("n20", "n03")
    stage.run(20.0)
    inside.append(stage["n20"].is_member)
    assert inside == [False, True]
    assert (stage.watch.departed, stage.watch.breaches) == ([], {})


# P2: patience.


def several(config: RingConfig) -> tuple[Stand, list[Peer]]:
    """A member whose six peers fall silent at once; all sessions end in the same instant."""
    stand, peers = crowd(config=config, rules=Rules(deaf=False))  # else it leaves with the fourth suspicion (H162)
    while not all(pair.susp is not None for pair in stand.ring.pairs.values()) and stand.ring.is_member:
        stand.host.pass_time(STEP / 4)
    return stand, peers


def test_whoever_complains_about_many_asks_later() -> None:
    """P2: the 2nd, 3rd, ... Arb within one T_l waits another T_a/8 each, T_a/2 at most; the own deadline does not move."""
    stand, _ = several(P2)
    assert len(stand.host.events(Suspicion)) == 6
    began = stand.host.events(Suspicion)[0].at
    assert stand.ring.safe_until == began + T_A
    asked: dict[object, float] = {}
    while stand.ring.is_member:
        for sent in stand.host.sent:
            if isinstance(sent.message, m.Arb):
                asked.setdefault(sent.message.accused, stand.host.now - began)
        stand.host.pass_time(T_A / 64)
    # The first three opened pairs end at one instant, the others a little apart: count from the first suspicion.
    waits = sorted(asked.values())
    assert waits[0] < STEP
    assert waits[-1] == pytest.approx(T_A / 2, abs=STEP + T_A / 64)
    assert len(waits) == 6


def test_a_question_whose_time_is_over_is_not_asked() -> None:
    """Rule 2, D28: the own deadline passes inside the turn in which a patient question falls due, after it was looked at: P leaves."""
    stand, _ = several(P2)
    waiting = next(pair for pair in stand.ring.pairs.values() if pair.phase is None)
    assert waiting.susp is not None
    stand.host.clock = waiting.susp + T_A
    stand.take(m.Arb)
    stand.ring.arbitration._ask(waiting)
    assert stand.take(m.Arb) == []
    assert stand.departures() == [TIMEOUT]
    assert [(event.peer, event.why) for event in stand.host.events(Lost)] == [(waiting.peer.id, TIMEOUT)]


def test_without_patience_all_ask_at_once() -> None:
    """P2 off: every question leaves with its suspicion."""
    stand, _ = several(RingConfig(k=3))
    assert {message.accused for _, message in stand.take(m.Arb)} == set(stand.ring.pairs)


# P3: I am here.


def test_it_says_that_it_lives_before_a_lease_expires() -> None:
    """P3: shortly before the session ends without an answer, the pair's arbitrators are told."""
    stand, peers = crowd(config=P3)
    while stand.pair(peers[0]).acked:
        stand.live(STEP, silent=peers[:1])
    ends = stand.pair(peers[0]).s + T_L
    stand.take(m.Here)
    stand.live(ends - stand.host.now - 0.001, silent=peers[:1])
    assert stand.told(m.Here) == list("abcefg")
    assert stand.host.events(Suspicion) == []


@pytest.mark.parametrize("here", [True, False], ids=["on", "off"])
def test_an_arbitrator_lets_the_unheard_wait(here: bool) -> None:
    """P3: it heard the accused and not the accuser within the last T_l: the first Arb is held for T_a/4, and the other may come first."""
    stand = Stand(config=replace(P3, here=here))
    p, q = peer("p", 100), peer("q", 200)
    stand.say(q, m.Here(*stand.head(q), p.id))
    stand.say(p, m.Arb(stand.ring.ring, p.id, 0, 1, q.id, 1, 1))
    assert len(stand.to(p, m.Vote)) == (0 if here else 1)
    assert stand.arb(q, p) is here
    stand.host.pass_time(T_A / 4)
    assert [vote.accept for vote in stand.to(p, m.Vote)] == ([False] if here else [])


def test_the_held_question_is_answered_in_time() -> None:
    """P3: nobody else asked, so after T_a/4 the accuser is accepted; votes stay one per pair and epoch."""
    stand = Stand(config=P3)
    p, q = peer("p", 100), peer("q", 200)
    stand.say(q, m.Here(*stand.head(q), p.id))
    for _ in range(3):
        stand.say(p, m.Arb(stand.ring.ring, p.id, 0, 1, q.id, 1, 1))
    stand.host.pass_time(T_A / 4)
    assert [vote.accept for vote in stand.to(p, m.Vote)] == [True]
    assert not stand.arb(q, p)


def test_who_was_heard_does_not_wait() -> None:
    """P3: both lived lately: first come, first served."""
    stand = Stand(config=P3)
    p, q = peer("p", 100), peer("q", 200)
    for each, other in ((p, q), (q, p)):
        stand.say(each, m.Here(*stand.head(each), other.id))
    assert stand.arb(p, q)


# P4: early news.


@pytest.mark.parametrize("early", [True, False], ids=["on", "off"])
def test_a_decision_is_known_everywhere_at_once(early: bool) -> None:
    """P4: the first win is gossiped: everybody hears Decided within a few delays of it, monitor or not; off, only the six monitors do,
    each when it has won itself."""
    stage = Stage(RingConfig(k=3, early_news=early), Rules(), 1, size=24)
    heard: dict[str, list[float]] = {}
    first: list[float] = []

    def note(host: LabHost, event: Event) -> None:
        if isinstance(event, Decided):
            heard.setdefault(host.me.name, []).append(stage.now)
        elif isinstance(event, Won):
            first.append(stage.now)

    stage.world.listeners.append(note)
    stage.world.at(3.0, lambda: stage.world.crash("n05"))
    stage.run(5.5)  # All have suspected and decided, and nothing is declared yet.
    assert len(heard) == (23 if early else 6)
    assert all(len(times) == 1 for times in heard.values())  # It is news once, whoever brings it.
    assert all("n05" in {member.id.name for member in ring.members()} for ring in stage.rings.alive)
    if early:
        assert max(times[0] for times in heard.values()) - min(first) < 0.05 * T_L
