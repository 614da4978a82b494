"""Stable leader election of Aguilera et al. 2001, the baseline that fast detection is measured against.

Spec: fast-detection, "Reference reconstruction of Fig. 3"; paper 002, Figure 3 with the faults of D12 removed.

Rounds only grow. Round r belongs to one candidate, ``members[r mod n]``, which says (OK, r) every alpha. Whoever hears
nothing for 2 alpha starts the next round and tells everybody. A candidate is named leader after its second OK, so
that a stray OK of a dead one elects nobody. Not exclusive: two members may name different leaders for a while.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.events import Internal, LeaderChanged
from holdfast.host import Address, Host, Message, NodeId, Timer, fingerprint
from holdfast.protocols.detection.messages import Ok, Start

OKS_TO_LEAD = 2  # D25: one OK may be a dead candidate's last word
ROUND_MAX = 1 << 53  # tokens stay exact in every language (F16); a peer cannot push us beyond


class RoundEntered(Internal, frozen=True):
    """A member is in another round now."""

    round: int
    why: str  # "start", "silence", "told"


class Omega:
    """One member of a fixed list; all members have the same list and the same alpha."""

    def __init__(self, host: Host, members: Mapping[str, Address], *, alpha: float, name: str = "omega") -> None:
        assert alpha > 0
        assert host.me.name in members
        self.host, self.alpha, self.name = host, alpha, name
        self.members = tuple(sorted(members))
        self.round = 0  # r
        self.leader: NodeId | None = None
        self._addresses = dict(members)
        self._oks = 0  # (OK, r) heard in this round
        self._quiet_since = host.now  # when the timer was last restarted
        self._timer: Timer | None = None
        self._tick: Timer | None = None

    @property
    def handles(self) -> Sequence[type[Message]]:
        return (Ok, Start)

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(alpha=self.alpha, members=",".join(self.members))

    def candidate_of(self, number: int) -> str:
        return self.members[number % len(self.members)]

    def start(self) -> None:
        self._start_round(0, "start")
        self._timer = self.host.at(self._quiet_since + 2 * self.alpha, self._on_timer)
        self._on_tick()

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Ok | Start)
        if source.name not in self._addresses or not 0 <= message.round < ROUND_MAX:
            return  # Not one of us, or nonsense.
        if message.round < self.round:
            self._send(source.name, Start(self.round))
            return
        if message.round > self.round:
            self._start_round(message.round, "told")
        if isinstance(message, Ok):
            self._on_ok(source)

    def on_away(self, seconds: float) -> None:
        """We heard nobody because we were stopped: the silence is ours (F11)."""
        self._restart_timer()

    def stop(self) -> None:
        for timer in (self._timer, self._tick):
            if timer is not None:
                timer.cancel()

    def _start_round(self, number: int, why: str) -> None:
        self.round, self._oks = number, 0
        self.host.emit(RoundEntered(number, why))
        if why != "start" and self.candidate_of(number) != self.host.me.name:
            self._send_all(Start(number))
        self._name_leader(None)
        self._restart_timer()

    def _on_ok(self, source: NodeId) -> None:
        if source.name != self.candidate_of(self.round):
            return  # Only the candidate speaks for its round.
        self._restart_timer()
        self._oks += 1
        if self._oks >= OKS_TO_LEAD:
            self._name_leader(source)

    def _name_leader(self, leader: NodeId | None) -> None:
        if leader != self.leader:
            self.leader = leader
            self.host.emit(LeaderChanged(self.name, leader, self.round))

    def _restart_timer(self) -> None:
        # The timer itself is left alone: it looks at this instant when it fires and sleeps on. An OK costs no timer.
        self._quiet_since = self.host.now

    def _on_timer(self) -> None:
        if self.host.late > self.alpha / 2:
            self._restart_timer()  # F11: a late timer judges nobody.
        if self.host.now >= self._quiet_since + 2 * self.alpha:
            self._start_round(self.round + 1, "silence")
        self._timer = self.host.at(self._quiet_since + 2 * self.alpha, self._on_timer)

    def _on_tick(self) -> None:
        if self.candidate_of(self.round) == self.host.me.name:
            self._send_all(Ok(self.round))
            self._on_ok(self.host.me)
        self._tick = self.host.after(self.alpha, self._on_tick)

    def _send_all(self, message: Message) -> None:
        for name in self.members:
            if name != self.host.me.name:
                self._send(name, message)

    def _send(self, name: str, message: Message) -> None:
        self.host.send(self._addresses[name], message)
