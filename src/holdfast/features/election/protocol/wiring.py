"""Wiring: what one part causes in others, in one place.  Spec: election 5.

Parts take an interface of a few methods and not each other, so that each can be read alone.
"""

from __future__ import annotations

from holdfast.features.election.protocol.candidacy import Candidacy
from holdfast.features.election.protocol.clients import Clients
from holdfast.features.election.protocol.config import ElectionConfig
from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.cvalue import CValue
from holdfast.features.election.protocol.initiator import Initiator
from holdfast.features.election.protocol.messages import Leader, NotifyLeader, NotifyNack, OfElection
from holdfast.features.election.protocol.reigns import Reigns
from holdfast.features.election.protocol.terms import Terms
from holdfast.features.election.protocol.ticking import Ticking
from holdfast.features.election.protocol.voting import Voting
from holdfast.features.election.protocol.watching import UNASKED, Watching
from holdfast.host import NodeId
from holdfast.kit.hold import LossReason


class Wiring:
    """Implements ``Follow``, ``Crowning``, ``Named``, and the callbacks of the rest. Its fields are set before anything happens."""

    candidacy: Candidacy
    clients: Clients
    cvalue: CValue
    initiator: Initiator
    reigns: Reigns
    terms: Terms
    ticking: Ticking
    voting: Voting
    watching: Watching

    def __init__(self, config: ElectionConfig) -> None:
        self._config = config

    # Elections begin.

    def begin(self, contest: Contest, why: str) -> None:
        goes_on = why in ("retry", "empty")
        x, y = contest.retry if goes_on else (0, 0)
        sticky = contest.retry_sticky if goes_on else why not in UNASKED
        self.initiator.begin(contest, why, x=x, y=y, sticky=sticky)

    # A candidate's: ``candidacy.Crowning``, ``initiator.Named``.

    def lead(self, contest: Contest) -> None:
        self.reigns.lead(contest)

    def over(self, contest: Contest, term: int) -> None:
        self.reigns.over(contest, term)

    def on_leading(self, contest: Contest) -> None:
        self.clients.on_leading(contest)

    def at_risk(self, contest: Contest) -> None:
        self.clients.at_risk(contest)

    def on_lost(self, contest: Contest, reason: LossReason) -> None:
        self.clients.on_lost(contest, reason)

    def drop_run(self, contest: Contest) -> None:
        self.initiator.drop(contest)

    def to_initiator(self, contest: Contest, message: OfElection) -> None:
        me = self.initiator.me
        if isinstance(message, Leader):
            self.initiator.on_leader(me, contest, message)
        elif isinstance(message, NotifyNack):
            self.initiator.on_nack(me, contest, message)

    def on_notify(self, source: NodeId, contest: Contest, notify: NotifyLeader) -> None:
        self.candidacy.on_notify(source, contest, notify)

    # A larger reign: ``reigns.Follow``.

    def step_down(self, contest: Contest, why: str) -> None:
        self.candidacy.step_down(contest, why)

    def on_reign(self, contest: Contest, term: int, leader: NodeId) -> None:
        self.initiator.on_reign(contest, term, leader)

    def on_violation(self, contest: Contest) -> None:
        self.cvalue.violated(contest)
        if self._config.preempt:
            self.initiator.begin(contest, "violation", sticky=False)

    # A client's.

    def sure(self, contest: Contest) -> bool:
        """True if this member's ticks are in time and its voters support it (5.10)."""
        return self.ticking.in_time and contest.weak_ticks == 0

    def lapsed(self, contest: Contest) -> None:
        """End a reign under which no client acts any more: another member may lead."""
        self.candidacy.step_down(contest, "lapsed")

    # Names come and go.

    def opened(self, contest: Contest) -> None:
        self.voting.open(contest)
        self.reigns.recall(contest)
        self.voting.tick(contest)

    def forgotten(self, contest: Contest) -> None:
        self.voting.forget(contest)
        self.watching.cancel(contest)
