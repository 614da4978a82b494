"""One member of a ring on a fake host; its peers are played by the test, message by message.

T_l is 1 s and T_a half of it, so T_arb is 2.5 s. ``Stand`` only says what peers may say; what they say when is the test's affair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

from msgspec.structs import replace

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed, JoinRetry
from holdfast.features.ring.protocol.ids import Peer, RingId, hash_of
from holdfast.features.ring.protocol.pair import Pair
from holdfast.features.ring.protocol.rules import Rules
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, Message, NodeId
from tests.support.fake_host import FakeHost

T_L, T_A = 1.0, 0.5
T_ARB = 2 * T_L + T_A
CONFIG = RingConfig(k=3)
STEP = T_L / 16  # how often ``live`` answers
M = TypeVar("M", bound=Message)


def peer(name: str, pos: int, inc: int = 1) -> Peer:
    """A membership of a process that the test plays."""
    return Peer(RingId(pos, inc), NodeId(name, 1), Address(name, 1))


class Stand:
    """A founder at ``pos``, with nobody beside it yet."""

    def __init__(self, pos: int = 1000, *, config: RingConfig = CONFIG, rules: Rules | None = None, host: FakeHost | None = None) -> None:
        self.host = FakeHost("me") if host is None else host
        self.ring = standalone(self.host, replace(config, position=pos), rules=rules, sole_life=True).ring
        self.views: dict[RingId, tuple[Peer, ...]] = {}  # whom each peer has for neighbours
        self.gens: dict[RingId, int] = {}
        self.ring.start()
        self.ring.found()
        self.host.sent.clear()

    # What was said by us.

    def take(self, kind: type[M]) -> list[tuple[NodeId | Address, M]]:
        return self.host.take(kind)

    def to(self, whom: Peer, kind: type[M]) -> list[M]:
        """What this peer was told of this kind since the last look at the kind."""
        return [message for to, message in self.host.take(kind) if to == whom.node]

    def told(self, kind: type[M]) -> list[str]:
        """Who was told something of this kind since the last look at it, by name, each time counted."""
        return sorted(to.name if isinstance(to, NodeId) else to.host for to, _ in self.host.take(kind))

    def departures(self) -> list[str]:
        """Why this process is no member any more, each time it happened."""
        return [event.reason for event in self.host.events(Departed)]

    def pair(self, whom: Peer) -> Pair:
        return self.ring.pairs[whom.id]

    # What peers say.

    def say(self, whom: Peer, message: Message) -> None:
        self.ring.on_message(whom.node, message)

    def head(self, whom: Peer) -> tuple[int, RingId, int]:
        return self.ring.ring, whom.id, self.ring.id.inc

    def request(self, whom: Peer, n: int, epoch: int = 1, **fields: object) -> m.LeaseRequest:
        view = self.views.get(whom.id, ())
        pair = self.ring.pairs.get(whom.id)
        made = m.LeaseRequest(
            *self.head(whom), epoch, n, 1 if pair is None else pair.ver, want=True, gen=self.gens.get(whom.id, 1),
            seen=self.ring.fencing.gen, view=hash_of(each.id for each in view), knows=self.ring.view, nbrs=view,
        )  # fmt: skip
        return replace(made, **fields)

    def ack(self, whom: Peer, n: int, epoch: int = 1, **fields: object) -> m.LeaseAck:
        view = self.views.get(whom.id, ())
        pair = self.ring.pairs.get(whom.id)
        made = m.LeaseAck(
            *self.head(whom), epoch, n, 1 if pair is None else pair.ver, want=True, gen=self.gens.get(whom.id, 1),
            seen=self.ring.fencing.gen, view=hash_of(each.id for each in view), knows=self.ring.view, nbrs=view,
        )  # fmt: skip
        return replace(made, **fields)

    def responds_to(self, whom: Peer, nbrs: Iterable[Peer] = (), epoch: int = 1) -> Pair:
        """The peer opens a pair with us, and it is ACTIVE on our side."""
        self.views[whom.id] = tuple(sorted(nbrs))
        self.say(whom, self.request(whom, 1, epoch, open=True, peer=whom))
        self.say(whom, self.request(whom, 2, epoch, ready=True, peer=whom))
        self.answer()
        return self.pair(whom)

    def opens(self, whom: Peer, nbrs: Iterable[Peer] = ()) -> Pair:
        """The peer wants a pair, we open it, and it is ACTIVE on our side."""
        self.views[whom.id] = tuple(sorted(nbrs))
        self.say(whom, m.Want(*self.head(whom), (whom, *self.views[whom.id])))
        self.answer()
        self.answer()
        return self.pair(whom)

    def answer(self, *, silent: Collection[Peer] = (), upgrades: bool = True) -> None:
        """Every peer acks what it was asked and takes the groups it is told, except the silent ones."""
        mute = {each.node for each in silent}
        known = {pair.peer.node: pair.peer for pair in self.ring.pairs.values()}
        for to, request in self.take(m.LeaseRequest):
            whom = known.get(to) if isinstance(to, NodeId) and to not in mute else None
            if whom is not None:
                group = frozenset((self.ring.id, whom.id, *self.ring.nbrs, *(each.id for each in self.views.get(whom.id, ()))))
                cfg = tuple(sorted(group)) if request.open else ()
                ver = request.ver if upgrades or not request.cfg else request.ver - 1
                self.say(whom, self.ack(whom, request.n, request.epoch, ver=ver, cfg=cfg))
                self._ask_too(whom, request.n)
        for to, upgrade in self.take(m.ArbUpgrd):
            whom = known.get(to) if isinstance(to, NodeId) and to not in mute and upgrades else None
            if whom is not None:
                self.say(whom, m.ArbUpgrdAck(*self.head(whom), upgrade.epoch, upgrade.ver))

    def _ask_too(self, whom: Peer, n: int) -> None:
        """Who lives does not only answer. What it is answered is no test's affair, and is not kept."""
        pair = self.ring.pairs.get(whom.id)
        if pair is not None and pair.obliged and pair.next is None:
            kept = list(self.host.sent)
            self.say(whom, self.request(whom, n, pair.epoch))
            self.host.sent[:] = kept

    def live(self, seconds: float, *, silent: Collection[Peer] = ()) -> None:
        """Time passes, and whoever is not silent answers."""
        end = self.host.now + seconds
        while self.host.now < end - 1e-9:
            self.host.pass_time(min(STEP, end - self.host.now))
            self.answer(silent=silent)

    def vote(self, yes: Iterable[Peer] = (), no: Iterable[Peer] = ()) -> None:
        """These answer the question that was asked last."""
        asked = [sent.message for sent in self.host.sent if isinstance(sent.message, m.Arb)]
        for accept, voters in ((True, yes), (False, no)):
            for voter in voters:
                self.say(voter, m.Vote(*self.head(voter), asked[-1].serial, accept))

    def arb(self, accuser: Peer, accused: Peer, *, epoch: int = 1, serial: int = 1, ver: int = 1) -> bool:
        """We are asked to arbitrate; returns what we vote."""
        self.say(accuser, m.Arb(self.ring.ring, accuser.id, 0, serial, accused.id, epoch, ver))
        (vote,) = self.to(accuser, m.Vote)
        return vote.accept


