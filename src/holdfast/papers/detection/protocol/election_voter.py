"""Voter: what a member promises to a candidate, and for how long it remembers.  Spec: fast-detection 5 (grant rule), D18; foundation 4.

One promise, to one life. It is recorded with its term and is durable before it is answered; how long it runs is not on disk, so a
restarted voter first waits as long as its longest promise may run.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.leadership.detector.config import LENGTH_MAX, Term
from holdfast.host import Host, NodeId
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.papers.detection.protocol.termstore import TermStore

KEY = "lead"  # of the one promise


class Voter:
    """The promise of one process."""

    def __init__(self, host: Host, store: TermStore, rho: float) -> None:
        self._keeper = Keeper(host, store.keeper, rho=rho, length_max=LENGTH_MAX)
        self._promises = Promises(host, store.promises, self._keeper)

    def start(self) -> None:
        """D18: until when a former life has promised is not on disk. One that never promised anything is not waited for."""
        self._keeper.open(fresh=False)

    def ask(self, life: NodeId, term: Term, length: float, then: Callable[[Answer], None]) -> None:
        """May this life lead this term for so long (F4: what it asked for, not what is set here)?"""
        self._promises.ask(KEY, HolderId(life, 0), term.token, length, then)

    def release(self, life: NodeId, term: Term) -> None:
        """Its own word that it leads no more, in this term or an earlier one."""
        self._promises.release(KEY, HolderId(life, 0), term.token)
