"""One group of `election-grid`: a process for each member, one for the field between them, and elections one after another.

All four variants are elected by the same members in turn, each under a name of its own; the members are named so that they have the same
place by hash in all four, because it is the best-ranked that lose most. Elections of one number have one initiator.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count, pairwise
from random import Random
from typing import Any

from benchmarks.harness import ROOT, show_progress
from benchmarks.ring_fleet import NeverHappened, now
from holdfast.features.election.lab.paper import PITCH, RANGE, Setting
from holdfast.features.election.lab.recorded import Held, Loss, Point
from holdfast.features.election.lab.runs import AFTER
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.features.election.protocol.ranks import hash_of
from holdfast.lab.topology import Topology, grid
from holdfast.wire.keys import generate

PATIENCE = 120.0  # seconds in which members list each other, and see who stands
LATEST = 60.0  # seconds after which an election has come to nothing
REST = 0.3  # seconds between two rounds: twice as long as a datagram may take over three hops
LOOK = 0.05  # seconds between two looks at the initiator; instants are the members' own
LOOK_ALL = 0.1  # the same at all, once it has finished
HASH_BITS = 64
BOOT = 1_800_000_000_000
SEEDS = 3

Places = Mapping[str, tuple[float, float]]


class Side:
    """One process that is asked by lines."""

    def __init__(self, module: str, plan: Mapping[str, Any]) -> None:
        self._name = f"{module} {plan.get('name', '')}".strip()
        command = [sys.executable, "-m", module]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.say(plan)

    def say(self, words: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # ``heard`` says that it ended.
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise NeverHappened(f"{self._name} ended with {self._process.wait()}; what it said is above")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, **order: Any) -> dict[str, Any]:
        self.say(order)
        return self.heard()

    def end(self) -> None:
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class GridGroup:
    """Members by name, the best-ranked first."""

    def __init__(self, setting: Setting, places: Places, *, f: int, period: float) -> None:
        self._setting, self._names = setting, list(places)
        self._field: Side | None = None
        self._members: dict[str, Side] = {}
        self._epoch = 0
        try:
            self._begin(places, f, period)
        except BaseException:
            self.end()
            raise

    def form(self, warm_up: float) -> None:
        """They join while nothing is lost. Then the drop begins, and gossip lives with it for a while, until it has an opinion."""
        self._all(do="join")
        self._all_hold("each lists all", do="whole", count=len(self._names))
        self._stand()
        self._all_hold("each sees all stand", do="ready")
        self._field_of.ask(do="drop", drop=self._setting.drop)
        time.sleep(warm_up)

    def hold(self, numbers: Sequence[int], end_at: float) -> Point:
        """The elections of these numbers, of each variant, or as many as there is time for."""
        found: list[Held] = []
        for number in numbers:
            if now() >= end_at:
                break
            show_progress(f"{self._setting}: election {number} of {numbers[-1] + 1}")
            self._stand()
            random = Random(f"{self._setting}/{number}")
            initiators = random.sample(self._names, len(self._names))
            turn = number % len(VARIANTS)
            found += [self._elect(variant, number, initiators) for variant in (*VARIANTS[turn:], *VARIANTS[:turn])]
        return Point(self._setting, found, Loss(**self._field_of.ask(do="counts")))

    def end(self) -> None:
        for side in (*self._members.values(), *([] if self._field is None else [self._field])):
            side.end()

    # One election.

    def _elect(self, variant: str, number: int, initiators: Sequence[str]) -> Held:
        """By the first of these that can: a member that the group holds for dead begins none."""
        for initiator in initiators:
            begun = self._members[initiator].ask(do="elect", name=variant)["at"]
            if begun is not None:
                break
        else:
            raise NeverHappened(f"{self._setting}: no member can begin an election")
        reign = self._until_settled(variant, initiator, begun + LATEST)
        if reign is None:
            return Held(variant, number, initiator, False)
        time.sleep(AFTER)
        return self._held(variant, number, initiator, begun, reign)

    def _until_settled(self, variant: str, initiator: str, end_at: float) -> tuple[int, str] | None:
        """The initiator has finished, and all know the same reign."""
        while now() < end_at:
            if self._members[initiator].ask(do="look", name=variant)["running"]:
                time.sleep(LOOK)
                continue
            reigns = {None if found["active"] is None else tuple(found["active"]) for found in self._all(do="look", name=variant).values()}
            if len(reigns) == 1 and None not in reigns:
                term, leader = reigns.pop()  # type: ignore[misc]
                return int(term), str(leader)
            time.sleep(LOOK_ALL)
        return None

    def _held(self, variant: str, number: int, initiator: str, begun: float, reign: tuple[int, str]) -> Held:
        term, leader = reign
        told = self._all(do="told", name=variant)
        learnt = [found["learnt"][str(term)] for found in told.values() if str(term) in found["learnt"]]
        lackers = max(sum(name not in found["listed"] for found in told.values()) for name in self._names)
        casts = sorted((at, who) for found in told.values() for at, who in found["casts"])
        return Held(
            variant, number, initiator, True, round(max(learnt) - begun, 4), changes([who for _, who in casts]), len(casts),
            self._names.index(leader), lackers,
        )  # fmt: skip

    def _stand(self) -> None:
        """What was said in the last round must not be heard in the next one: a reign of then would be larger than that of now."""
        self._all(do="rest")
        time.sleep(REST)
        self._epoch += 1
        self._all(do="stand", epoch=self._epoch)

    # Its processes.

    def _begin(self, places: Places, f: int, period: float) -> None:
        plan = {"places": places, "reach": RANGE, "seed": f"{self._setting}"}
        self._field = Side("benchmarks.election_grid_field", plan)
        addresses = self._field.heard()
        boots = {name: BOOT + number for number, name in enumerate(self._names)}
        field, key = neighbours_of(places), generate()
        for name in self._names:
            bind, public = addresses[name]
            plan = {
                "name": name, "bind": bind, "advertise": public, "boots": boots, "key": key, "period": period, "c": self._setting.c, "f": f,
                "seeds": [addresses[other][1] for other in self._names[-SEEDS:]],
                "neighbours": {other: addresses[other][1] for other in field[name]},
            }  # fmt: skip
            self._members[name] = Side("benchmarks.election_grid_member", plan)
        self._field.ask(do="attach", bound={name: member.heard()["bound"] for name, member in self._members.items()})

    @property
    def _field_of(self) -> Side:
        assert self._field is not None
        return self._field

    def _all(self, **order: Any) -> dict[str, dict[str, Any]]:
        """The same order to each, at once."""
        for member in self._members.values():
            member.say(order)
        return {name: member.heard() for name, member in self._members.items()}

    def _all_hold(self, what: str, **order: Any) -> None:
        for name, found in self._all(**order, within=PATIENCE).items():
            if found["at"] is None:
                raise NeverHappened(f"{self._setting}: not within {PATIENCE:g} s: {what}; {name}: {found['why']}")


@contextmanager
def formed(setting: Setting, places: Places, *, f: int, period: float, warm_up: float) -> Iterator[GridGroup]:
    """A group that ends with the block."""
    group = GridGroup(setting, places, f=f, period=period)
    try:
        group.form(warm_up)
        yield group
    finally:
        group.end()


def changes(leaders: Sequence[str]) -> int:
    """Of who says LEADER; the first one is one."""
    return sum(before != after for before, after in pairwise(["", *leaders]))


def alike(members: int) -> list[str]:
    """Names that have the same place by hash in the elections of all four variants, the best first: of so many equal parts of all hashes,
    each is in the same one four times."""
    found: dict[int, str] = {}
    for name in (f"n{number}" for number in count()):
        parts = (hash_of(variant, name) * members >> HASH_BITS for variant in VARIANTS)
        part = next(parts)
        if all(other == part for other in parts):
            found.setdefault(part, name)
        if len(found) == members:
            return [found[part] for part in range(members)]
    raise AssertionError("there is no end of names")


def placed(names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """On a grid; who stands where is drawn, once for all groups. In the order of the names."""
    points = grid(Random("election-grid").sample(list(names), len(names)), pitch=PITCH, reach=RANGE).points
    return {name: points[name] for name in names}


def neighbours_of(places: Places) -> dict[str, tuple[str, ...]]:
    """Who hears whom."""
    return Topology(places, RANGE).neighbours
