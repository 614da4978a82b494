"""``FailureFreeRing`` does what Algorithms 1 and 2 of paper 001 say, and Lemmas 3.1 and 3.2 and Theorem 3.1 hold on it.

Spec: tickets 5.10, D8, D24, I1, I2, I4, I11. A check that cannot fail proves nothing: each rule is also taken out once, and the exploration
of all interleavings has to find what that breaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from holdfast.host import NodeId
from holdfast.papers.tickets.lab.circle import bits, coordinated, core, distance
from holdfast.papers.tickets.lab.failure_free_ring import (
    AckCjoin,
    AckCleave,
    AckSucc,
    Cjoin,
    Cleave,
    FailureFreeRing,
    Message,
    NewSucc,
    Process,
    Reject,
    State,
)
from holdfast.papers.tickets.lab.failure_free_runs import Everything, Interleaving, broken, leaver_shares, shared

A, B, C, D = (NodeId(name, 1) for name in "abcd")
N = 8


def ring(*joins: tuple[NodeId, NodeId, int]) -> FailureFreeRing:
    """A core of a (ticket 0) and of those who joined: (who, through whom, ticket)."""
    wanted = [ticket for _, _, ticket in joins]
    made = FailureFreeRing(N, A, lambda free: wanted.pop(0) if wanted else max(free))
    for who, through, _ in joins:
        made.cjoin(who, through)
        settle(made)
    return made


def settle(ring: FailureFreeRing) -> None:
    """Everything under way arrives."""
    while ring.channels:
        ring.deliver(*next(iter(ring.channels)))


def under_way(ring: FailureFreeRing) -> dict[tuple[NodeId, NodeId], list[Message]]:
    return {ends: list(queue) for ends, queue in ring.channels.items()}


def tickets(ring: FailureFreeRing) -> dict[str, tuple[int, ...]]:
    return {p.me.name: ring.tickets(p) for p in ring.core if p.coordinates}


# Section 3: S_p


def test_succeeding_tickets_count_down() -> None:
    """D24, section 3: the ticket that succeeds i is i - 1 mod n, and S_p ends before the successor's ticket."""
    assert coordinated(4, 1, N) == (4, 3, 2)
    assert coordinated(1, 6, N) == (1, 0, 7)
    assert coordinated(5, 5, N) == (5, 4, 3, 2, 1, 0, 7, 6)  # alone


def test_sets_of_bits_are_the_same_sets() -> None:
    """Section 3: the observer's quick form of S_p is S_p."""
    for i in range(N):
        for j in range(N):
            assert bits(i, j, N) == sum(1 << ticket for ticket in coordinated(i, j, N))
            assert distance(i, j, N) == len(coordinated(i, j, N))


@pytest.mark.parametrize("seed", range(20))
def test_lemma_3_1(seed: int) -> None:
    """Lemma 3.1: in any core the sets are disjoint, and every ticket is owned or coordinated."""
    random = Random(seed)
    n = random.randint(1, 40)
    owners = {ticket: f"p{ticket}" for ticket in random.sample(range(n), random.randint(1, n))}
    sets = core(owners, n)
    assert sorted(ticket for each in sets.values() for ticket in each) == list(range(n))
    assert {each[0]: name for name, each in sets.items()} == owners


# Algorithm 1


def test_a_cjoin_step_by_step() -> None:
    """Algorithm 1: CJOIN, ACKCJOIN(t, j, Cview), NEWSUCC, ACKSUCC; coordinator only after the last."""
    made = FailureFreeRing(N, A, lambda free: 5)
    made.cjoin(B, A)
    assert under_way(made) == {(B, A): [Cjoin()]}
    made.deliver(B, A)
    assert under_way(made) == {(A, B): [AckCjoin(5, 0, ((0, A), (5, B)))]}
    assert made.processes[A].immed_succ == B
    made.deliver(A, B)
    joining = made.processes[B]
    assert (joining.state, joining.immed_succ, joining.immed_pred) == (State.JOINING, A, A)
    assert under_way(made) == {(B, A): [NewSucc()]}
    made.deliver(B, A)
    assert made.processes[A].immed_pred == B
    assert under_way(made) == {(A, B): [AckSucc()]}
    made.deliver(A, B)
    assert joining.state is State.COORDINATOR
    assert tickets(made) == {"a": (0, 7, 6), "b": (5, 4, 3, 2, 1)}


def test_a_cjoin_in_the_middle_cuts_the_arc() -> None:
    """Section 3.1: q keeps what precedes t, p gets t and what is behind it."""
    made = ring((B, A, 5), (C, B, 3))
    assert tickets(made) == {"a": (0, 7, 6), "b": (5, 4), "c": (3, 2, 1)}
    assert broken(made) == ""


