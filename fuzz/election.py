"""Fuzz target of elections: ``python -m fuzz.election --inputs N --seed S``.  Spec: election 3, A1, A2; foundation H87; issue 18.

A group in the lab that elects leaders, of which one member lies: any field of any message, sealed with the right key, from the address and
the life that it has; answers to questions that it was asked above all. After every lie an oracle looks: no member raised anything, no term
is further ahead than an honest clock can come to (H87), no queue grew beyond its limit, and in mode ``seats`` no term has two leaders. When
the lies are over and the liar is gone, one of the others leads each name, and all know it: at worst it is not the best-ranked.
The same seed gives the same runs; what is bad is named with the line that shows it again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TextIO, Union

import msgspec
from msgspec import Struct

from fuzz.shapes import Harvest, Shapes
from holdfast.errors import ConfigError, Unavailable
from holdfast.events import Event
from holdfast.features.election.lab.checkers import checkers_of
from holdfast.features.election.lab.clients import Client
from holdfast.features.election.lab.lists import Detector, ScriptedLists, board_of
from holdfast.features.election.lab.settled import disagreement
from holdfast.features.election.lab.watch import ElectionWatch
from holdfast.features.election.protocol.config import XY_MAX, ElectionConfig
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Elected
from holdfast.features.election.protocol.manner import VARIANTS, Manner, manner
from holdfast.features.election.protocol.messages import (
    TYPES,
    Crown,
    Leader,
    LeaderAck,
    NotifyLeader,
    NotifyNack,
    Query,
    Response,
    Standing,
    Unhealthy,
)
from holdfast.features.election.protocol.rules import Rules
from holdfast.host import Address, Host, Lists, Machine, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.world import World
from holdfast.node import life_of

NAMES = ("alpha", "beta")
SIZES = (4, 5, 5, 7)  # members, of which one lies
SEATS = 3  # the first three; the liar is the last member
LENGTH = 1.0
RHO = 0.02
FOUNDED = 4.5
AHEAD_MAX = 1 << 40  # H87, in milliseconds
NOMINATIONS = 8  # of one member within a millisecond: each is one above what it believed (D5), and an answer comes from each of six others
QUIET = 90.0  # seconds until the others have a leader again
NAMES_MAX = 1024
PROGRESS_RUNS = 100
SHOWN_MAX = 10
_BODIES: Any = Union[TYPES]  # noqa: UP007 - made at run time
_decode = msgspec.msgpack.Decoder(_BODIES).decode


class Misbehaved(Exception):
    """A rule does not hold."""


class LyingRun:
    """One group, one liar, one history."""

    rules = Rules()  # a test takes one out

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.seed, self.random, self.counts = seed, Random(seed), Counter[str]()
        self._trace = trace
        self.names = [f"n{number}" for number in range(self.random.choice(SIZES))]
        self.mode = self.random.choice(("none", "seats", "members"))
        self.manners: dict[str, Manner] = {name: manner(self.random.choice(VARIANTS), self.mode) for name in NAMES}
        self._slots = tuple(Slot(number, name, Address(name, PORT)) for number, name in enumerate(self.names[:SEATS]))
        self._led: dict[tuple[str, int], NodeId] = {}
        self.liar = NodeId(self.names[-1], 1)
        watch = ElectionWatch(self.manners, [self.liar])
        # What a liar says of terms and reigns is believed, as far as H87 goes: E2 and the rest hold all the same.
        held = [each for each in checkers_of(watch, sticky=True, y=5, lists=ScriptedLists) if not each.name.startswith(("E1 ", "E6"))]
        self.world = World(seed, self._build, link=Link(Uniform(0.001, 0.02)), checkers=[watch, *held])
        self.world.listeners.append(self._on_event)
        for name in self.names:
            self.world.start(name)
        Detector(self.world, board_of(self.world), down=2.0, settling=1.0)
        assert self.world.nodes[self.names[-1]].me == self.liar
        self.harvest = Harvest()
        self.world.network.lose_if(self._note, self)
        self.shapes = Shapes(self.random, self.harvest, self.world.nodes[self.names[0]].wall)
        self.eids: dict[str, Query] = {}  # by asker: the last question that the liar heard

    def play(self) -> None:
        self.world.run(FOUNDED)
        for name in self.names:
            for led in NAMES:
                self._stand(name, led)
        self.world.run(self.world.now + 3.0)
        for _ in range(self.random.randint(30, 100)):
            victim = self.random.choice(self.names[:-1])
            if self.random.random() < 0.4:
                self._say_anything(victim)
            else:
                self._deliver(victim, self._lie(victim))
            if self.random.random() < 0.3:
                self._elect()
            if self.random.random() < 0.6:
                self.world.run(self.world.now + self.random.choice((0.01, 0.1, 0.4, 1.5)))
            self._look()
        self._end()

    # Lies.

    def _note(self, source: str, target: str, message: Message) -> bool:
        if isinstance(message, TYPES):
            self.harvest.note(message)
            if isinstance(message, Query) and target == self.liar.name:
                self.eids[source] = message
                self.world.soon(lambda: self._answer(source))
        return False

    def _answer(self, asker: str) -> None:
        """The liar was asked: it says something else before its own machine can answer."""
        if asker in self.names[:-1] and self.random.random() < 0.7:
            self._deliver(asker, self._response(asker))

    def _say_anything(self, victim: str) -> None:
        body = msgspec.msgpack.encode(self.shapes.message(self.random.choice(TYPES)))
        try:
            message: Message = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.counts["malformed"] += 1  # Where it comes from a socket, the codec drops and counts it (fuzz.wire).
            return
        self._deliver(victim, message)

    def _lie(self, victim: str) -> Message:
        random, name = self.random, self.random.choice(NAMES)
        made, term, eid = self._manner(name), self._term(name, victim), random.randrange(50)
        return random.choice((
            self._response(victim),
            self._response(victim),
            Query(name, made, eid, random.randint(0, XY_MAX), random.randint(0, XY_MAX), term, random.random() < 0.2),
            NotifyLeader(name, made, eid, term, random.random() < 0.5),
            NotifyNack(name, made, eid, term, random.random() < 0.5),
            Leader(name, made, term, self._member(), random.random() < 0.5),
            LeaderAck(name, made, term, random.random() < 0.5, self._term(name, victim), random.choice((0, 1, 5, 10_000))),
        ))  # fmt: skip

    def _response(self, victim: str) -> Response:
        random = self.random
        asked = self.eids.get(victim)
        name = asked.name if asked is not None and asked.name in NAMES else random.choice(NAMES)
        address = Address("nowhere", 1)
        candidates = tuple(Standing(self._member(), random.choice((b"", b"\x00", b"\xff" * 8)), random.choice((0, 1, 1 << 40)), address)
                           for _ in range(random.choice((0, 1, 2, XY_MAX))))  # fmt: skip
        excluded = tuple(Unhealthy(self._member(), random.choice((0.0, 1.0, 1e15))) for _ in range(random.choice((0, 0, 2, XY_MAX))))
        active = None if random.random() < 0.6 else Crown(self._term(name, victim), self._member())
        busy = None if random.random() < 0.7 else self._member()
        return Response(
            name, self._manner(name), 0 if asked is None else asked.eid, candidates, excluded, self._term(name, victim), active,
            random.random() < 0.5, random.choice((0, 1, 5, 10_000)), busy, random.random() < 0.5,
        )  # fmt: skip

    def _manner(self, name: str) -> Manner:
        return self.manners[name] if self.random.random() < 0.9 else manner(self.random.choice(VARIANTS), "none", "tag:lie")

    def _member(self) -> NodeId:
        """Mostly a real one; also former and future lives, and strangers."""
        name = self.random.choice((*self.names, *self.names, "x", "y" * 64))
        return NodeId(name, self.random.choice((1, 1, 1, 1, 0, 2, 1 << 40)))

    def _term(self, name: str, victim: str) -> int:
        known = self.world.nodes[victim].node.use(Elections).highest(name)
        wall = int(self.world.nodes[victim].wall() * 1000)
        far = (wall + AHEAD_MAX - 1, wall + AHEAD_MAX, wall + AHEAD_MAX + 1_000_000, (1 << 53) - 1)
        terms = [0, known - 1, known, known, known + 1, known + 2, wall, wall + 1000]
        return max(0, self.random.choice(far if self.random.random() < 0.1 else terms))

    def _deliver(self, victim: str, message: Message) -> None:
        host = self.world.nodes[victim]
        if host.dead or not host.running:
            return
        if self._trace is not None:
            self._trace(f"{self.world.now:.3f} {victim} <- {message}")
        self.counts[f"lie {type(message).__name__}"] += 1
        digest = host.node.digests.get(type(message), b"")
        self.world.step(host, lambda: host.node.receive(Address(self.liar.name, PORT), self.liar, life_of(host.me), digest, message))

    # What is true.

    def _elect(self) -> None:
        host, name = self.world.nodes[self.random.choice(self.names[:-1])], self.random.choice(NAMES)
        elections = host.node.use(Elections)
        if elections.candidates(name) and elections.is_leader(name) is False and self.random.random() < 0.5:
            self.world.step(host, lambda: _elect(elections, name))

    def _stand(self, place: str, name: str) -> None:
        host = self.world.nodes[place]
        client = Client(host, name, LENGTH)
        self.world.step(host, lambda: host.node.use(Elections).campaign(name, LENGTH, client, manner=self.manners[name]))

    def _build(self, host: Host) -> Sequence[Machine]:
        assert isinstance(host, LabHost)
        lists = ScriptedLists(host, board_of(host.world))
        broadcast = Broadcast(host, lists)
        exchange = Exchange(host, broadcast, ae_period=1.0)
        below: list[Machine] = [lists, broadcast, exchange]
        seats = None
        if self.mode == "seats":
            own = own_slot(self._slots, host.me.name, host.address)
            seats = Seats(host, self._slots, own, machine=host.me.name, rho=RHO, length_max=LENGTH)
            below.append(seats)
        config = ElectionConfig(timeout=0.2, hold=LENGTH)
        return [*below, Elections(host, lists, exchange, seats, config, broadcast=broadcast, rules=self.rules)]

    # The oracle.

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Elected) and self.mode == "seats" and host.me != self.liar:
            other = self._led.setdefault((event.name, event.term), host.me)
            if other != host.me:
                raise Misbehaved(f"{other} and {host.me} led {event.name!r} under term {event.term}")

    def _look(self) -> None:
        for name in self.names[:-1]:
            host = self.world.nodes[name]
            elections = host.node.use(Elections)
            most = int(host.wall() * 1000) + AHEAD_MAX + NOMINATIONS
            if len(elections.names()) > NAMES_MAX:
                raise Misbehaved(f"{name} knows {len(elections.names())} names")
            for led in elections.names():
                if elections.highest(led) > most:
                    raise Misbehaved(f"{name} has term {elections.highest(led)} of {led!r}, beyond what an honest clock comes to")

    def _end(self) -> None:
        """The liar is gone. One of the others leads each name."""
        self.world.crash(self.liar.name)
        self.world.bury(self.liar.name)
        end, why = self.world.now + QUIET, "never looked"
        while why and self.world.now < end:
            self.world.run(self.world.now + 1.0)
            why = next((found for name in NAMES if (found := disagreement(self.world, name, self.manners[name], _lists))), "")
        if why:
            raise Misbehaved(f"{QUIET:g} s after the last lie, {self.mode}: {why}")
        self.counts["settled"] += 1


def _elect(elections: Elections, name: str) -> None:
    with suppress(ConfigError, Unavailable):  # It takes part in nothing, or stands in another manner.
        elections.elect(name)


def _lists(host: LabHost) -> Lists:
    return host.node.use(ScriptedLists)


class Outcome(Struct):
    """Of all runs."""

    runs: int
    bad: int
    counts: Counter[str]
    failures: list[str]

    def as_dict(self) -> dict[str, object]:
        lies = sum(count for name, count in self.counts.items() if name.startswith("lie "))
        others = {name.replace(" ", "_"): count for name, count in sorted(self.counts.items())}
        return {"runs": self.runs, "bad": self.bad, "lies": lies, **others, "failures": self.failures}


def run(inputs: int, seed: int, *, progress: TextIO | None = None, trace: TextIO | None = None) -> Outcome:
    """So many groups. Run number i has the seed ``seed + i``."""
    outcome = Outcome(0, 0, Counter(), [])
    for number in range(seed, seed + inputs):
        outcome.runs += 1
        one = LyingRun(number, None if trace is None else lambda line: print(line[:500], file=trace))
        try:
            one.play()
        except Exception as error:  # a complaint of the oracle, or whatever the code under test raises
            outcome.bad += 1
            if len(outcome.failures) < SHOWN_MAX:
                again = f"python -m fuzz.election --inputs 1 --seed {number} --trace"
                outcome.failures.append(f"seed {number}: {type(error).__name__}: {error}; replay: {again}")
        outcome.counts.update(one.counts)
        if progress is not None and outcome.runs % PROGRESS_RUNS == 0:
            progress.write(f"{outcome.runs} of {inputs} runs, {outcome.bad} bad\n")
            progress.flush()
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz.election", description="One member of a group that elects lies; the others are looked at."
    )
    parser.add_argument("--inputs", type=int, default=1000, help="runs; each has 30 to 100 lies and more answers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--trace", action="store_true", help="print every lie to stderr")
    options = parser.parse_args(arguments)
    outcome = run(options.inputs, options.seed, progress=sys.stderr, trace=sys.stderr if options.trace else None)
    if options.json:
        print(json.dumps(outcome.as_dict()))
    else:
        for line in outcome.failures:
            print(f"FAILED: {line}")
        found = {name: count for name, count in outcome.as_dict().items() if name != "failures"}
        print(", ".join(f"{count} {name}" for name, count in found.items()))
    return 1 if outcome.bad else 0


if __name__ == "__main__":
    sys.exit(main())
