"""The model in which the change of one pair's arbitrator group is explored exhaustively, in three variants.

Spec: ring 5.2, 5.3, 5.8, D14, E9, I1, I4; paper 000, IV-B.  One pair, the opener P and the responder Q, both in every group. The
arbitrators are the members of all groups, P and Q among them. What may happen, in any order:

* P begins to change the group; a message about the change arrives; P switches,
* P or Q suspects the other, once and for good (D3), and asks every group it needs,
* a question reaches an arbitrator, which votes for the one that asked first (one vote per pair and epoch, D16),
* a process crashes: P, Q or another arbitrator, as many as the bound allows.

What was sent can be read from the state (P has begun, so its message is under way; Q has adopted, so its answer is), and whatever
was sent may arrive, now, later, often or never, also after its sender crashed. So loss, repetition and reordering need no
moves of their own. Four more things need none:

* Answers to questions arrive at once. Votes bind, and who has suspected takes no more part in the change, so an answer that is
  late or lost only makes one win less. A promise's answer does matter: P switches at any time after enough promised.
* Who lost, timed out or left is like one whose messages do not arrive and whom none reach.
* A Propose that is tried again (5.8) is either the same message or one with a higher version, which binds in the same way.
* Time: no arbitrator forgets a vote or a promise, because they are kept longer than a loser can live (Cor. 2, vote_ttl).

A question to oneself is delivered in the same step (5.2), unless ``prompt`` is off: then it is a message like any other, which
allows more than the protocol does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from holdfast.kit.phase import joint, weighted
from holdfast.lab.explore import explore

Groups = tuple[str, ...]  # the group of version 1, 2, ...; each letter is a member, letters are in the order of ids
Versions = tuple[int, ...]

# As few as 3 and as many as 5 become as few as 3 and as many as 5: one or two replaced, joined or left. P opens, so it has the
# smallest id of the two (D18); here it has the smallest of all, and with it the casting vote of every even group (D5).
SHAPES: Final[tuple[Groups, ...]] = (
    ("PQR", "PQS"),
    ("PQR", "PQRS"),
    ("PQRS", "PQT"),
    ("PQRS", "PQRT"),
    ("PQRST", "PQR"),
    ("PQRST", "PQRS"),
    ("PQRST", "PQRUV"),
)
# Another arbitrator has the casting vote: it leaves, comes, stays while another leaves.
CASTING: Final[tuple[Groups, ...]] = (("OPQR", "PQRS"), ("PQR", "OPQR"), ("OPQR", "OPQ"))

OPENER, RESPONDER = "P", "Q"
STATES_MAX = 3_000_000  # no shape above comes near it


class State(NamedTuple):
    """All there is. Sets of arbitrators are bits."""

    opener: int = 1  # version of P's group
    next: int = 0  # the version P has proposed and not yet switched to; 0 if there is none
    responder: int = 1  # version of Q's group
    p_asked: Versions = ()  # groups whose majorities P needs, from its suspicion on
    q_asked: Versions = ()
    p_votes: int = 0  # who voted for P
    q_votes: int = 0
    promised: tuple[int, ...] = ()  # proposal: who promised P version 2, 3, ...
    p_won: bool = False
    q_won: bool = False
    crashed: int = 0


Move = tuple[str, State]


class PairModel:
    """What the variants share: suspicion, votes, crashes. A variant says how the group changes."""

    name: ClassVar[str]

    def __init__(self, groups: Groups, *, crashes: int = 1, prompt: bool = True) -> None:
        assert all({OPENER, RESPONDER} <= set(group) for group in groups)
        self.crashes, self.prompt = crashes, prompt
        self.last = len(groups)
        self.names = tuple(sorted(set("".join(groups))))
        self.bits = tuple(1 << place for place in range(len(self.names)))
        self.p, self.q = (self.bits[self.names.index(side)] for side in (OPENER, RESPONDER))
        self._letters = groups
        self._groups = (0, *(sum(bit for bit, name in zip(self.bits, self.names, strict=True) if name in group) for group in groups))
        self._enough: dict[Versions, tuple[bool, ...]] = {}
        self.first = State(promised=(0,) * (self.last - 1))

    def moves(self, state: State) -> Iterator[Move]:
        """Every move that can happen in a state."""
        if not state.p_asked and not state.crashed & self.p:
            yield from self.changes(state)
            yield "P suspects Q", self._ask_self(state._replace(p_asked=self.needs(state)), self.p)
        yield from self.arrivals(state)
        if not state.q_asked and not state.crashed & self.q:
            yield "Q suspects P", self._ask_self(state._replace(q_asked=(state.responder,)), self.q)
        for bit, name in zip(self.bits, self.names, strict=True):
            if not state.crashed & bit:
                yield from self._votes(state, bit, name)
                if state.crashed.bit_count() < self.crashes:
                    yield f"{name} crashes", state._replace(crashed=state.crashed | bit)

    def needs(self, state: State) -> Versions:
        """The groups whose majorities P needs if it suspects now."""
        return (state.opener,)

    def changes(self, state: State) -> Iterator[Move]:
        """What P, alive and not suspecting, does about its group."""
        raise NotImplementedError

    def arrivals(self, state: State) -> Iterator[Move]:
        """What P's messages about the change do where they arrive. They need no P any more."""
        if not state.q_asked and not state.crashed & self.q:
            for version in self.adoptable(state):
                yield f"Q adopts {version}", state._replace(responder=version)

    def adoptable(self, state: State) -> Iterator[int]:
        """Versions Q takes over if P's message about them arrives: later ones than its own, of which P has told."""
        yield from range(state.responder + 1, self.told(state) + 1)

    def told(self, state: State) -> int:
        """The highest version of which P has told Q."""
        return state.opener

    def accepts(self, state: State, arbitrator: int, side: int) -> bool:
        """The arbitrator votes for this side if its question arrives now."""
        return not (state.p_votes | state.q_votes) & arbitrator

    def wrong(self, state: State) -> str:
        """I1: both ends have won the same pair and epoch."""
        return "both won" if state.p_won and state.q_won else ""

    def skewed(self, state: State) -> bool:
        """Not I4: Q's group is neither P's nor the one P has proposed."""
        return state.responder not in (state.opener, state.next)

    def stranded(self, state: State) -> bool:
        """P crashes now and nothing more of it arrives: Q, which suspects it and which all others answer, loses."""
        after = state._replace(crashed=state.crashed | self.p, q_asked=(state.responder,))
        yes = sum(bit for bit in self.bits if not after.crashed & bit and self.accepts(after, bit, self.q))
        return not self.enough(after.q_asked, yes)

    def at_risk(self, state: State) -> bool:
        """As ``stranded``, but of what P had sent some may still arrive, whatever is worst for Q."""
        seen = [state._replace(crashed=state.crashed | self.p)]
        for reached in seen:
            if self.stranded(reached):
                return True
            seen += [after for _, after in self.arrivals(reached) if after not in seen]
        return False

    def enough(self, versions: Versions, yes: int) -> bool:
        """These arbitrators are a majority of every one of the groups."""
        known = self._enough.get(versions)
        if known is None:
            rule = reduce(joint, [weighted(self._letters[version - 1]) for version in versions])
            sets = (
                frozenset(name for bit, name in zip(self.bits, self.names, strict=True) if bit & yes) for yes in range(2 * self.bits[-1])
            )
            known = self._enough[versions] = tuple(rule.enough(names) for names in sets)
        return known[yes]

    def group(self, versions: Versions) -> int:
        """All members of any of the groups."""
        return reduce(int.__or__, (self._groups[version] for version in versions), 0)

    def _ask_self(self, state: State, side: int) -> State:
        return self._voted(state, side, side) if self.prompt and self.accepts(state, side, side) else state

    def _votes(self, state: State, bit: int, name: str) -> Iterator[Move]:
        """A question reaches this arbitrator for the first time. Asked again it says the same again."""
        if self.group(state.p_asked) & bit & ~state.p_votes and self.accepts(state, bit, self.p):
            yield f"{name} votes for P", self._voted(state, bit, self.p)
        if self.group(state.q_asked) & bit & ~state.q_votes and self.accepts(state, bit, self.q):
            yield f"{name} votes for Q", self._voted(state, bit, self.q)

    def _voted(self, state: State, bit: int, side: int) -> State:
        lives = not state.crashed & side
        if side == self.p:
            votes = state.p_votes | bit
            return state._replace(p_votes=votes, p_won=state.p_won or (lives and self.enough(state.p_asked, votes)))
        votes = state.q_votes | bit
        return state._replace(q_votes=votes, q_won=state.q_won or (lives and self.enough(state.q_asked, votes)))


