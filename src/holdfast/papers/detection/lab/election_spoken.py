"""Elections whose words are facts: what a checker cannot read from the state of a member, it hears.

``SpokenElection`` does what ``LeaderElection`` does and emits, for checkers only, what it says and what it holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events import Internal
from holdfast.features.leadership.detector.config import ElectionConfig, Term
from holdfast.features.leadership.detector.messages import DidYouMissToo, MonitorOk, Vote, VoteKind, WatchedOk
from holdfast.host import Address, Host, Message, NodeId
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.termstore import TermStore

QUERIES_MAX = 64  # whose kind is remembered; a member has far fewer askers


class HeartbeatSaid(Internal, frozen=True):
    """A heartbeat leaves."""

    term: Term
    stamp: int


class HeartbeatRead(Internal, frozen=True):
    """A heartbeat has come, whatever is made of it."""

    term: Term
    watched: NodeId
    seq: int


class MissSaid(Internal, frozen=True):
    """VOTE(missed) in a fast ballot leaves."""

    term: Term
    watched: NodeId
    seq: int


class GrantSaid(Internal, frozen=True):
    """MONITOR-OK with a grant leaves."""

    term: Term
    to: NodeId
    stamp: int


class SpokenElection(LeaderElection):
    """Emits before it acts: a listener sees the state in which something was said."""

    def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, name: str = "leader", voters: Sequence[str] = ()) -> None:
        super().__init__(host, config, store, name=name, voters=voters)
        self._fast: dict[tuple[NodeId, int], bool] = {}  # (asker, nonce) -> it asked for a heartbeat, not for how it is now

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, WatchedOk) and message.leads:
            lead = message.leads[0]
            self.host.emit(HeartbeatRead(Term(lead.view, lead.round), source, message.seq))
        elif isinstance(message, DidYouMissToo):
            self._fast[source, message.nonce] = not message.slow
            if len(self._fast) > QUERIES_MAX:
                del self._fast[next(iter(self._fast))]
        super().on_message(source, message)

    def say(self, to: NodeId | Address, message: Message) -> None:
        if isinstance(message, WatchedOk):
            self.host.emit(HeartbeatSaid(self.term, message.stamp))
        elif isinstance(message, Vote) and isinstance(to, NodeId):
            if message.kind is VoteKind.MISSED and self._fast.get((to, message.nonce)):
                self.host.emit(MissSaid(self.term, NodeId(message.watched, self.ffd.boot), message.seq))
        elif isinstance(message, MonitorOk) and isinstance(to, NodeId) and any(answer.grant for answer in message.answers):
            self.host.emit(GrantSaid(self.term, to, message.stamp))
        super().say(to, message)
