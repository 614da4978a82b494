"""One side of a pair: its lease on the peer, its arbitrator group, its rights and duties.  Spec: ring 2, 5; paper 000, III and IV.

In a pair I am *obliged* if I must win an arbitration or leave when my lease on the peer expires; I am *entitled* if
winning lets me condemn the peer. Rule RO: a side may become entitled only when the other is already obliged, and may
stop being obliged only when the other is no longer entitled.
"""

from __future__ import annotations

from enum import Enum

from holdfast.features.ring.protocol.ids import Peer, RingId
from holdfast.host import Timer
from holdfast.kit.phase import Phase

State = Enum("State", ["DORMANT", "HALF", "ACTIVE"])  # neither; obliged only; both


class Pair:
    """What one member keeps about one monitored peer. Only ``lease``, ``arbitration``, ``groups`` and ``join`` change it."""

    __slots__ = (
        "acked",
        "answers",
        "asked_at",
        "cfg",
        "closing",
        "drained",
        "easy",
        "epoch",
        "est",
        "handover",
        "knows",
        "n",
        "next",
        "next_at",
        "opened_at",
        "opener",
        "peer",
        "peer_nbrs",
        "peer_view",
        "peer_wants",
        "pgen",
        "phase",
        "phase_at",
        "pseen",
        "relayed",
        "retry_timer",
        "rtt",
        "s",
        "sent_at",
        "state",
        "stop",
        "susp",
        "timer",
        "tries",
        "ver",
    )  # fmt: skip

    def __init__(self, peer: Peer, epoch: int, *, opener: bool, now: float, lease: float, cfg: frozenset[RingId] = frozenset()) -> None:
        self.peer = peer
        self.epoch = epoch
        self.opener = opener  # it alone proposes group changes and dissolution (D7)
        self.state = State.DORMANT
        self.closing = False  # the opener is dissolving; HALF
        self.opened_at = now
        # Lease.
        self.n = 0  # session
        self.s = now  # its nominal start
        self.acked = False
        self.est = now - lease  # nominal start of the last established session
        self.drained = False  # the socket was read once since the session's end was overslept (D6)
        self.tries = 0  # requests sent in this session
        self.answers = 0  # direct acks since the last hearing test began (H162)
        self.easy = False  # the session before this one was answered at the first try (H162)
        self.asked_at = now  # when the peer's last request came (H162)
        self.sent_at = now  # of the first of them
        self.rtt = 0.0  # of the last session that needed no second try
        self.relayed = 0  # sessions in a row that only an indirect request kept (P1)
        self.handover: Timer | None = None  # a candidate's: its keys are free then (H24)
        self.timer: Timer | None = None  # end of the session
        self.retry_timer: Timer | None = None
        # Arbitrator group (DA).
        self.ver = 1
        self.cfg = cfg
        self.next: tuple[int, frozenset[RingId]] | None = None  # opener only: proposed, not confirmed
        self.next_at = now  # when it was proposed
        # What the peer said last.
        self.peer_wants = True
        self.peer_nbrs: tuple[RingId, ...] = ()
        self.peer_view = 0  # hash of them
        self.knows = 0  # hash of our neighbours that the peer holds
        self.pgen = 0  # its generation
        self.pseen = 0  # ours, as it knows it
        # Arbitration. Final once set (D3).
        self.susp: float | None = None  # nominal time of the suspicion: the own deadline counts from it
        self.stop = now  # when acking stopped: the peer's deadline counts from it (D28)
        self.phase: Phase[RingId] | Phase[str] | None = None
        self.phase_at: Timer | None = None  # a question that waits for its turn (P2)

    @property
    def obliged(self) -> bool:
        return self.state is not State.DORMANT

    def is_heard(self, since: float) -> bool:
        """The peer is heard as peers are (H162): this session and the one before it were answered at the first try, and it has asked us
        ``since``. Each of them may be luck, or older than the deafness."""
        return self.susp is None and self.acked and self.tries == 1 and self.easy and self.asked_at >= since

    @property
    def entitled(self) -> bool:
        return self.state is State.ACTIVE

    def deadline(self, lease: float, t_a: float) -> float:
        """Until when this pair lets its owner be a member, renewals aside."""
        return self.est + 2 * lease + t_a if self.susp is None else self.susp + t_a

    def quiet(self) -> None:
        """No timer of this pair runs any more."""
        for timer in (self.timer, self.retry_timer, self.phase_at, self.handover):
            if timer is not None:
                timer.cancel()
        if self.phase is not None:
            self.phase.cancel()
