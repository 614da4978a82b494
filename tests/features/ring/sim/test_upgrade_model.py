"""Every interleaving of one pair's group change: who can win twice, and whom a crash strands.

Ring D14, E9 and section 11. The model is ``holdfast.features.ring.lab.upgrade_model``. A safety check that cannot fail proves nothing:
each rule is also
taken out once, and the exploration has to find what that breaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

import pytest

from holdfast.features.ring.lab.upgrade_model import (
    CASTING,
    SHAPES,
    STATES_MAX,
    VARIANTS,
    Groups,
    JointModel,
    Move,
    NaiveModel,
    PairModel,
    ProposalModel,
    State,
    Versions,
    census,
    explored,
)
from holdfast.kit.phase import weighted
from holdfast.lab.explore import explore

TWICE: Groups = ("PQR", "PQS", "PQR")  # two changes, and late messages of the first
JOINT_STATES = [564, 793, 1342, 1676, 2022, 2349, 8932, 1637, 771, 776, 1024]


def named(groups: Groups) -> str:
    return "-".join(groups)


@pytest.mark.parametrize("groups, states", list(zip((*SHAPES, *CASTING, TWICE), JOINT_STATES, strict=True)))
def test_joint_is_safe_and_strands_nobody(groups: Groups, states: int) -> None:
    """Ring 5.3, D14, I1, I4: never two winners, Q's group is always one of P's, and no crash of P costs Q its membership.

    The number of states is part of the test: an exploration that suddenly sees less has lost a move.
    """
    found = explored("joint", groups)
    assert found.complete
    assert found.both_win == 0
    assert found.skewed == 0
    assert found.stranded == 0
    assert found.at_risk == 0
    assert found.before == 3 * len(groups) - 2  # legal pairs of configurations, 5.3: 3 per change and the first
    assert found.states == states


@pytest.mark.parametrize("variant", ["joint", "proposal"])
@pytest.mark.parametrize("groups", [*SHAPES[:4], *CASTING], ids=named)
def test_safe_although_own_votes_are_late(variant: str, groups: Groups) -> None:
    """Ring 5.2, D14, I1: that a question to oneself is delivered at once is not what keeps the two sides apart."""
    found = explored(variant, groups, prompt=False)
    assert found.complete
    assert found.both_win == 0
    assert found.states > explored(variant, groups).states


def test_safe_with_two_crashes() -> None:
    """Ring D14, I1: two of the pair and its arbitrators may crash at any moment."""
    found = explored("joint", ("PQRST", "PQRUV"), crashes=2)
    assert (found.states, found.both_win, found.skewed) == (34_498, 0, 0)


@pytest.mark.parametrize("groups", [*SHAPES, *CASTING], ids=named)
def test_naive_lets_both_win(groups: Groups) -> None:
    """Ring D14, I1: P switches at once, and disjoint majorities of the two groups let both win, in every shape.

    The votes of the shortest way there are counted here once more, with the groups themselves.
    """
    found = explored("naive", groups)
    assert found.complete
    assert found.both_win > 0
    assert found.stranded == 0
    old, new = groups
    votes = {side: {step[0] for step in found.path if step.endswith(f"votes for {side}")} for side in "PQ"}
    for side, other in ("PQ", "QP"):
        if side not in votes[other]:
            votes[side].add(side)  # Its own vote, cast when it suspected.
    assert not votes["P"] & votes["Q"]
    assert weighted(new).enough(votes["P"])
    assert weighted(old).enough(votes["Q"])


@pytest.mark.parametrize("groups", [*SHAPES[:5], *CASTING, TWICE], ids=named)
def test_proposal_is_safe(groups: Groups) -> None:
    """Ring 5.8, D14, I1; paper 000, IV-B: the two-phase upgrade never lets both win, although the groups differ meanwhile."""
    found = explored("proposal", groups)
    assert found.complete
    assert found.both_win == 0
    assert found.skewed > 0


@pytest.mark.parametrize("groups", [*SHAPES, *CASTING], ids=named)
def test_proposal_strands_the_healthy_side(groups: Groups) -> None:
    """Ring D14: before anybody suspects, a crash of P strands Q in 58-67 % of the states (P with the smallest id).

    The states are counted here once more, from the sets of arbitrators that have promised: none before P proposes, any while it
    waits, a majority once it has switched, and again once Q has heard. Q loses with its old group if without P, and
    without those who have promised, there is no majority left.
    """
    found = explored("proposal", groups, crashes=0)
    old = groups[0]
    sets = [set(names) for names in chain.from_iterable(combinations(old, size) for size in range(len(old) + 1))]
    rule = weighted(old)
    switched = [names for names in sets if rule.enough(names)]
    assert found.before == 1 + len(sets) + 2 * len(switched)
    assert found.stranded == sum(not rule.enough(set(old) - {"P"} - names) for names in (*sets, *switched))
    assert found.at_risk == len(sets) + len(switched)  # Every Propose arrives, no ArbUpgrd does.
    share = found.stranded / found.before
    if groups in SHAPES:
        assert 0.58 <= share <= 0.67
    else:
        assert share == pytest.approx(18 / 33 if len(old) == 4 else 10 / 17)


def test_stranded_by_promises() -> None:
    """Ring D14 (a): two of three have promised, P crashes before Q hears of it; one promise is enough for that too, none is not."""
    model = ProposalModel(("PQR", "PQS"))
    p, q, r, _ = model.bits
    proposed = model.first._replace(next=2)
    assert not model.stranded(proposed)
    assert model.at_risk(proposed)
    assert not model.stranded(proposed._replace(promised=(p,)))
    assert model.stranded(proposed._replace(promised=(r,)))
    switched = State(opener=2, promised=(q | r,))
    assert model.stranded(switched)
    assert not model.stranded(switched._replace(responder=2))


def test_the_dead_win_nothing() -> None:
    """Ring I1: a vote for P that completes its majority after P crashed is no win; the vote binds all the same (5.7)."""
    model = JointModel(("PQR", "PQS"))
    asked = dict(model.moves(model.first))["P suspects Q"]
    assert dict(model.moves(asked))["R votes for P"].p_won
    late = dict(model.moves(asked._replace(crashed=model.p)))["R votes for P"]
    assert not late.p_won
    assert "R votes for Q" not in dict(model.moves(late._replace(q_asked=(1,))))


@pytest.mark.parametrize("model", VARIANTS.values())
def test_the_dead_do_nothing(model: type[PairModel]) -> None:
    """Ring 5.2: in no state does somebody who has crashed change its group, suspect, promise, vote or crash again."""
    pair = model(("PQR", "PQS"), crashes=2)

    def acting(state: State) -> str:
        dead = {name for bit, name in zip(pair.bits, pair.names, strict=True) if state.crashed & bit}
        return next((name for name, _ in pair.moves(state) if name[0] in dead), "")

    found = explore(pair.first, pair.moves, acting, states_max=STATES_MAX)
    assert found.violation == ""
    assert found.complete


class OnlyNew(JointModel):
    """P asks the new group alone before Q has confirmed it."""

    def needs(self, state: State) -> Versions:
        return (state.next or state.opener,)


class OnlyOld(JointModel):
    """P asks the old group alone, although Q may have adopted the new one."""

    def needs(self, state: State) -> Versions:
        return (state.opener,)


class AnyAnswer(JointModel):
    """P takes an ArbUpgrdAck of an earlier change for one of this."""

    def confirmed(self, state: State) -> bool:
        return state.responder > 1


class GoesBack(JointModel):
    """Q adopts what a late ArbUpgrd says, also an earlier version than its own."""

    def adoptable(self, state: State) -> Iterator[int]:
        yield from (version for version in range(2, self.told(state) + 1) if version != state.responder)


class AdoptsLate(JointModel):
    """Q adopts, and confirms, after it has asked its old group."""

    def arrivals(self, state: State) -> Iterator[Move]:
        for version in self.adoptable(state):
            yield f"Q adopts {version}", state._replace(responder=version)


class VotesTwice(JointModel):
    """An arbitrator votes for whoever asks."""

    def accepts(self, state: State, arbitrator: int, side: int) -> bool:
        return True


class NothingIsStale(ProposalModel):
    """An arbitrator that has promised P a version still votes for a Q that does not know of it."""

    def stale(self, state: State, arbitrator: int) -> bool:
        return False


class PromisesAnyway(ProposalModel):
    """An arbitrator that has voted for Q still promises P a version."""

    def promises(self, state: State, arbitrator: int) -> bool:
        return True


class Hasty(ProposalModel):
    """P switches before anybody has promised."""

    changes = NaiveModel.changes


ABLATIONS = [
    (OnlyNew, SHAPES[0]),
    (OnlyNew, SHAPES[3]),
    (OnlyOld, SHAPES[0]),
    (OnlyOld, SHAPES[3]),
    (AnyAnswer, TWICE),
    (GoesBack, TWICE),
    (AdoptsLate, SHAPES[0]),
    (VotesTwice, SHAPES[0]),
    (NothingIsStale, SHAPES[0]),
    (PromisesAnyway, SHAPES[0]),
    (Hasty, SHAPES[0]),
]


@pytest.mark.parametrize("model, groups", ABLATIONS)
def test_what_each_rule_is_for(model: type[PairModel], groups: Groups) -> None:
    """Ring 5.2, 5.3, 5.8: take one rule out, and a short sequence of moves lets both win."""
    found = census(model(groups))
    assert found.complete
    assert found.both_win > 0
    assert 4 <= len(found.path) <= 12


@pytest.mark.parametrize("model", [AnyAnswer, GoesBack])
def test_skew_is_seen(model: type[PairModel]) -> None:
    """Ring I4: a late answer or a late ArbUpgrd that is taken for a new one leaves Q with a group that P neither has nor proposes."""
    assert census(model(TWICE)).skewed > 0