@pytest.mark.parametrize("state", [State.JOINING, State.EXCLUSION, State.LEAVING, State.GONE])
def test_only_a_coordinator_lets_in(state: State) -> None:
    """Algorithm 1: "if state_p is not coordinator, send REJECT"."""
    made = ring()
    made.processes[A].state = state
    made.cjoin(B, A)
    made.deliver(B, A)
    assert under_way(made) == {(A, B): [Reject()]}
    made.deliver(A, B)
    assert made.processes[B].state is State.GONE


def test_nothing_to_give() -> None:
    """Algorithm 1: whoever coordinates its own ticket alone rejects."""
    made = ring((B, A, 7))
    assert tickets(made)["a"] == (0,)
    made.cjoin(C, A)
    made.deliver(C, A)
    assert under_way(made) == {(A, C): [Reject()]}


# Algorithm 2


def test_a_cleave_step_by_step() -> None:
    """Algorithm 2: CLEAVE to the predecessor, ACKCLEAVE back, NEWSUCC on; the predecessor is in state exclusion until ACKSUCC."""
    made = ring((B, A, 5), (C, B, 3))
    made.cleave(B)
    assert under_way(made) == {(B, A): [Cleave(3, C)]}
    assert not made.processes[B].owns  # D8: it stops before it asks.
    made.deliver(B, A)
    assert under_way(made) == {(A, B): [AckCleave()], (A, C): [NewSucc()]}
    assert made.processes[A].state is State.EXCLUSION
    assert made.tickets(made.processes[A]) == (0, 7, 6, 5, 4)
    settle(made)
    assert made.processes[A].state is State.COORDINATOR
    assert made.processes[B].state is State.GONE
    assert broken(made) == ""


def test_who_leaves_says_so_again() -> None:
    """Algorithm 2: a leaving process answers NEWSUCC with CLEAVE."""
    made = ring((B, A, 5))
    made.processes[B].state = State.LEAVING
    made._receive(made.processes[B], C, NewSucc())
    assert under_way(made) == {(B, C): [Cleave(0, A)]}


def test_several_leave_in_a_row() -> None:
    """Section 3.1: "p may have to subsequently serve CLEAVE messages from its new successor until finally receiving ACKSUCC"."""
    made = ring((B, A, 6), (C, B, 4), (D, C, 2))
    for leaver in (D, C, B):
        made.cleave(leaver)
    settle(made)
    assert tickets(made) == {"a": tuple(coordinated(0, 0, N))}
    assert broken(made) == ""


def test_a_cleave_of_somebody_else_is_ignored() -> None:
    """Section 3.1: "a process p serves a cleave message by r only if r is the current successor of p"."""
    made = ring((B, A, 6), (C, B, 4))
    before = tickets(made)
    made._receive(made.processes[A], C, Cleave(0, A))
    assert tickets(made) == before
    assert not made.channels


# Lemma 3.2


