"""A responder that lies, with the right key: at worst a worse-ranked leader.

Issue 18: never a crash, a term jump beyond H87, or two leaders in ``seats``. Spec: election 3 (what peers send is bounded); H396, H401.
"""

from __future__ import annotations

from random import Random

import pytest

from holdfast.bounds import CLOCK_MIN, MEMBERS_MAX, NUMBER_MAX
from holdfast.errors import ConfigError
from holdfast.features.election.protocol.config import AHEAD_MAX, XY_MAX
from holdfast.features.election.protocol.facts import Elected
from holdfast.features.election.protocol.manner import Manner, manner
from holdfast.features.election.protocol.messages import (
    AskTerm,
    Crown,
    Leader,
    LeaderAck,
    NotifyLeader,
    NotifyNack,
    OfElection,
    Query,
    Response,
    Standing,
    TermWord,
    Unhealthy,
)
from holdfast.host import Address, NodeId
from tests.features.election.stand import BASE, HYBRID, NAME, Stand, Town, life, ranked_names

MODES = [manner("hybrid", voters) for voters in ("none", "seats", "members")]
FAR = CLOCK_MIN + AHEAD_MAX


class Liar:
    """Says anything that the types allow."""

    def __init__(self, seed: int, names: list[str]) -> None:
        self.random, self.names = Random(seed), names

    def life(self) -> NodeId:
        return NodeId(self.random.choice([*self.names, "x", ""]), self.random.choice([0, 1, 2, NUMBER_MAX]))

    def term(self) -> int:
        now = 1_700_000_000_000
        return self.random.choice([0, 1, now, now + self.random.randrange(10_000), FAR, NUMBER_MAX])

    def standing(self) -> Standing:
        rank = self.random.randbytes(self.random.choice([0, 1, 9]))
        return Standing(self.life(), rank, self.random.choice([0, 1, NUMBER_MAX]), Address(self.random.choice(self.names), 7))

    def message(self, made: Manner) -> OfElection:
        random = self.random
        name = random.choice([NAME, NAME, NAME, "other", "", "x" * 120])
        manners = random.choice([made, made, made, BASE, Manner(rank=("nonsense",))])
        flag, other = random.random() < 0.5, random.random() < 0.5
        eid = random.choice([1, 2, 3, 5, 9])
        kind = random.randrange(8)
        if kind == 0:
            return Query(name, manners, eid, random.randrange(XY_MAX), random.randrange(XY_MAX), self.term(), flag)
        if kind <= 3:
            candidates = tuple(self.standing() for _ in range(random.randrange(XY_MAX)))
            excluded = tuple(Unhealthy(self.life(), random.random() * 9) for _ in range(random.randrange(XY_MAX)))
            active = Crown(self.term(), self.life()) if flag else None
            busy = self.life() if random.random() < 0.3 else None
            known = random.choice([0, 3, MEMBERS_MAX])
            return Response(name, manners, eid, candidates, excluded, self.term(), active, other, known, busy, flag)
        if kind == 4:
            return NotifyNack(name, manners, eid, self.term(), flag)
        if kind == 5:
            return LeaderAck(name, manners, self.term(), flag, self.term(), random.choice([0, 3, MEMBERS_MAX]))
        if kind == 6:
            return TermWord(name, manners, eid, random.randrange(-1, 4), flag, self.term(), random.choice([0.0, 1.0]), random.randrange(2))
        return AskTerm(name, manners, eid, self.term(), random.choice([0.0, 0.001, 9e8]))


@pytest.mark.parametrize("made", MODES, ids=["none", "seats", "members"])
@pytest.mark.parametrize("seed", range(4))
def test_a_liar_breaks_nothing(made: Manner, seed: int) -> None:
    """It answers, acknowledges and refuses at random for six seconds; when it stops, one leads, and no term is beyond H87."""
    town = Town(5, made=made, seed=seed, c=None, f=None)
    liar, random = Liar(seed, town.names), Random(seed)
    honest = town.names[:4]
    town.crash(town.names[4])
    town.stand(*honest)
    for _ in range(600):
        town.run(0.01)
        if random.random() < 0.3:
            target = random.choice(honest)
            message = liar.message(made)
            if type(message) in town.elections[target].handles:
                town.elections[target].on_message(life(town.names[4]), message)
    town.detect(town.names[4])
    town.run_until(town.agreed, 60.0)
    terms: dict[int, set[str]] = {}
    for name in honest:
        for fact in town.hosts[name].events(Elected):
            terms.setdefault(fact.term, set()).add(name)
            assert fact.term <= 1_700_000_000_000 + 60_000 + AHEAD_MAX
    if made.by_seats:
        assert all(len(names) == 1 for names in terms.values())


