"""A question to all members of a list, however long it is.  Spec: foundation F17 (64 peers per callback), F10.

Unlike a Phase it has no quorum: it ends when all have answered, or with the time, and a member that is missing is known by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.host import Host, Member, Message, NodeId, Timer
from holdfast.kit.outbox import Outbox
from holdfast.kit.phase import Questions, Request

ASK_EVERY = 0.5  # seconds between two questions to a member that is silent

Answers = dict[NodeId, Message]


class Survey:
    """Asks ``members`` until ``deadline``. ``done`` runs once, with the answers by life, and inside ``start`` if the list is empty."""

    def __init__(
        self,
        host: Host,
        questions: Questions,
        outbox: Outbox,
        members: Iterable[Member],
        request: Request,
        *,
        deadline: float,
        done: Callable[[Answers], None],
        gone: Callable[[NodeId], bool] | None = None,
    ) -> None:
        """``gone``: of this one no answer is waited for any more."""
        self._host, self._questions, self._outbox, self._done, self._gone = host, questions, outbox, done, gone
        self._silent = {member.id: member for member in members}
        self._deadline = deadline
        self._answers: Answers = {}
        self._timer: Timer | None = None
        self.serial = questions.open(self)
        self._request = request(self.serial)

    def start(self) -> None:
        self._on_every()

    def cancel(self) -> None:
        """The answers are not wanted any more: ``done`` will not run."""
        self._questions.close(self.serial)
        if self._timer is not None:
            self._timer.cancel()

    def take(self, voter: Any, answer: Message, *, yes: bool, era: int) -> bool:
        del yes, era
        if voter not in self._silent:
            return voter in self._answers  # The first answer stands.
        del self._silent[voter]
        self._answers[voter] = answer
        if not self._silent:
            self._end()
        return True

    def _on_every(self) -> None:
        if self._gone is not None:
            for life in [life for life in self._silent if self._gone(life)]:
                del self._silent[life]
        # The time comes first: a process that was stopped says nothing that was true before (F9).
        if not self._silent or self._host.now >= self._deadline:
            self._end()
            return
        self._timer = self._host.at(min(self._host.now + ASK_EVERY, self._deadline), self._on_every)
        for member in self._silent.values():
            self._outbox.put_member(member, self._request)

    def _end(self) -> None:
        self.cancel()
        self._done(self._answers)
