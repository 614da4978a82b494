"""A candidate on a fake host, about to join the ring of Figure 5; the ring is played by the test, message by message."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import JoinRetry
from holdfast.features.ring.protocol.ids import Peer, RingId, hash_of
from holdfast.features.ring.protocol.rules import Rules
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, Message, NodeId
from tests.features.ring.stand import peer
from tests.support.fake_host import FakeHost

RING = 77
SEED = Address("seed", 1)
# Figure 5: k = 2; node 17 owns key 16 and has the neighbours 11, 13, 19, 23; those of candidate 16 are 11, 13, 17, 19.
P11, P13, P17, P19, P23 = (peer(f"p{pos}", pos) for pos in (11, 13, 17, 19, 23))
VIEW = (P17, P11, P13, P19, P23)
FIGURE_5 = (P11, P13, P17, P19)


class Candidate:
    """Node 16, about to join; the test plays the ring."""

    def __init__(self, *, rules: Rules | None = None, pace: bool = False) -> None:
        self.host = FakeHost("c16")
        config = RingConfig(k=2, seeds=(SEED,), position=16, join_pace=pace)
        self.ring = standalone(self.host, config, rules=rules).ring
        self.ring.start()
        self.host.pass_time(0.0)

    def say(self, whom: Peer, message: Message) -> None:
        self.ring.on_message(whom.node, message)

    def head(self, whom: Peer) -> tuple[int, RingId, int]:
        return RING, whom.id, self.ring.id.inc

    def discovered(self, answer: m.Answer, view: tuple[Peer, ...] = (), by: Peer = P17) -> None:
        discover = self.host.take(m.Discover)[-1][1]
        self.say(by, m.Discovered(discover.serial, answer, RING, view, seeded=True, asked=by.address))

    def locked(self, grantors: Sequence[Peer], *, granted: bool = True, view: tuple[Peer, ...] = VIEW) -> None:
        lock = next(sent.message for sent in reversed(self.host.sent) if isinstance(sent.message, m.Lock))
        for each in grantors:
            self.say(each, m.Locked(*self.head(each), lock.serial, granted, (each, *(other for other in view if other != each))))

    def acks(self, by: Sequence[Peer], n: int, gen: int = 5) -> None:
        for each in by:
            cfg = tuple(sorted((each.id, self.ring.id)))
            self.say(each, m.LeaseAck(*self.head(each), 1, n, 1, want=True, gen=gen, seen=0, view=hash_of(()), knows=0, cfg=cfg))

    def until_locks(self) -> Candidate:
        self.discovered(m.Answer.OK, VIEW)
        return self

    def until_leases(self) -> Candidate:
        self.until_locks().locked(FIGURE_5)
        return self

    def until_ready(self) -> Candidate:
        self.until_leases().acks(FIGURE_5, 1)
        return self

    def told(self, kind: type[Message]) -> list[str]:
        return sorted(to.name if isinstance(to, NodeId) else to.host for to, _ in self.host.take(kind))

    def failures(self) -> list[str]:
        return [event.why for event in self.host.events(JoinRetry)]
