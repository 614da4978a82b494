# Made by scripts/spell.py from src/holdfast/features/leadership/client.py: edit that file and run the script.
"""Leading a name: for a block, or while a function runs.  docs/client.md (leading)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import TypeVar

from holdfast.client import checks
from holdfast.client.checks import Seconds
from holdfast.client.sync.holds import Holding
from holdfast.client.sync.link import Link
from holdfast.client.threads.held import Ended, worked
from holdfast.errors import LeadershipLost
from holdfast.features.leadership.client_base import ELECT, KIND, NOT_ELECTED, Manner, check_function, checked_name

R = TypeVar("R")


class Term(Holding):
    """A term as leader of a name, for the length of a ``with`` block. Made by ``group.lead``.

    ``valid`` says whether this process leads now: it reads the clock of this machine and nothing else, so it is right also when the agent
    is dead or this process was stopped for a while. ``token`` grows with every term of the name, everywhere: give it to what you write
    to, and let that refuse smaller ones. ``deadline`` moves as the term is renewed; ``left`` is what remains.
    ``term.lost.wait()`` returns when the term is over; ``why`` says why.

    A term by an election has the same names and another promise: ``exclusive`` is False, because another process may lead the same name at
    the same time, each with a token of its own.
    """

    lost_error = LeadershipLost
    method = "lead"

    @property
    def exclusive(self) -> bool:
        """While it is valid no other client of the group leads the same name."""
        return self.kind == KIND

    @property
    def hint(self) -> str:
        return super().hint if self.exclusive else NOT_ELECTED

    def resign(self) -> None:
        """Give the leadership up now. Say it when nothing is done under it any more: the next candidate leads about a round trip later."""
        self.release()


def lead(link: Link, name: str, grace: Seconds, timeout: Seconds | None, manner: Manner = None) -> Term:
    """``manner``: how it is elected; None: the seats decide."""
    options = {"grace": checks.duration(grace, "grace"), **(manner or {})}
    return link.hold(Term, KIND if manner is None else ELECT, checked_name(name), options, timeout)


def while_leader(
    link: Link, name: str, grace: Seconds, timeout: Seconds | None, manner: Manner = None
) -> Callable[[Callable[[Term], R]], Callable[[], R]]:
    checked_name(name)
    checks.limit(timeout)
    notice = checks.duration(grace, "grace")

    def decorated(function: Callable[[Term], R]) -> Callable[[], R]:
        check_function(function)
        return wraps(function)(partial(_lead_again, partial(lead, link, name, grace, timeout, manner), function, notice))

    return decorated


def _lead_again(lead: Callable[[], Term], function: Callable[[Term], R], notice: float) -> R:
    """What the function returns by itself, while the term is valid."""
    ended: Ended[R] | None = None
    while ended is None:
        with suppress(LeadershipLost):  # Before the block began.
            with lead() as term:
                ended = worked(function, term, notice)
    return ended.result()