def test_a_nominee_that_does_not_exist_costs_four_tries() -> None:
    """H396: the best rank of all, and no such member."""
    names = ranked_names(4)
    town = Town(4, made=BASE, c=1, f=0)
    liar = names[3]
    honest = town.elections[names[2]]
    town.stand(*names[:3])

    def lost(source: str, target: str, message: object) -> bool:
        if isinstance(message, Query) and target == liar:
            phantom = Standing(NodeId("nobody", 1), b"", NUMBER_MAX, Address("nobody", 1))
            honest.on_message(life(liar), Response(NAME, BASE, message.eid, (phantom,)))
        return target == liar

    town.lost = lost
    honest.elect(NAME)
    town.run_until(lambda: bool(town.leaders()), 60.0)


@pytest.mark.parametrize(
    "message",
    [
        Query("", HYBRID, 1, 1, 1, 0),
        Query("x" * 101, HYBRID, 1, 1, 1, 0),
        Query("x", Manner(rank=("load",)), 1, 1, 1, 0),
        Leader("x", Manner(health="moon"), 5, life("p"), active=True),
        NotifyLeader("", HYBRID, 1, 5, final=True),
    ],
)
def test_malformed_names_and_manners_are_counted(message: OfElection) -> None:
    """Section 3: dropped and counted; nothing is kept of them."""
    found = Stand("p", "q")
    found.hear("p", message)
    assert found.machine.counts["malformed"] == 1
    assert found.machine.names() == ()


@pytest.mark.parametrize("who", [NodeId("", 5), NodeId("a\nb", 5), NodeId("é" * 40, 5), NodeId("p", 0), NodeId("p", NUMBER_MAX)])
def test_lives_that_cannot_be(who: NodeId) -> None:
    """F1: as a leader, in a row, as a candidate, as the incumbent: counted, and not believed."""
    found = Stand("p", "q", "r", made=BASE, c=1, candidates=[]).stand().quiet()
    found.hear("p", Leader(NAME, BASE, 1_700_000_000_000, who, active=True))
    assert found.machine.counts["malformed"] == 1
    eid = found.begin()
    crown = Crown(9, who)
    found.hear("p", Response(NAME, BASE, eid, (Standing(who, b"", 1, Address("p", 1)),), term=9, active=crown, leader_listed=True))
    assert found.machine.counts["unsound"] > 0
    assert found.machine.leader(NAME).leader == found.host.me  # type: ignore[union-attr]


@pytest.mark.parametrize("place", [Address("", 1), Address("p", 0), Address("a\x00b", 1)])
def test_places_that_cannot_be(place: Address) -> None:
    """H395: an address of a candidate is checked before it is kept."""
    found = Stand("p", "q", made=BASE, c=1, candidates=[]).stand().quiet()
    eid = found.begin()
    found.hear("p", Response(NAME, BASE, eid, (Standing(NodeId("z", 1), b"", 1, place),)))
    assert NodeId("z", 1) not in found.host.met


def test_a_late_or_foreign_word_changes_nothing() -> None:
    """D18: RESPONSE, NACK and ACK of no election, for no candidacy."""
    found = Stand("p", "q").stand().quiet()
    found.hear("p", Response(NAME, HYBRID, 4))
    found.hear("p", NotifyNack(NAME, HYBRID, 4, 5))
    found.hear("p", LeaderAck(NAME, HYBRID, 4, ok=True, promised=4, known=2))
    assert found.machine.counts["late"] == 2
    assert found.host.sent == []


def test_a_manner_of_a_peer_stops_no_client() -> None:
    """F4: a candidate of another manner is an error for who comes later; when it is gone, the client may ask again."""
    found = Stand("p", "q", made=HYBRID, candidates=["p"])
    with pytest.raises(ConfigError):
        found.machine.campaign(NAME, 0.0, found.client, manner=BASE)
    found.lists.lose("p")
    found.machine.campaign(NAME, 0.0, found.client, manner=BASE)
