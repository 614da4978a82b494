"""Which candidate the answers name.  Spec: election 5.5 (4), D4, D7, D13, D14; paper 004, Algorithm 3 lines 10-19.

A pure function of the answers: their order does not matter (E9).
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.features.election.protocol.checks import is_life, is_place
from holdfast.features.election.protocol.contest import Contest, Run
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.messages import Response, Standing, Unhealthy
from holdfast.features.election.protocol.ranks import Ranked, ranked
from holdfast.features.election.protocol.shown import Account, Answered
from holdfast.host import Address, NodeId

# Elections of this initiator in a row in which a nominee was silent, after which it is left out. Before that it is not, whatever the own
# list says (D4, D12). With two in ten datagrams lost a live nominee is silent so often once in a hundred thousand.
SILENT_MAX = 4


class Choice(NamedTuple):
    """What the answers so far choose."""

    best: NodeId | None
    address: Address | None  # of the best one; None: not told
    leaders: tuple[Ranked, ...]  # candidates that no answer excludes, best first
    excluded: dict[NodeId, float]


def choose(core: Core, contest: Contest, run: Run) -> Choice:
    """The best of candidates - excludes; with sticky the incumbent, if any answer lists it."""
    rows = _newest(core, run)
    excluded = _excluded(contest, run)
    silent = {life for life, times in contest.silent.items() if times >= SILENT_MAX}
    out = excluded.keys() | run.gone.keys() | silent
    if silent and not rows.keys() - out:
        out -= silent  # All answers name these alone: the lists still have them, so they are asked once more (Theorem 2).
    leaders = tuple(sorted(ranked(contest.name, life, row.rank) for life, row in rows.items() if life not in out))
    if not core.rules.no_veto:
        leaders = tuple(each for each in leaders if core.is_listed(each.id))
    best = _incumbent(contest, run, out) if run.sticky else None
    if best is None and leaders:
        best = leaders[0].id
    row = None if best is None else rows.get(best)
    return Choice(best, None if row is None else row.address, leaders, excluded)


def account(core: Core, contest: Contest, run: Run, outcome: str) -> Account:
    """How this election went, for pages."""
    choice = choose(core, contest, run)
    answers = {
        life: Answered(
            tuple(each.id for each in answer.candidates),
            {each.id: each.value for each in _worst(answer, run)} if contest.manner.prefers else {},
            run.got_at[life] - run.began_at,
        )
        for life, answer in run.got.items()
    }
    return Account(
        run.eid, run.why, run.began_at, run.x, run.y, run.c, run.f, dict(run.asked), answers, choice.excluded,
        tuple(each.id for each in choice.leaders), run.nominee, run.term, run.rounds, run.retries, outcome,
        core.now - run.began_at if outcome else 0.0,
    )  # fmt: skip


def _newest(core: Core, run: Run) -> dict[NodeId, Standing]:
    """Per candidate the row that it published last (D13)."""
    found: dict[NodeId, Standing] = {}
    for answer in run.got.values():
        for each in answer.candidates[: run.x]:
            if not (is_life(each.id) and is_place(each.address)):
                core.counts["unsound"] += 1
                continue
            known = found.get(each.id)
            if known is None or _is_newer(core, each, known):
                found[each.id] = each
    return found


def _is_newer(core: Core, one: Standing, other: Standing) -> bool:
    """Of one ``inc`` there is one row; a liar's is ordered all the same, so that the order of answers does not matter."""
    if core.rules.newest_row:
        return (one.inc, one.rank, one.address) > (other.inc, other.rank, other.address)
    return (one.inc, one.rank, one.address) < (other.inc, other.rank, other.address)


def _worst(answer: Response, run: Run) -> tuple[Unhealthy, ...]:
    """The unhealthy that count of an answer: as many as were asked for, and the responder itself; more is a lie."""
    return answer.excluded[: run.y + 1] if run.y else ()


def _excluded(contest: Contest, run: Run) -> dict[NodeId, float]:
    found: dict[NodeId, float] = {}
    if contest.manner.prefers:
        for answer in run.got.values():
            for life, value in _worst(answer, run):
                found[life] = max(value, found.get(life, 0.0))
    return found


def _incumbent(contest: Contest, run: Run, out: set[NodeId]) -> NodeId | None:
    """The leader that an answer with the highest term of all lists (D14)."""
    top = max((answer.term for answer in run.got.values()), default=0)
    crowns = [answer.active for answer in run.got.values() if answer.term == top and answer.leader_listed and answer.active is not None]
    found = [crown for crown in crowns if crown.term == top and crown.leader not in out and is_life(crown.leader)]
    best = max(found, key=lambda crown: contest.pair(crown.term, crown.leader), default=None)
    return None if best is None else best.leader
