"""One ballot: who missed the same heartbeat?  Spec: fast-detection 5 (open, close ballot), D1, D7, D21; paper 002, Fig. 2, collectVotes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.features.leadership.detector.config import LOSS_MAX, LOSS_MIN, FfdConfig
from holdfast.features.leadership.detector.messages import DidYouMissToo, Vote, VoteKind
from holdfast.host import Address, Host, Message, NodeId, Timer

Say = Callable[[NodeId | Address, Message], None]


class Ballot:
    """Asks, asks the silent once more after t_rtt, and closes when all have answered or after w = 2 t_rtt.

    Votes are kept by voter, so one that came twice is one (D7), and a monitor that was not asked has none; the asker is not asked (D1).
    """

    def __init__(
        self,
        host: Host,
        config: FfdConfig,
        query: DidYouMissToo,
        ask: Mapping[str, NodeId | Address],
        say: Say,
        on_close: Callable[[], None],
    ) -> None:
        self.query = query
        self.misses: dict[str, float] = {}  # voter -> loss on its link from the watched
        self.unheard: list[str] = []
        self.have: list[str] = []
        self.opened_at = host.now
        self._ask, self._say, self._on_close = dict(ask), say, on_close
        self._timers: list[Timer] = [host.after(config.t_rtt, self._repeat), host.after(config.w, on_close)]

    @property
    def closes_at(self) -> float:
        return self._timers[-1].due_at

    @property
    def silent(self) -> tuple[str, ...]:
        return tuple(name for name in sorted(self._ask) if not self.answered(name))

    @property
    def complete(self) -> bool:
        return all(self.answered(name) for name in self._ask)

    def answered(self, name: str) -> bool:
        return name in self.misses or name in self.unheard or name in self.have

    def open(self) -> None:
        self._repeat()
        self.close_if_complete()

    def count_own(self, name: str, p: float | None) -> None:
        """The asker's own knowledge; None: it never heard the watched."""
        if p is None:
            self.unheard.append(name)
        else:
            self.misses[name] = p

    def record(self, name: str, vote: Vote) -> bool:
        """False: not asked, not of this ballot, or said before."""
        query = self.query
        if (vote.nonce, vote.view, vote.round, vote.seq) != (query.nonce, query.view, query.round, query.seq):
            return False
        if name not in self._ask or self.answered(name) or not LOSS_MIN <= vote.p <= LOSS_MAX:
            return False
        if vote.kind is VoteKind.MISSED:
            self.misses[name] = vote.p
        else:
            (self.have if vote.kind is VoteKind.HAVE else self.unheard).append(name)
        return True

    def close_if_complete(self) -> None:
        """No monitor is waited for (D7): only so does Prop. 4.2's t_rtt hold."""
        if self.complete:
            self._on_close()

    def cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _repeat(self) -> None:
        for name, to in self._ask.items():
            if not self.answered(name):
                self._say(to, self.query)