class JointModel(PairModel):
    """Ring 5.3: P needs both majorities from its ArbUpgrd until Q has confirmed; Q adopts on ArbUpgrd."""

    name = "joint"

    def needs(self, state: State) -> Versions:
        return (state.opener, state.next) if state.next else (state.opener,)

    def changes(self, state: State) -> Iterator[Move]:
        if state.next:
            if self.confirmed(state):
                yield f"P switches to {state.next}", state._replace(opener=state.next, next=0)
        elif state.opener < self.last:
            yield f"P sends ArbUpgrd {state.opener + 1}", state._replace(next=state.opener + 1)

    def adoptable(self, state: State) -> Iterator[int]:
        if self.told(state) > state.responder:
            yield state.responder + 1

    def told(self, state: State) -> int:
        return max(state.opener, state.next)

    def confirmed(self, state: State) -> bool:
        """An ArbUpgrdAck that P takes is under way: Q has sent one for each version it adopted."""
        return state.responder >= state.next


class NaiveModel(PairModel):
    """P switches at once and tells Q (D14: unsafe)."""

    name = "naive"

    def changes(self, state: State) -> Iterator[Move]:
        if state.opener < self.last:
            yield f"P switches to {state.opener + 1}", state._replace(opener=state.opener + 1)


class ProposalModel(PairModel):
    """Ring 5.8, paper 000, IV-B: P asks its group to promise the next version, then switches at once and tells Q."""

    name = "proposal"

    def changes(self, state: State) -> Iterator[Move]:
        if state.next:
            if self.enough((state.opener,), state.promised[state.next - 2]):
                yield f"P switches to {state.next}", state._replace(opener=state.next, next=0)
        elif state.opener < self.last:
            yield f"P proposes {state.opener + 1}", state._replace(next=state.opener + 1)

    def arrivals(self, state: State) -> Iterator[Move]:
        yield from super().arrivals(state)
        for version in range(2, max(state.opener, state.next) + 1):
            promised = state.promised[version - 2]
            for bit, name in zip(self.bits, self.names, strict=True):
                if self._groups[version - 1] & bit & ~promised & ~state.crashed and self.promises(state, bit):
                    after = (*state.promised[: version - 2], promised | bit, *state.promised[version - 1 :])
                    yield f"{name} promises {version}", state._replace(promised=after)

    def promises(self, state: State, arbitrator: int) -> bool:
        """Unless it voted for Q. The other reason to refuse, a promise to Q, cannot be: only the opener proposes (D7)."""
        return not state.q_votes & arbitrator

    def accepts(self, state: State, arbitrator: int, side: int) -> bool:
        return super().accepts(state, arbitrator, side) and not (side == self.q and self.stale(state, arbitrator))

    def stale(self, state: State, arbitrator: int) -> bool:
        """It has promised P a later version than that of Q's question."""
        (asked,) = state.q_asked
        return any(promised & arbitrator for promised in state.promised[asked - 1 :])


