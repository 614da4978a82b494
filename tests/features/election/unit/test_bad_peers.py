"""What a peer with the right key may send that no honest one does, through the real decoder: wire, node, machine.

Issue 18 (bad input); spec: election 2 (limits), 3 (what peers send is bounded), H87; docs/wire.md.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from holdfast.drops import Drop
from holdfast.features.election.protocol.config import NAMES_MAX, XY_MAX
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.messages import Crown, Leader, NotifyLeader, OfElection, Query, Response, Unhealthy
from holdfast.features.election.protocol.ranks import row_of
from holdfast.host import Address, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.fake_host import FakeHost
from holdfast.net.incoming import Incoming
from holdfast.node import Node, life_of
from holdfast.wire.codec import Codec
from holdfast.wire.keys import Keyring, generate, parse_key
from holdfast.wire.seal import BYTES_MAX, Channel, Sealed
from tests.features.election.stand import HYBRID, NAME, Client, FakeLists, Rows, life, post, settings, standing

PEER = life("p")
PLACE = Address("p", 1)
MANY = 1_000_000
TERM = 1_700_000_000_000  # of the reign that is known
BEYOND, AHEAD = 1 << 60, (1 << 53) - 2  # above any number of the wire; within it, and 200,000 years ahead


class Wired:
    """One member behind its seal, codec and node. It knows that ``p`` leads, and has asked in an election of its own."""

    def __init__(self) -> None:
        self.host = FakeHost("m0")
        rows = Rows()
        rows.add(self.host.me)
        for name in ("p", "q"):
            rows.add(life(name), {row_of(NAME): post(HYBRID)})
        lists = FakeLists(self.host.me, rows)
        broadcast = Broadcast(self.host, lists)
        exchange = Exchange(self.host, broadcast)
        self.machine = Elections(self.host, lists, exchange, None, settings(HYBRID))
        self.node = Node(self.host, lambda *sent: None)
        for each in (broadcast, exchange, self.machine):
            self.node.add(each)
        self.node.start()
        keys = Keyring(parse_key(generate()))
        self.sealer, opener = Sealed("g", keys), Sealed("g", keys)
        self.codec = Codec(self.node.types, wall=self.host.wall)
        self.incoming = Incoming(self.node, opener)
        self.opener, self.deliver = opener, self.incoming.way_up(self.codec)
        self.hear(Leader(NAME, HYBRID, TERM, PEER, active=True))
        self.machine.campaign(NAME, 0.0, Client(self.host))
        self.machine.elect(NAME)
        self.host.pass_time(0.0)
        assert self.machine.leader(NAME) is not None

    def hear(self, message: OfElection) -> None:
        """As ``p`` sends it: a datagram, or by stream if it is larger."""
        payload = self.codec.encode(PEER, life_of(self.host.me), self.node.digests[type(message)], message)
        channel = Channel.DATAGRAM if len(payload) + self.sealer.overhead <= BYTES_MAX[Channel.DATAGRAM] else Channel.STREAM
        data = self.sealer.seal(payload, channel)
        if channel is Channel.DATAGRAM:
            self.deliver(data, PLACE)
        elif self.incoming.put(self.opener.open(data, channel), self.codec):
            envelope, _ = self.incoming.waiting.popleft()
            self.node.receive(None, envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)
        self.host.pass_time(0.0)

    def counted(self) -> Counter[str]:
        """Everything that was dropped, by the node or by the machine."""
        return Counter({why.value: count for why, count in self.node.drops.items()}) + Counter(self.machine.counts)

    def reigns(self) -> tuple[object, ...]:
        state = self.machine.state(NAME)
        assert state is not None
        return state.role, state.term, state.active, state.promised, state.shown, state.running, self.machine.reigns()


def answer(**fields: object) -> Response:
    return Response(NAME, HYBRID, 1, **fields)  # type: ignore[arg-type]


MALFORMED, OUT_OF_BOUNDS, FAR_AHEAD = "malformed", Drop.OUT_OF_BOUNDS.value, Drop.FAR_AHEAD.value
CASES: dict[str, tuple[OfElection, str]] = {
    "a question for a million candidates": (Query(NAME, HYBRID, 1, MANY, 5, 0), OUT_OF_BOUNDS),
    "x above the bound": (Query(NAME, HYBRID, 1, XY_MAX + 1, 5, 0), OUT_OF_BOUNDS),
    "y above the bound": (Query(NAME, HYBRID, 1, 5, XY_MAX + 1, 0), OUT_OF_BOUNDS),
    "x below zero": (Query(NAME, HYBRID, 1, -1, 5, 0), OUT_OF_BOUNDS),
    "a thousand candidates": (answer(candidates=tuple(standing(f"c{number}") for number in range(1000))), OUT_OF_BOUNDS),
    "a thousand unhealthy members": (answer(excluded=tuple(Unhealthy(life(f"c{number}"), 1.0) for number in range(1000))), OUT_OF_BOUNDS),
    "a health that is no number": (answer(excluded=(Unhealthy(PEER, float("nan")),)), OUT_OF_BOUNDS),
    "more names than there may be members": (answer(known=MANY), OUT_OF_BOUNDS),
    "a question with a term of 2^60": (Query(NAME, HYBRID, 1, 5, 5, BEYOND), OUT_OF_BOUNDS),
    "an answer with a term of 2^60": (answer(term=BEYOND), OUT_OF_BOUNDS),
    "a reign in an answer with a term of 2^60": (answer(active=Crown(BEYOND, PEER)), OUT_OF_BOUNDS),
    "a nomination with a term of 2^60": (NotifyLeader(NAME, HYBRID, 1, BEYOND, final=True), OUT_OF_BOUNDS),
    "a leader with a term of 2^60": (Leader(NAME, HYBRID, BEYOND, PEER, active=True), OUT_OF_BOUNDS),
    "an answer with a term far ahead": (answer(term=AHEAD), FAR_AHEAD),
    "a nomination with a term far ahead": (NotifyLeader(NAME, HYBRID, 1, AHEAD, final=True), FAR_AHEAD),
    "a leader with a term far ahead": (Leader(NAME, HYBRID, AHEAD, PEER, active=True), FAR_AHEAD),
    "a name of 300 bytes": (Query("x" * 300, HYBRID, 1, 5, 5, 0), OUT_OF_BOUNDS),
    "a name of 101 bytes": (Query("x" * 101, HYBRID, 1, 5, 5, 0), MALFORMED),
    "a name of a million bytes": (Leader("x" * MANY, HYBRID, TERM + 1, PEER, active=True), OUT_OF_BOUNDS),
}


@pytest.mark.parametrize("message, why", CASES.values(), ids=CASES)
def test_what_cannot_be_costs_a_counter(message: OfElection, why: str) -> None:
    """Election 3, H87: it is counted once under its reason, raises nothing, is not answered, and no reign, promise or election changes."""
    wired = Wired()
    before, reigns, known = wired.counted(), wired.reigns(), wired.machine.names()
    wired.host.sent.clear()
    wired.hear(message)
    assert wired.counted() - before == {why: 1}
    assert (wired.reigns(), wired.machine.names()) == (reigns, known)
    assert wired.host.sent == []
    wired.hear(answer())  # It goes on.
    assert wired.counted()[why] == before[why] + 1


def test_questions_about_many_names() -> None:
    """Election 2: 1024 names are known; each further one is counted, not answered and not kept, and the name that is led stays."""
    wired, beyond = Wired(), 200
    reigns = wired.reigns()
    names = [f"name{number}" for number in range(NAMES_MAX + beyond - 1)]
    for number, name in enumerate(Random(0).sample(names, len(names))):
        wired.hear(Query(name, HYBRID, number, 5, 5, 0))
    assert len(wired.machine.names()) == NAMES_MAX
    assert wired.machine.counts["names_full"] == beyond
    assert sum(isinstance(message, Response) for _, message in wired.host.sent) == NAMES_MAX - 1
    assert wired.reigns() == reigns


def test_a_peer_that_is_honest_is_heard() -> None:
    """The tests above can fail: the same peer, over the same way, ends the reign with a larger one."""
    wired, other = Wired(), NodeId("q", 1)
    wired.hear(Leader(NAME, HYBRID, TERM + 1, other, active=True))
    assert wired.machine.reigns()[NAME].leader == other
    assert wired.counted()[OUT_OF_BOUNDS] == 0
