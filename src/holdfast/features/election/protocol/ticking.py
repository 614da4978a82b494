"""Ticking: what is looked at once a second: was this process stopped, has a leader support, is a watch armed?

Spec: election 5.8 (tick), 5.9 (pause, support); foundation F10, F11.
"""

from __future__ import annotations

from holdfast.errors import ConfigError
from holdfast.features.election.protocol.candidacy import Candidacy
from holdfast.features.election.protocol.config import PAUSE_MAX
from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.hearing import Hearing
from holdfast.features.election.protocol.posting import Posting
from holdfast.features.election.protocol.reigns import Reigns
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.terms import Terms
from holdfast.features.election.protocol.voting import Voting
from holdfast.features.election.protocol.watching import Watching
from holdfast.host import Timer


class Ticking:
    """One timer that looks at all names."""

    def __init__(
        self, core: Core, *, candidacy: Candidacy, hearing: Hearing, posting: Posting, reigns: Reigns, voting: Voting, watching: Watching,
        terms: Terms,
    ) -> None:  # fmt: skip
        self._core, self._candidacy, self._hearing, self._posting, self._reigns = core, candidacy, hearing, posting, reigns
        self._voting, self._watching, self._terms = voting, watching, terms
        self._due_at = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def in_time(self) -> bool:
        """True if the next tick is not overdue by so much that this process must have been stopped."""
        return self._core.now - self._due_at <= PAUSE_MAX

    def look(self, contest: Contest) -> None:
        """Look at one name now."""
        self._voting.tick(contest)
        if contest.wish is not None:
            try:
                self._posting.refresh(contest)
            except ConfigError:
                self._core.counts["rows_full"] += 1
        before = contest.told
        self._reigns.tell(contest)
        if before is not None and contest.told is None:
            self._watching.on_gone(contest, resigned=False)
        if self._watching.needed(contest):
            self._watching.arm(contest)

    def _arm(self) -> None:
        self._due_at = self._core.now + self._core.config.tick
        self._timer = self._core.host.at(self._due_at, self._on_tick)

    def _on_tick(self) -> None:
        paused = not self.in_time
        self._arm()
        contests = list(self._core.contests.values())
        if paused:
            for contest in contests:
                self._candidacy.on_pause(contest)
        if any(contest.manner.by_seats and contest.role is Role.ACTIVE for contest in contests):
            self._terms.greet(every=self._terms.patience)
        for contest in contests:
            if self._core.contests.get(contest.name) is contest:
                self._candidacy.on_tick(contest)
                self._hearing.check(contest)
                self.look(contest)