VARIANTS: Final[Mapping[str, type[PairModel]]] = {model.name: model for model in (JointModel, NaiveModel, ProposalModel)}


class Found(Struct, frozen=True, kw_only=True):
    """What there is among all reachable states."""

    states: int
    both_win: int  # states in which both have won
    skewed: int  # states that break I4
    before: int  # states in which no process has suspected or crashed yet
    stranded: int  # of those: a crash of P now, and nothing more of it arrives, costs the healthy Q its membership
    at_risk: int  # of those: it may, depending on what of P still arrives
    complete: bool  # every reachable state was visited
    path: tuple[str, ...]  # the shortest way to a state in which both have won


def census(model: PairModel) -> Found:
    """Visit every state of a model and count."""
    both_win = skewed = before = stranded = at_risk = 0

    def count(state: State) -> str:
        nonlocal both_win, skewed, before, stranded, at_risk
        both_win += bool(model.wrong(state))
        skewed += model.skewed(state)
        if not (state.p_asked or state.q_asked or state.crashed):
            before += 1
            stranded += model.stranded(state)
            at_risk += model.at_risk(state)
        return ""

    walk = explore(model.first, model.moves, count, states_max=STATES_MAX)
    path = explore(model.first, model.moves, model.wrong, states_max=STATES_MAX).path if both_win else ()
    return Found(
        states=walk.states,
        both_win=both_win,
        skewed=skewed,
        before=before,
        stranded=stranded,
        at_risk=at_risk,
        complete=walk.complete,
        path=path,
    )


def explored(variant: str, groups: Groups, *, crashes: int = 1, prompt: bool = True) -> Found:
    """All of one variant and one shape."""
    return census(VARIANTS[variant](groups, crashes=crashes, prompt=prompt))
