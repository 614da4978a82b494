"""Answering: which candidates rank first in this list, and whom it holds to be unhealthy.  Spec: election 5.4; paper 004, Algorithm 1
lines 19-20 and Algorithm 3 lines 27-31.

Computed from the list as it is; nothing in a question changes the list (D4).
"""

from __future__ import annotations

from typing import cast

from holdfast.features.election.protocol.config import UNANSWERED_MAX, XY_MAX
from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.manner import FALSE_POSITIVES, OWN, TAG
from holdfast.features.election.protocol.messages import Crown, Query, Response, Standing, Unhealthy
from holdfast.features.election.protocol.ranks import Candidate
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.watching import Watching
from holdfast.host import HealthSource, NodeId
from holdfast.kit.outbox import Outbox

BUSY_TIMEOUTS = 2.0  # how long an initiator that was heard counts as one


class Answering:
    """Answers the questions of initiators, this member included."""

    def __init__(self, core: Core, watching: Watching) -> None:
        self._core, self._watching = core, watching
        self.outbox = Outbox(core.host)  # of its own: its length is what was not answered yet

    def on_query(self, source: NodeId, contest: Contest, query: Query) -> None:
        """Answer QUERY of a peer. The caller remembers the initiator."""
        core = self._core
        if len(self.outbox) >= UNANSWERED_MAX:
            core.counts["unanswered"] += 1
            return
        if query.sync:
            self.outbox.put(source, self.memory(contest, query.eid))
            return
        if not core.takes_part(contest):
            core.counts["silent"] += 1
            return
        answer = self.answer(contest, query.eid, query.x, query.y, busy=self.busy(contest, source))
        self._watching.arm(contest)
        core.counts["answered"] += 1
        self.outbox.put(source, answer)

    def answer(self, contest: Contest, eid: int, x: int, y: int, *, busy: NodeId | None = None) -> Response:
        """This member's answer, by its list as it is now."""
        eligible = self._eligible(contest)
        excluded = self._excluded(contest, eligible, min(y, XY_MAX))
        out = {each.id for each in excluded}
        best = [each for each in eligible if each.id not in out][: min(x, XY_MAX)]
        memory = self.memory(contest, eid)
        return Response(
            contest.name, contest.manner, eid,
            candidates=tuple(Standing(each.id, each.ranked.rank, each.post.inc, each.member.address) for each in best),
            excluded=tuple(excluded), term=memory.term, active=memory.active, leader_listed=self._leader_listed(contest),
            known=memory.known, busy=busy, voter=contest.voter,
        )  # fmt: skip

    def memory(self, contest: Contest, eid: int) -> Response:
        """The highest term promised here and the reign known here, for a voter that has lost its memory."""
        active = None if contest.active is None or contest.active.over else Crown(contest.active.term, contest.active.leader)
        known = self._core.known()
        return Response(contest.name, contest.manner, eid, term=contest.promised, active=active, known=known, voter=contest.voter)

    def mismatch(self, source: NodeId, contest: Contest, eid: int) -> None:
        """A question about a name that is elected otherwise here: say how."""
        self._core.host.send(source, Response(contest.name, contest.manner, eid))

    def health(self, contest: Contest, candidate: Candidate) -> float:
        """How unhealthy a candidate is, by what its name says counts; 0.0 is healthy."""
        source = contest.manner.health
        if source.startswith(TAG):
            return candidate.post.health
        words = cast(HealthSource, source) if source in (OWN, FALSE_POSITIVES) else "any"
        return self._core.lists.unhealthy(candidate.id, words)

    def _eligible(self, contest: Contest) -> list[Candidate]:
        core = self._core
        itself = core.rules.names_itself
        return [each for each in core.candidates(contest) if each.id != core.me or (itself and core.i_am_eligible(contest))]

    def _excluded(self, contest: Contest, eligible: list[Candidate], y: int) -> list[Unhealthy]:
        """The y most unhealthy, of equal ones the worse rank first (D8); and itself, if its own probes fail."""
        core = self._core
        if y == 0 or not contest.manner.prefers:
            return []
        found = [(self.health(contest, each), each) for each in eligible if each.id != core.me]
        if core.rules.only_unhealthy:
            found = [(value, each) for value, each in found if value > 0]
        found.reverse()  # The worst rank first; sorting is stable, so of equal values that order stays.
        worst = sorted(found, key=_falling)[:y]
        if core.lists.sick and any(each.id == core.me for each in eligible):
            mine = max(1.0, core.lists.unhealthy(core.me))
            return [Unhealthy(core.me, mine), *(Unhealthy(each.id, value) for value, each in worst)][:XY_MAX]
        return [Unhealthy(each.id, value) for value, each in worst]

    def _leader_listed(self, contest: Contest) -> bool:
        active, core = contest.active, self._core
        if active is None or active.over or active.term != contest.promised:
            return False
        return contest.role is Role.ACTIVE if active.leader == core.me else core.is_listed(active.leader)

    def busy(self, contest: Contest, asker: NodeId) -> NodeId | None:
        """The best-ranked initiator that ranks before the one that asks (D11)."""
        core = self._core
        since = core.now - BUSY_TIMEOUTS * core.timeout
        active = [life for life, at in contest.heard.items() if at >= since]
        if contest.run is not None and not contest.run.done:
            active.append(core.me)
        best = min(active, key=contest.order, default=None)
        return best if best is not None and core.rules.yields and contest.order(best) < contest.order(asker) else None


def _falling(pair: tuple[float, Candidate]) -> float:
    return -pair[0]