def test_lemma_3_2_interleaved_cjoins() -> None:
    """Lemma 3.2 (1): q serves p and then p'; p' is between them, and p takes it for its predecessor once it knows of itself."""
    made = ring()
    made._choose = lambda free: free[len(free) // 2]
    made.cjoin(B, A)
    made.cjoin(C, A)
    made.deliver(B, A)  # b gets ticket 4
    made.deliver(C, A)  # c gets ticket 6, successor b, which does not know yet
    made.deliver(A, C)
    made.deliver(C, B)  # NEWSUCC before ACKCJOIN
    assert made.processes[B].waiting == [(C, NewSucc())]
    settle(made)
    assert made.processes[B].immed_pred == C
    assert broken(made) == ""


def test_lemma_3_2_cleave_of_the_successor() -> None:
    """Lemma 3.2 (2): r leaves while p joins at q: q does not serve it any more, p does."""
    made = ring((C, A, 4))
    made._choose = lambda free: 6
    made.cjoin(B, A)
    made.deliver(B, A)
    made.cleave(C)
    made.deliver(C, A)  # c is not a's successor any more
    assert made.processes[A].state is State.COORDINATOR
    made.deliver(A, B)
    made.deliver(B, C)
    assert under_way(made) == {(C, B): [Cleave(0, A)]}
    settle(made)
    assert tickets(made) == {"a": (0, 7), "b": (6, 5, 4, 3, 2, 1)}
    assert broken(made) == ""


# Theorem 3.1


@pytest.mark.parametrize("joiners, states", [(["p1"], 15), (["p1", "p2"], 382), (["p1", "p2", "p3"], 16_368)])
def test_theorem_3_1_every_interleaving(joiners: list[str], states: int) -> None:
    """Theorem 3.1, I1, I2, I11: all interleavings of a small cluster. An exploration that suddenly sees less has lost a move."""
    found = Everything(len(joiners) + 1, joiners).explored()
    assert found.violation == ""
    assert found.complete
    assert found.states == states


@pytest.mark.parametrize("seed", range(8))
def test_theorem_3_1_random(seed: int) -> None:
    """Theorem 3.1, I1, I2, I11: ten processes, 16 tickets; one stays."""
    found = Interleaving(seed, processes=10, n=16, operations=100, stays=True).play()
    assert (found.shared, found.broken, found.stuck) == ("", "", 0)


class ServesAnybody(FailureFreeRing):
    """A CLEAVE counts whoever sent it."""

    def _on_cleave(self, p: Process, q: NodeId, cleave: Cleave) -> None:
        former, p.immed_succ = p.immed_succ, q
        super()._on_cleave(p, q, cleave)
        if p.immed_succ == q:
            p.immed_succ = former


class WelcomesWhileLeaving(FailureFreeRing):
    """A leaving process acknowledges a new predecessor, as if it stayed."""

    def _on_new_succ(self, p: Process, q: NodeId) -> None:
        p.immed_pred = q
        self._send(p.me, q, AckSucc())


class ServesWhileLeaving(FailureFreeRing):
    """A leaving process lets others in."""

    def _on_cjoin(self, p: Process, q: NodeId) -> None:
        leaving, p.state = p.state, State.COORDINATOR
        super()._on_cjoin(p, q)
        p.state = leaving


class LeavesAtOnce(FailureFreeRing):
    """Who wants out does not wait until its successor has acknowledged it."""

    def _leave_if_ready(self, p: Process) -> None:
        if p.placed and p.state in (State.JOINING, State.EXCLUSION):
            p.state = State.COORDINATOR if p.wants_out else p.state
        super()._leave_if_ready(p)


class ForgetsTheEarly(FailureFreeRing):
    """What comes before ACKCJOIN is lost."""

    def _receive(self, p: Process, q: NodeId, message: Message) -> None:
        super()._receive(p, q, message)
        p.waiting.clear()


@pytest.mark.parametrize(
    "kind, joiners",
    [(ServesAnybody, 3), (WelcomesWhileLeaving, 2), (ServesWhileLeaving, 2), (LeavesAtOnce, 2), (ForgetsTheEarly, 2)],
)
def test_each_rule_is_needed(kind: type[FailureFreeRing], joiners: int) -> None:
    """Algorithms 1 and 2: without any one of their guards some interleaving breaks I1, I2 or I11."""
    found = Everything(joiners + 1, [f"p{i + 1}" for i in range(joiners)], kind).explored()
    assert found.violation


def test_a_former_life_is_somebody_else() -> None:
    """F1: were a process that comes back the same one, a CLEAVE of its former life would give its tickets away."""
    made = ring((C, A, 4))
    chosen: Iterator[int] = iter((6, 5))
    made._choose = lambda free: next(chosen)
    made.cjoin(B, A)
    made.deliver(B, A)
    made.deliver(A, B)  # a, b, c; c does not know b yet
    made.cleave(C)  # to a, and under way for long
    made.deliver(B, C)
    made.deliver(C, B)  # c says it again, to b
    made.deliver(B, C)
    assert made.processes.pop(C).state is State.GONE
    while (B, A) in made.channels or (A, B) in made.channels:
        made.deliver(*((B, A) if (B, A) in made.channels else (A, B)))
    made.cjoin(C, B)  # the same name again
    made.deliver(C, B)
    made.deliver(B, C)
    made.cleave(B)
    made.deliver(B, A)
    assert shared(made) == ""
    made.deliver(C, A)  # what the former life of c said
    assert shared(made)


# Leaving


def test_two_leave_and_nobody_stays() -> None:
    """D8: each waits for the other, which does not serve it because it leaves."""
    made = ring((B, A, 4))
    made.cleave(A)
    made.cleave(B)
    settle(made)
    assert [p.state for p in made.core] == [State.LEAVING, State.LEAVING]


def test_the_last_one_waits_for_itself() -> None:
    """D8: whoever is alone is its own predecessor."""
    made = ring()
    made.cleave(A)
    settle(made)
    assert made.processes[A].state is State.LEAVING


def test_everybody_may_leave() -> None:
    """D8: random runs end in the deadlock, never with somebody who stayed; what Theorem 3.1 says holds all the same."""
    found = [Interleaving(seed, processes=10, n=16, operations=100, stays=False).play() for seed in range(8)]
    assert any(each.stuck for each in found)
    assert not any(each.stuck and each.stayed for each in found)
    assert not any(each.shared or each.broken for each in found)


def test_a_leaver_must_stop_before_it_asks() -> None:
    """D8: while ACKCLEAVE is under way its ticket has a new owner; a leaver that counted as owner until then would share it."""
    made = ring((B, A, 4))
    made._choose = lambda free: 4
    made.cleave(B)
    made.deliver(B, A)
    made.deliver(A, A)
    made.deliver(A, A)  # NEWSUCC to itself, ACKSUCC from itself
    made.cjoin(C, A)
    made.deliver(C, A)
    made.deliver(A, C)
    made.deliver(C, A)
    made.deliver(A, C)
    assert made.processes[C].owns
    assert (A, B) in made.channels
    assert leaver_shares(made)
    assert shared(made) == ""