def crowd(*, config: RingConfig = CONFIG, rules: Rules | None = None) -> tuple[Stand, list[Peer]]:
    """A member with three peers on each side, pairs ACTIVE, all seven in every group. Its id is the fourth, it opened the upper pairs."""
    stand = Stand(config=config, rules=rules)
    peers = [peer(name, 1000 + 100 * place) for name, place in zip("abcefg", (-3, -2, -1, 1, 2, 3), strict=True)]
    for each in peers:
        others = [other for other in (*peers, stand.ring.me) if other != each]
        if each.id < stand.ring.id:
            stand.responds_to(each, others)
        else:
            stand.opens(each, others)
    stand.live(STEP)
    stand.host.sent.clear()
    return stand, peers


def suspecting() -> tuple[Stand, Peer, list[Peer]]:
    """P, which has just suspected one of its six peers; the other five live. Votes decide now: 4 of 7, its own is one."""
    stand, peers = crowd()
    silent, others = peers[0], peers[1:]
    while stand.pair(silent).susp is None:
        stand.answer(silent=[silent])
        stand.host.pass_time(STEP / 4)
    return stand, silent, others


def expelled_again(stand: Stand, times: int, calm: float = 0.0) -> list[float]:
    """How long it waits after each of so many forced departures; it founds its ring again each time."""
    for _ in range(times):
        stand.host.pass_time(calm)
        stand.ring.depart("test")
        stand.ring.lifecycle.stop()
        stand.ring.found()
    return [event.delay for event in stand.host.events(JoinRetry)]
