"""The paper's own group upgrade in two phases, for the laboratory.  Spec: ring 5.8, D14; paper 000, IV-B, Figure 4.

The opener asks the old group before it moves to a new one; arbitrators that have promised a version to one side
reject older questions of the other. It is safe, and it strands the healthy side when the proposer crashes in between.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import Propose, Proposed
from holdfast.features.ring.protocol.pair import Pair
from holdfast.host import NodeId
from holdfast.kit.phase import Phase, PhaseEnd, Questions, weighted

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

ASKS = 4  # times within T_a, as for a vote


class Proposals:
    """Proposals under way at an opener, promises given as an arbitrator. Empty unless ``Rules.upgrade`` is "proposal"."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._questions = Questions()
        self._pending: dict[tuple[RingId, int], Phase[RingId]] = {}
        self._refused: dict[tuple[RingId, int], int] = {}  # the last version the old group did not agree to
        self._promised: dict[tuple[RingId, RingId, int], tuple[int, float]] = {}  # (proposer, peer, epoch) -> version, when

    def version_after(self, pair: Pair) -> int:
        return max(pair.ver, self._refused.get((pair.peer.id, pair.epoch), 0)) + 1

    def reset(self) -> None:
        for phase in self._pending.values():
            phase.cancel()
        self._pending.clear()
        self._refused.clear()
        self._promised.clear()

    def pending(self, pair: Pair) -> bool:
        """A group was proposed and the old one has not agreed yet: the old one alone counts."""
        return bool(self._pending) and (pair.peer.id, pair.epoch) in self._pending

    def stale(self, accuser: RingId, accused: RingId, epoch: int, ver: int) -> bool:
        """The other side has been promised a newer version: the accuser asks with an old group."""
        promised = self._promised.get((accused, accuser, epoch))
        return promised is not None and ver < promised[0]

    def propose(self, pair: Pair) -> None:
        ring = self._ring
        assert pair.next is not None
        ver, key = pair.next[0], (pair.peer.id, pair.epoch)
        where = {each: peer.node for each in sorted(pair.cfg) if each != ring.id and (peer := ring.list.peer(each)) is not None}
        self._pending[key] = phase = Phase(
            ring.host, self._questions, {**where, ring.id: None},
            lambda serial: Propose(ring.ring, ring.id, 0, serial, pair.peer.id, pair.epoch, ver),
            every=ring.config.t_a / ASKS, timeout=ring.config.t_a, enough=weighted(pair.cfg), done=partial(self._on_end, pair, key),
        )  # fmt: skip
        phase.start()
        own = self._decide(ring.id, pair.peer.id, pair.epoch, ver)
        self._questions.answer(phase.serial, ring.id, Proposed(*ring.head(ring.id), phase.serial, own), yes=own)

    def _on_end(self, pair: Pair, key: tuple[RingId, int], end: PhaseEnd[RingId]) -> None:
        ring = self._ring
        self._pending.pop(key, None)
        if not ring.holds(pair) or pair.susp is not None or pair.next is None:
            return
        if end.won:
            ring.groups.tell(pair)
        else:
            self._refused[key], pair.next = pair.next[0], None  # Aborted; the next proposal has a higher version.

    def on_propose(self, source: NodeId, message: Propose) -> None:
        ring = self._ring
        if ring.is_member and ring.rules.upgrade == "proposal":
            accept = self._decide(message.source, message.peer, message.epoch, message.ver)
            ring.raw.send(source, Proposed(*ring.head(message.source), message.serial, accept))

    def on_proposed(self, source: NodeId, message: Proposed) -> None:
        del source
        self._questions.answer(message.serial, message.source, message, yes=message.accept)

    def _decide(self, proposer: RingId, peer: RingId, epoch: int, ver: int) -> bool:
        ring, now = self._ring, self._ring.raw.now
        low, high = min(proposer, peer), max(proposer, peer)
        voted = ring.arbitration.votes.get((low, high, epoch))
        other = self._promised.get((peer, proposer, epoch))
        if (voted is not None and voted[0] == peer) or (other is not None and now - other[1] <= ring.config.t_arb):
            return False
        self._promised[proposer, peer, epoch] = ver, now
        return True
