"""Fast failure detection: one watched process as one of its monitors sees it.

Spec: fast-detection 2-5, D1-D11, D15, D19, D21; paper 002, Figures 1 and 2, Propositions 4.1 and 4.2.

A ``FastDetector`` is no machine: its owner, an election, receives all messages, checks who is who (member, life, term),
passes on what concerns the watched, and does all sending. The detector owns the timers of fast detection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from holdfast.host import Address, Host, Message, NodeId
from holdfast.protocols.detection.config import FfdConfig, Term
from holdfast.protocols.detection.facts import Report
from holdfast.protocols.detection.links import Links
from holdfast.protocols.detection.messages import DidYouMissToo, Vote, WatchedOk
from holdfast.protocols.detection.plan import Plan

__all__ = ["FastDetector", "Links", "Report", "Watcher"]


class Watcher(Protocol):
    """Whom a FastDetector works for: the election that owns it."""

    def monitors(self) -> Mapping[str, NodeId | Address]:
        """Whom to ask in a ballot, name -> where: the other monitors, without this process and the watched; at most 15.
        Asked for when a ballot opens. Paper mode: those in the detector's K; quorum mode: all."""

    def enough(self, names: Collection[str]) -> bool:
        """May a report be acted upon if these miss the watched? Fast ballots ask about those who missed the heartbeat, slow ones
        add those who never heard the watched. Quorum mode: a majority of the voters (or seats) is among them; paper mode: True."""

    def say(self, to: NodeId | Address, message: Message) -> None:
        """Send it."""

    def on_missed(self, seq: int) -> None:
        """A freshness point passed without heartbeat ``seq``: send MONITOR-OK(seq, -1, (), detector.missed_bits(seq))."""

    def on_report(self, report: Report) -> None:
        """A ballot was closed (not: dismissed, aborted, or discarded because this process was stopped). If it was acted, move on to
        the next round: ``watch`` or ``stop`` may be called from here. Slow and not acted: call ``open_slow`` again after
        Delta_c (1 + random)."""


class FastDetector:
    """Fig. 2's monitor task and collectVotes task for one watched process, with the faults of D1-D7 removed."""

    def __init__(self, host: Host, config: FfdConfig, watcher: Watcher, links: Links) -> None:
        """``links``: one per node, shared by all its detectors; what it measured survives term changes."""
        raise NotImplementedError

    # What the owner may read.
    watched: str  # "" before the first ``watch`` and after ``stop``
    term: Term
    name: str
    heard: int  # heartbeats of this term, repeats not counted; > 0 is the paper's ``monitoring``
    last_seq: int  # the newest index of this term; -1: none
    boot: int  # the life of the watched that speaks; 0: none was heard
    K: tuple[str, ...]  # the other monitors, as the watched believes them alive; sorted
    common: float  # c, as the watched publishes it

    @property
    def fresh_at(self) -> float:
        """The freshness point of the next heartbeat, on this host's clock; infinity before the first one."""
        raise NotImplementedError

    @property
    def missing(self) -> bool:
        """Heard, and the freshness point of the next heartbeat has passed."""
        raise NotImplementedError

    @property
    def p_false(self) -> float:
        """The chance that a live watched was missed like this: the evidence of all ballots in a row (D9); 1.0 without any."""
        raise NotImplementedError

    def omega_at(self, sharers: int = 1) -> float:
        """When the slow path begins: (m_Omega - 1) t_itv after ``fresh_at``; infinity before the first heartbeat (then it is
        the owner's Delta_c after entering the round). ``sharers``: n - 1 in paper mode, 1 in quorum mode."""
        raise NotImplementedError

    def watch(self, watched: str, term: Term, rank_among: Sequence[str], *, name: str = "", boot: int = 0) -> None:
        """OnSetNewLeader: everything of the former term is dropped, only what ``links`` measured stays. K starts as ``rank_among``
        (the monitors, with or without this process, without the watched). ``name`` only travels in queries, for the owner of
        the voter. ``boot``: the one life that is watched, where the owner has a detector per life; 0: whichever speaks first."""
        raise NotImplementedError

    def on_heartbeat(self, source: NodeId, ok: WatchedOk) -> bool:
        """The watched lives: trains the estimators, resets evidence, aborts ballots, answers deferred queries, arms the next freshness
        point. True if ``seq`` was news. The owner has checked term and sender; another life than ``boot`` is counted and dropped
        here. Every page of a heartbeat may be passed on. Afterwards ``fresh_at`` and ``omega_at`` are those of the next one."""
        raise NotImplementedError

    def on_query(self, source: NodeId, query: DidYouMissToo) -> None:
        """Answers now, defers, or stays silent (D4). The owner has checked that ``source`` may ask, and caught up with its term."""
        raise NotImplementedError

    def on_vote(self, source: NodeId, vote: Vote) -> bool:
        """Counts it, if it belongs to the open ballot; False if not (the owner may try another detector)."""
        raise NotImplementedError

    def open_slow(self) -> None:
        """The owner's omega timer fired: ask everybody whether they miss the watched now (D21). Yields once, by w (1 + random), if
        somebody else asked within the last w; waits for a fast ballot that is open. Ends with ``on_report``, or with a
        heartbeat. If this process was stopped meanwhile it is discarded, and opened again by itself after t_itv. Not in paper mode."""
        raise NotImplementedError

    def missed_bits(self, seq: int | None = None) -> int:
        """For MONITOR-OK: bit j set = heartbeat seq - 1 - j of this term never arrived. Default: of ``last_seq``."""
        raise NotImplementedError

    def demand(self, p_m: float) -> Plan:
        """What this accuracy would cost now. The loss of other monitors' links is known from their votes, p_new before."""
        raise NotImplementedError

    def rank(self) -> int | None:
        """Position of this process in sorted K + {self}; 0 is the primary monitor; None while the watched is unheard."""
        raise NotImplementedError

    def on_away(self, seconds: float) -> None:
        """This process was stopped: no ballot of before counts, and heartbeats that waited teach nothing about delays (F10, F11)."""
        raise NotImplementedError

    def stop(self) -> None:
        """Cancels everything; ``watch`` starts it again."""
        raise NotImplementedError
