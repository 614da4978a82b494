"""What a client is told of its agent's reign: until when it may act.  Spec: election 5.10, E12; foundation F9, F14.

The deadline binds the client and excludes no other. It is extended every half of its length, while the agent leads, its ticks are in time
and, with voters, it is supported. Once it has passed the client has lost the term, whatever the group believes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from holdfast.features.election.protocol.contest import Contest, Wish
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.shown import Role
from holdfast.kit.hold import Lapsed, LossReason

RETRIES = 8  # of an extension, in one length, while the agent is in doubt


class Clients:
    """The wish of one client for each name."""

    def __init__(self, core: Core, sure: Callable[[Contest], bool], lapsed: Callable[[Contest], None]) -> None:
        """``sure``: may the deadline be extended now? ``lapsed`` is called when it has passed: the reign is to end."""
        self._core, self._sure, self._lapsed = core, sure, lapsed

    def on_leading(self, contest: Contest) -> None:
        """Grant the name to the client, or extend its deadline: this agent leads, or leads again after a doubt."""
        wish, now = contest.wish, self._core.now
        if wish is None or not wish.allowed:
            return
        deadline = now + wish.length
        if wish.deadline > now:
            wish.deadline, wish.at_risk = deadline, False
            wish.holder.on_extended(deadline)
        else:
            wish.deadline, wish.at_risk = deadline, False
            wish.holder.on_granted(contest.term, deadline)
        if contest.wish is wish:
            self._arm(contest, wish)

    def at_risk(self, contest: Contest) -> None:
        wish = contest.wish
        if wish is not None and wish.deadline > -inf and not wish.at_risk:
            wish.at_risk = True
            wish.holder.on_at_risk()

    def on_lost(self, contest: Contest, reason: LossReason) -> None:
        """Tell the client that the reign is over, if it was told of it."""
        wish = contest.wish
        if wish is None or wish.deadline == -inf:
            return
        self.end(wish)
        wish.holder.on_lost(reason)

    def end(self, wish: Wish) -> None:
        """Tell the client nothing more under this term."""
        wish.deadline, wish.at_risk = -inf, False
        if wish.timer is not None:
            wish.timer.cancel()
            wish.timer = None

    def lapse(self, contest: Contest) -> None:
        """Take a deadline that has passed for a loss. Every entry does this first (F9)."""
        wish = contest.wish
        if wish is not None and -inf < wish.deadline <= self._core.now:
            self._core.counts["lapsed"] += 1
            self.on_lost(contest, Lapsed())
            self._lapsed(contest)

    def allow(self, contest: Contest, wish: Wish, allowed: bool) -> None:
        wish.allowed = allowed
        if allowed and wish.deadline > -inf:
            self._on_due(contest, wish)

    def _arm(self, contest: Contest, wish: Wish) -> None:
        if wish.timer is not None:
            wish.timer.cancel()
        due = max(wish.deadline - wish.length / 2, self._core.now + wish.length / RETRIES)
        wish.timer = self._core.host.at(min(due, wish.deadline), lambda: self._on_due(contest, wish))

    def _on_due(self, contest: Contest, wish: Wish) -> None:
        if contest.wish is not wish:
            return
        self.lapse(contest)
        if wish.deadline == -inf:
            return
        if wish.allowed and contest.role is Role.ACTIVE and self._sure(contest):
            wish.deadline = self._core.now + wish.length
            wish.holder.on_extended(wish.deadline)
        if contest.wish is wish and wish.deadline > -inf:
            self._arm(contest, wish)
