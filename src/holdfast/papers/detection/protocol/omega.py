"""Stable leader election of Aguilera et al. 2001, the baseline that fast detection is measured against.

Spec: fast-detection, "Reference reconstruction of Fig. 3"; paper 002, Figure 3 with the faults of D12 removed.

Rounds only grow. Round r belongs to one candidate, ``members[r mod n]``, which says (OK, r) every alpha. A member that hears
nothing for 2 alpha starts the next round and tells all. A candidate is named leader after its second OK, so
that a stray OK of a dead one elects no leader. Not exclusive: two members may name different leaders for a while.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from holdfast.errors import ConfigError, shown
from holdfast.events import LeaderChanged
from holdfast.features.leadership.detector.facts import DetectionFact
from holdfast.host import FANOUT_MAX, Address, Host, Message, NodeId, Timer, fingerprint
from holdfast.papers.detection.protocol.messages import Ok, Start

PATIENCE = 2.0  # Figure 3, line 26: one alpha between two OKs, one on the road
OKS_TO_LEAD = 2  # D25: one OK may be a dead candidate's last word
ROUND_MAX = 1 << 53  # tokens stay exact in every language (F16); a peer cannot push us beyond
LATE_SHARE = 0.5  # of alpha: a timer that is later judges no leader (F11). A shorter stop can hide the last OK, not the one before.


class RoundEntered(DetectionFact, frozen=True):
    """A member is in another round now."""

    round: int
    why: str  # "start", "silence", "told", "restarted"


class Omega:
    """One member of a fixed list; all members have the same list, the same alpha and the same patience.

    ``patience`` counts in alphas. With OKs that get lost, m + t_lat / alpha demotes a candidate after m missed ones; exactly
    2 is right where alpha bounds the delay and nothing is lost, as the figure assumes.
    """

    def __init__(
        self, host: Host, members: Mapping[str, Address], *, alpha: float, patience: float = PATIENCE, name: str = "omega"
    ) -> None:
        assert alpha > 0
        assert patience > 1  # The next OK comes one alpha after the last.
        _check_members(members, host.me.name)
        self.host, self.alpha, self.patience, self.name = host, alpha, patience, name
        self.members = tuple(sorted(members))
        self.round = 0  # r
        self.leader: NodeId | None = None
        self.counts: Counter[str] = Counter()  # what was not believed: stranger, malformed, not_candidate, old_life
        self._addresses = dict(members)
        self._candidate: NodeId | None = None  # the life whose OKs count in this round
        self._oks = 0  # (OK, r) heard in this round, each index once
        self._ok_seq = 0  # the highest index among them
        self._quiet_since = host.now  # when the timer was last restarted
        self._timer: Timer | None = None
        self._tick: Timer | None = None

    @property
    def handles(self) -> Sequence[type[Message]]:
        return (Ok, Start)

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(alpha=self.alpha, patience=self.patience, members=",".join(self.members))

    def candidate_of(self, number: int) -> str:
        return self.members[number % len(self.members)]

    def start(self) -> None:
        self._start_round(0, "start")
        self._timer = self.host.at(self._quiet_until(), self._on_timer)

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Ok | Start)
        if source.name not in self._addresses or source.name == self.host.me.name:
            self.counts["stranger"] += 1
            return
        if not 0 <= message.round < ROUND_MAX:
            self.counts["malformed"] += 1
            return
        if message.round < self.round:
            self._send(source.name, Start(self.round))
            return
        if message.round > self.round:
            self._start_round(message.round, "told")
        if isinstance(message, Ok):
            self._on_ok(source, message)

    def on_away(self, seconds: float) -> None:
        """We heard no member because we were stopped: the silence is ours (F11)."""
        self._restart_timer()

    def stop(self) -> None:
        for timer in (self._timer, self._tick):
            if timer is not None:
                timer.cancel()

    def _start_round(self, number: int, why: str) -> None:
        self.round, self._candidate, self._oks, self._ok_seq = number, None, 0, 0
        self.host.emit(RoundEntered(number, why))
        self._name_leader(None)
        self._restart_timer()
        if self._tick is not None:
            self._tick.cancel()
        if self.candidate_of(number) == self.host.me.name:
            self._on_tick()  # Line 14, D13: it has not sent (OK, r) yet, so it does at once; this takes the place of START.
        else:
            self._send_all(Start(number))

    def _on_ok(self, source: NodeId, message: Ok) -> None:
        if source.name != self.candidate_of(self.round):
            self.counts["not_candidate"] += 1  # Only the candidate speaks for its round.
            return
        if self._candidate not in (None, source):
            self._on_other_life(source)
            return
        self._candidate = source
        self._restart_timer()
        if message.seq > self._ok_seq:
            self._ok_seq = message.seq
            self._oks += 1
        if self._oks >= OKS_TO_LEAD:
            self._name_leader(source)

    def _on_other_life(self, source: NodeId) -> None:
        """A round belongs to one life. The figure knows no restarts; section 5 (WATCHED-OK) moves on to the next round."""
        assert self._candidate is not None
        if source.boot > self._candidate.boot:
            self._start_round(self.round + 1, "restarted")
        else:
            self.counts["old_life"] += 1

    def _name_leader(self, leader: NodeId | None) -> None:
        if leader != self.leader:
            self.leader = leader
            self.host.emit(LeaderChanged(self.name, leader, self.round))

    def _restart_timer(self) -> None:
        # The timer itself is left alone: it looks at this instant when it fires and sleeps on. An OK costs no timer.
        self._quiet_since = self.host.now

    def _quiet_until(self) -> float:
        return self._quiet_since + self.patience * self.alpha

    def _on_timer(self) -> None:
        if self.host.late > LATE_SHARE * self.alpha:
            self._restart_timer()  # F11: a late timer judges no leader.
        elif self.host.now >= self._quiet_until():
            self._start_round(self.round + 1, "silence")
        self._timer = self.host.at(self._quiet_until(), self._on_timer)

    def _on_tick(self) -> None:
        ok = Ok(self.round, self._ok_seq + 1)
        self._send_all(ok)
        self._on_ok(self.host.me, ok)  # "To all, itself included."
        self._tick = self.host.after(self.alpha, self._on_tick)

    def _send_all(self, message: Message) -> None:
        for name in self.members:
            if name != self.host.me.name:
                self._send(name, message)

    def _send(self, name: str, message: Message) -> None:
        self.host.send(self._addresses[name], message)


def _check_members(members: Mapping[str, Address], me: str) -> None:
    if me not in members:
        raise ConfigError(f"members: {shown(me)} is not among them; accepted is a list with every member, this one included")
    if len(members) > FANOUT_MAX + 1:
        raise ConfigError(f"members: {len(members)} of them; accepted are up to {FANOUT_MAX + 1}, because all are told at once (F17)")
