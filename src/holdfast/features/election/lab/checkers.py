"""E1, E2, E6, E7 and E9 to E13, looked at after every event; E3 where a run promises it.  Spec: election 7, 1 (A1 to A7).

E4, E5 and the second half of E13 are asked when the faults are over (``settled``). E8 counts messages of an election without failures, so
it is an experiment (L1) and a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from holdfast.events import Event
from holdfast.features.election.lab.clients import Stopped, Told
from holdfast.features.election.lab.ranking import hash_of, rank_of
from holdfast.features.election.lab.watch import ElectionChecker, ElectionWatch, Life
from holdfast.features.election.protocol.facts import Elected, Initiated, Nominated, Tentative
from holdfast.features.election.protocol.shown import Role, State
from holdfast.host import NodeId
from holdfast.lab.world import World

ROUNDING = 1e-6  # seconds; clocks with rates and offsets round, and every timer of the lab is 1e-9 s late
Pair = tuple[int, NodeId]


def is_larger(watch: ElectionWatch, name: str, one: Pair, other: Pair) -> bool:
    """Reigns are ordered by term; without a majority, of two with one term that of the better rank is larger, and then that of the newer
    life (D22)."""
    if one[0] != other[0] or watch.fencing(name):
        return one[0] > other[0]
    first, second = hash_of(name, one[1].name), hash_of(name, other[1].name)
    return first < second if first != second else one[1].boot > other[1].boot


class TermUnique(ElectionChecker):
    """E1: with fencing no two members ever lead under one term of a name."""

    name = "E1 term-unique"

    def __init__(self, watch: ElectionWatch) -> None:
        super().__init__(watch)
        self._led: dict[tuple[str, int], NodeId] = {}

    def heard(self, world: World, life: Life, event: Event) -> None:
        if isinstance(event, Elected) and self.watch.fencing(event.name):
            other = self._led.setdefault((event.name, event.term), life.me)
            if other != life.me:
                self.fail(f"{other} and {life} led {event.name!r} under term {event.term}")


class Monotone(ElectionChecker):
    """E2: what a member promised, and the reign that it knows, never fall; with fencing, a reign that was named after another was active
    has a higher term (A3)."""

    name = "E2 monotone"

    def __init__(self, watch: ElectionWatch) -> None:
        super().__init__(watch)
        self._active: dict[str, int] = {}  # the highest term that was ever active
        self._named: dict[tuple[str, NodeId, int], int] = {}  # and what it was when a member was named

    def changed(self, world: World, life: Life, before: State | None, now: State) -> None:
        if before is None:
            return
        if now.promised < before.promised:
            self.fail(f"{life} had promised {before.promised} of {now.name!r}, and now {now.promised}")
        if before.active is None:
            return
        if now.active is None:
            self.fail(f"{life} forgot the reign {before.active[0]} of {now.name!r}")
            return
        was, here = before.active[:2], now.active[:2]
        if here != was and not is_larger(self.watch, now.name, here, was):
            self.fail(f"{life} went from the reign {was} of {now.name!r} back to {here}")
        if here == was and before.active[2] and not now.active[2]:
            self.fail(f"for {life} the reign {was} of {now.name!r} was over, and is not any more")

    def heard(self, world: World, life: Life, event: Event) -> None:
        if isinstance(event, Tentative):
            self._named.setdefault((event.name, life.me, event.term), self._active.get(event.name, 0))
        elif isinstance(event, Elected) and self.watch.fencing(event.name):
            highest = self._named.get((event.name, life.me, event.term), 0)
            if event.term <= highest:
                self.fail(f"{life} leads {event.name!r} under {event.term}, and was named when {highest} had been active")
            self._active[event.name] = max(self._active.get(event.name, 0), event.term)


class Supported(ElectionChecker):
    """E6: with fencing, who leads has the acceptance of enough distinct names, or slots, for this term."""

    name = "E6 supported"

    def changed(self, world: World, life: Life, before: State | None, now: State) -> None:
        began = now.role is Role.ACTIVE and (before is None or before.role is not Role.ACTIVE or before.term != now.term)
        if not began or not self.watch.fencing(now.name):
            return
        if len(now.acks) < now.needed:
            self.fail(f"{life} leads {now.name!r} with {len(now.acks)} of {now.needed} acceptances")
        if self.watch.manners[now.name].by_members:
            known = len(life.host.node.use(self.lists).known_names())
            if now.needed < known // 2 + 1:
                self.fail(f"{life} leads {now.name!r} by {now.needed} acceptances; it knows {known} names")

    def __init__(self, watch: ElectionWatch, lists: type) -> None:
        super().__init__(watch)
        self.lists = lists  # which machine of a member is its ``Lists``


class NotExcluded(ElectionChecker):
    """E7: no answer that was used excludes who is named in the end. E9: it is the best of the answers, whatever their order."""

    name = "E7 not-excluded"

    def __init__(self, watch: ElectionWatch, *, sticky: bool) -> None:
        super().__init__(watch)
        self._sticky = sticky
        self.judged = 0

    def heard(self, world: World, life: Life, event: Event) -> None:
        if not isinstance(event, Nominated) or not event.final:
            return
        manner, account = self.watch.manners.get(event.name), life.elections.last(event.name)
        if manner is None or account is None or account.eid != event.eid or life.elections.manner(event.name) != manner:
            return
        excluded = {member for answer in account.answers.values() for member in answer.excluded} if manner.prefers else set()
        if event.nominee in excluded:
            self.fail(f"{life} named {event.nominee}, which an answer excludes")
        offered = {member for answer in account.answers.values() for member in answer.candidates} - excluded
        offered &= set(account.candidates)  # Without those that said that they stand no more, and those that were silent several times.
        if not self._sticky and not manner.rank and offered:
            self.judged += 1
            best = min(offered, key=lambda member: rank_of(event.name, member))
            if best.name != event.nominee.name:
                self.name = "E9 any-order"
                self.fail(f"{life} named {event.nominee}; the best of all answers is {best}")


class Superseded(ElectionChecker):
    """E10: who knows a larger reign than its own does not say that it leads."""

    name = "E10 superseded"

    def changed(self, world: World, life: Life, before: State | None, now: State) -> None:
        if now.active is None or not life.elections.is_leader(now.name):
            return
        mine, known = (now.term, life.me), now.active[:2]
        if known != mine and is_larger(self.watch, now.name, known, mine):
            self.fail(f"{life} says that it leads {now.name!r} under {now.term}, and knows of {known}")


class FewRestarts(ElectionChecker):
    """E11: an election restarts at most y times because its set was empty; and it was: c+1 answers were there, and each of them leaves out
    the really unhealthy alone (H410). What a liar says of others is no fault of the member that asked it (H445)."""

    name = "E11 few-restarts"

    def __init__(self, watch: ElectionWatch, y: int) -> None:
        super().__init__(watch)
        self._y = y

    def heard(self, world: World, life: Life, event: Event) -> None:
        if isinstance(event, Initiated):
            counts: dict[str, int] = life.kept.setdefault(self.name, {})
            counts[event.name] = counts.get(event.name, 0) + 1 if event.why == "empty" else 0
            if counts[event.name] > self._y:
                self.fail(f"{life} restarted the election of {event.name!r} {counts[event.name]} times, y began at {self._y}")
            if event.why == "empty":
                self._was_empty(life, event.name)

    def _was_empty(self, life: Life, name: str) -> None:
        before = life.finished(name)
        if before is None:
            return
        if len(before.answers) <= before.c:
            self.fail(f"{life} restarted the election of {name!r} after {len(before.answers)} of {before.c + 1} answers")
        for member, answer in before.answers.items():
            healthy = [] if member in self.watch.liars else [str(each) for each, value in answer.excluded.items() if value <= 0]
            if healthy:
                self.fail(f"{life} restarted the election of {name!r}, and {member} left out {', '.join(healthy)}, which it holds healthy")


class ToldInTime(ElectionChecker):
    """E12: a client is told at most ``hold`` ahead, by an agent that leads under that token and is on time; after the end never again."""

    name = "E12 told"

    def __init__(self, watch: ElectionWatch) -> None:
        super().__init__(watch)
        self._over: set[tuple[NodeId, str, int]] = set()
        self.told = 0

    def heard(self, world: World, life: Life, event: Event) -> None:
        if isinstance(event, Stopped):
            self._over.add((life.me, event.name, event.token))
        if not isinstance(event, Told):
            return
        self.told += 1
        ahead = event.deadline - life.host.now
        if ahead > event.length + ROUNDING:
            self.fail(f"the client of {life} was told {ahead:g} s ahead; its hold is {event.length:g} s")
        if (life.me, event.name, event.token) in self._over:
            self.fail(f"the client of {life} was told of {event.token} again, which it had lost")
        state = life.elections.state(event.name)
        if state is None or state.role is not Role.ACTIVE or state.term != event.token:
            self.fail(f"the client of {life} was told that it leads {event.name!r} under {event.token}; the agent is {state}")


class Asked(ElectionChecker):
    """E13: a leader has a client that asked."""

    name = "E13 asked"

    def changed(self, world: World, life: Life, before: State | None, now: State) -> None:
        if now.role is Role.ACTIVE and not now.stands:
            self.fail(f"{life} leads {now.name!r}, and none of its clients asks for it")


class BestRanked(ElectionChecker):
    """E3: where c bounds what lists lack over the time of an election and nothing fails, the leader is the best-ranked candidate."""

    name = "E3 best-ranked"

    def __init__(self, watch: ElectionWatch, best: Callable[[str], NodeId | None], c: int, since: float = -inf) -> None:
        """``best``: of all who stand, all the time. Elections that began before ``since`` are not judged."""
        super().__init__(watch)
        self._best, self._c, self._since = best, c, since
        self._began: dict[tuple[NodeId, str, int], float] = {}
        self.judged = 0

    def heard(self, world: World, life: Life, event: Event) -> None:
        if isinstance(event, Initiated):
            self._began[life.me, event.name, event.eid] = world.now
        elif isinstance(event, Nominated) and event.final and self._began.get((life.me, event.name, event.eid), -inf) >= self._since:
            best, account = self._best(event.name), life.elections.last(event.name)
            if account is None or account.c < self._c:
                return  # Its list is too short for that c: no promise (CBoundUnusable).
            self.judged += 1
            if best is not None and event.nominee != best:
                self.fail(f"{life} named {event.nominee} for {event.name!r}; the best-ranked is {best}")


def checkers_of(watch: ElectionWatch, *, sticky: bool, y: int, lists: type) -> Sequence[ElectionChecker]:
    """All that hold in every run."""
    return [
        TermUnique(watch),
        Monotone(watch),
        Supported(watch, lists),
        NotExcluded(watch, sticky=sticky),
        Superseded(watch),
        FewRestarts(watch, y),
        ToldInTime(watch),
        Asked(watch),
    ]
