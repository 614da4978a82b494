"""Nothing is lost and nothing is made: weight and portions of every instance, after every event.  Spec: limits 7 (RL1 to RL3), D1, D4.

Each amount is held by a member or on its way from one to another: given by the one, and not taken by the other. Both are read from their
ledgers. Of an instance that a member has left, because it died or began another one, the sums are looked at no more: what that one held is
gone with it. That no member takes what was not given to it holds between the others all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.features.limits.protocol.config import WEIGHT
from holdfast.features.limits.protocol.pushsum import W_KEY, PushSum
from holdfast.host import NodeId, ViewId
from holdfast.kit.ledger import Ledger
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

Read = Callable[[LabHost], PushSum | None]
Amounts = Mapping[int, int]

NONE: Amounts = {}


class Conserved(Checker):
    """RL1, RL2 and RL3, for all instances that are still whole."""

    name = "RL1 weight"

    def __init__(self, read: Read) -> None:
        self._read = read
        self._of: dict[NodeId, PushSum] = {}  # what each life that lives gossips in
        self._wholes: dict[ViewId, Whole] = {}
        self.looks = 0  # at instances of two members and more

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            for gone in [life for life in self._of if _is_over(world, life)]:
                self._leave(gone)
            return
        sums = None if host.dead else self._read(host)
        former = self._of.get(host.me)
        if sums is not former:
            self._leave(host.me)
            if sums is not None:
                self._of[host.me] = sums
                self._wholes.setdefault(sums.inst, Whole(sums.inst)).enter(host.me, sums)
        if sums is not None:
            whole = self._wholes[sums.inst]
            self.looks += whole.size > 1
            self._check(whole, host.me)

    def _leave(self, life: NodeId) -> None:
        former = self._of.pop(life, None)
        if former is not None:
            self._wholes[former.inst].leave(life)

    def _check(self, whole: Whole, life: NodeId) -> None:
        taken = whole.look(life)
        if taken:
            self.fail_as("RL3 no double take", taken)
        if whole.is_left:
            return
        weight, portions, reports = whole.sums()
        if weight != whole.size * WEIGHT:
            self.fail(f"{whole.inst}: the weights of {whole.size} members are {weight / WEIGHT:.9f} in all")
        if portions != reports:
            odd = min(key for key in portions.keys() | reports.keys() if portions.get(key, 0) != reports.get(key, 0))
            self.fail_as("RL2 demand", f"{whole.inst}: {portions.get(odd, 0)} of {odd} is there, {reports.get(odd, 0)} was reported")

    def fail_as(self, name: str, what: str) -> None:
        former, self.name = self.name, name
        try:
            self.fail(what)
        finally:
            self.name = former


class Whole:
    """One instance, and those that are in it. Its sums are kept, and moved by what differs after an event: most events move nothing."""

    def __init__(self, inst: ViewId) -> None:
        self.inst = inst
        self.is_left = False
        self._members: dict[NodeId, PushSum] = {}
        self._there = Sum()  # what members hold, and what is between two of them: weight and portions
        self._reported = Sum()

    @property
    def size(self) -> int:
        return len(self._members)

    def enter(self, life: NodeId, sums: PushSum) -> None:
        self._members[life] = sums

    def leave(self, life: NodeId) -> None:
        self.is_left = True
        del self._members[life]
        self._there, self._reported = Sum(), Sum()

    def look(self, life: NodeId) -> str:
        """Something happened to this member. What of it breaks RL3."""
        mine = self._members[life]
        if not self.is_left:
            self._there.put(life, {W_KEY: mine.w, **mine.p})
            self._reported.put(life, dict(mine.rep))
        for other, theirs in self._members.items():
            if other != life:
                for giver, gives, taker, takes in ((life, mine, other, theirs), (other, theirs, life, mine)):
                    moving = on_the_way(gives.ledgers.get(taker), takes.ledgers.get(giver))
                    if isinstance(moving, str):
                        return f"{self.inst}, from {giver} to {taker}: {moving}"
                    if not self.is_left:
                        self._there.put((giver, taker), moving)
        if not self.is_left:
            for peer, ledger in mine.ledgers.items():  # of members that have not begun
                if peer not in self._members:
                    self._there.put((life, peer), dict(ledger.outstanding))
        return ""

    def sums(self) -> tuple[int, Amounts, Amounts]:
        """All weight, all portions by limit, and all that was reported."""
        portions = dict(self._there.total)
        weight = portions.pop(W_KEY, 0)
        return weight, portions, self._reported.total


class Sum:
    """Amounts of several, by key, and their sum, in which no zero stands."""

    def __init__(self) -> None:
        self.total: dict[int, int] = {}
        self._parts: dict[object, Amounts] = {}

    def put(self, whose: object, amounts: Amounts) -> None:
        """``amounts`` are not changed later."""
        former = self._parts.get(whose, NONE)
        if amounts == former:
            return
        self._parts[whose] = amounts
        total = self.total
        for sign, part in ((1, amounts), (-1, former)):
            for key, amount in part.items():
                total[key] = total.get(key, 0) + sign * amount
        for key in (*amounts, *former):
            if not total.get(key, 1):
                del total[key]


def on_the_way(given: Ledger | None, taken: Ledger | None) -> Amounts | str:
    """What the one gave and the other one has not taken; or what is wrong with that."""
    if given is not None and taken is not None and taken.taken == given.acked and not given.outstanding:
        return NONE  # as it is most of the time
    moving = {} if given is None else dict(given.outstanding)
    if taken is None:
        return moving
    known, acked = (0, 0) if given is None else (given.given, given.acked)
    if taken.taken > known:
        return f"number {taken.taken} was taken, and {known} is the newest that was given"
    if taken.taken < acked:
        return f"number {acked} is acknowledged, and {taken.taken} is the newest that was taken"
    for seq, amounts in taken._entries:
        if seq > acked:
            for key, amount in amounts.items():
                moving[key] = moving.get(key, 0) - amount
    short = min((key for key, amount in moving.items() if amount < 0), default=None)
    return moving if short is None else f"{-moving[short]} more of {short} was taken than given"


def residue_of(members: Mapping[NodeId, PushSum]) -> int:
    """What is missing of weight and demand, or is there twice, in an instance that no member has left (RL1, RL2): 0."""
    inst = next(iter(members.values())).inst
    assert all(sums.inst == inst for sums in members.values())
    whole = Whole(inst)
    for life, sums in members.items():
        whole.enter(life, sums)
    for life in members:
        assert not whole.look(life), "RL3: what was taken was given"
    weight, portions, reports = whole.sums()
    differences = [portions.get(key, 0) - reports.get(key, 0) for key in portions.keys() | reports.keys()]
    return abs(weight - whole.size * WEIGHT) + sum(map(abs, differences))


def _is_over(world: World, life: NodeId) -> bool:
    host = world.nodes[life.name]
    return host.me != life or host.dead
