"""Fuzz target of gossip: ``python -m fuzz.gossip --inputs N --seed S``.  Spec: gossip 3 (checks on receipt), 5.1, 7; issue 17.

A group in the lab of which one member lies: any field of any message, sealed with the right key, from the address and the life that it has.
After every lie an oracle compares the table of the member that heard it with the one before: a member may accuse, spread news and invent
members; it may not take an entry back, move a third member, raise its inc beyond reason, touch the entry of its receiver, make
a table grow beyond its limit, or raise anything. What is refused is counted by its receiver. When the lies are over, the others list
each other again. The same seed gives the same runs; what is bad is named with the line that shows it again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TextIO, Union

import msgspec
from msgspec import Struct

from fuzz.shapes import Harvest, Shapes
from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.messages import ACCUSERS_MAX, TYPES, Ack, Gossip, Ping, Rumour, Status, Sync
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import ROWS_BYTES_MAX, ROWS_MAX, Address, Message, NodeId, rows_bytes
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.node import life_of

INC_STEP = 1 << 16  # gossip 3: at most so much above the inc that is known, unless the member itself says it
OWN_STEPS = 64  # of what is said about the member itself (H332)
BOOT_MAX = 1 << 48
NAME_BYTES_MAX = 64
MEMBERS_MAX = 24  # of each table here: lies fill it
SIZES = (3, 4, 4, 5, 7)  # members, of which one lies
STRANGERS = 40
QUIET = 80.0  # periods in which the others find each other again (G4)
PROGRESS_RUNS = 100
SHOWN_MAX = 10  # bad runs that are told; all are counted
_BODIES: Any = Union[TYPES]  # noqa: UP007 - made at run time
_decode = msgspec.msgpack.Decoder(_BODIES).decode


class Misbehaved(Exception):
    """A rule does not hold."""


class LyingRun:
    """One group, one liar, one history."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.seed, self.random, self.counts = seed, Random(seed), Counter[str]()
        self._trace = trace
        self.names = names_of(self.random.choice(SIZES))
        profile = profiles.default(1.0)
        self.group = GossipGroup(seed, profile, link=Link(Uniform(0.001, 0.02)), seeds=self.names[1:3], members_max=MEMBERS_MAX)
        self.group.form(self.names)
        self.world = self.group.world
        self.liar = self.group.host(self.names[0]).me
        self.harvest = Harvest()
        self.world.network.lose_if(self._note, self)
        self.shapes = Shapes(self.random, self.harvest, self.group.host(self.names[0]).wall)
        self.usurps = self.random.random() < 0.3
        self.usurped = False  # a lie was told that lasts, see ``_note_usurpers``

    def play(self) -> None:
        for name in self.names[1:]:
            self._look_over(self.group.node(name))
        self.group.run(8.0)
        for _ in range(self.random.randint(30, 120)):
            victim = self.random.choice(self.names[1:])
            if self.random.random() < 0.5:
                self._say_anything(victim)
            else:
                self._say_rumours(victim)
            if self.random.random() < 0.5:
                self.group.run(self.random.choice((0.01, 0.1, 1.0, 4.0)))
        self._end()

    # Lies.

    def _note(self, source: str, target: str, message: Message) -> bool:
        if type(message) in TYPES:
            self.harvest.note(message)
        return False

    def _say_anything(self, victim: str) -> None:
        """Real messages with fields replaced, or messages that were made up."""
        body = msgspec.msgpack.encode(self.shapes.message(self.random.choice(TYPES)))
        try:
            message: Message = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.counts["malformed"] += 1  # Where it comes from a socket, the codec drops and counts it (fuzz.wire).
            return
        self._note_usurpers(message)
        if self.usurped and not self.usurps:
            self.usurped = False
            return
        self._deliver(victim, message)

    def _say_rumours(self, victim: str) -> None:
        """News about real members and strangers, in any message that carries news."""
        rumours = tuple(self._rumour(victim) for _ in range(self.random.choice((1, 1, 2, 5))))
        number = self.random.randrange(1 << 20)
        self._deliver(victim, self.random.choice((
            Gossip(rumours), Ping(number, rumours), Ack(number, rumours),
            Sync(number, 0, 1, rumours, want=self.random.random() < 0.5),
        )))  # fmt: skip

    def _rumour(self, victim: str) -> Rumour:
        random, table = self.random, self.group.node(victim).table
        name = random.choice((*self.names, *self.names, f"x{random.randrange(STRANGERS)}", "y" * 65, "\x07"))
        known = table.get(name)
        inc = 0 if known is None else known.inc
        boot = 1 if known is None else known.id.boot
        if self.usurps and random.random() < 0.1:
            boot = max(0, random.choice((boot - 1, boot + 1, BOOT_MAX - 1, BOOT_MAX, 0)))
        address = Address(name, 7946) if known is None or random.random() < 0.2 else known.address
        if random.random() < 0.1:
            address = random.choice((Address("elsewhere", 1), Address("", 1), Address("a", 0)))
        far = (inc + INC_STEP, inc + INC_STEP + 1, 1 << 31) if self.usurps else ()
        said = max(0, min((1 << 32) - 1, random.choice((inc - 1, inc, inc, inc + 1, inc + 2, *far))))
        accusers = tuple(random.choice((*self.names, "x", "y")) for _ in range(random.randrange(ACCUSERS_MAX + 1)))
        rows = random.choice((None, None, {"tag:a": b"lie"}, {f"tag:{i}": b"x" * 256 for i in range(4)}))
        rows_at = random.choice((0, 1, inc, said, said + 1))
        return Rumour(
            NodeId(name, boot),
            address,
            said,
            random.choice(list(Status)),
            accusers,
            min(rows_at, (1 << 32) - 1),
            rows,
            random.choice((0, 5)),
        )

    def _deliver(self, victim: str, message: Message) -> None:
        host, node = self.group.host(victim), self.group.node(victim)
        if self._trace is not None:
            self._trace(f"{self.world.now:.3f} {victim} <- {message}")
        before = {entry.id.name: entry for entry in node.table.entries()}
        refused = _refused(node)
        self.counts[f"lie {type(message).__name__}"] += 1
        self._note_usurpers(message)
        self.world.step(host, lambda: self._receive(host, message))
        self._compare(node, before, message)
        self.counts["refused"] += _refused(node) - refused

    def _receive(self, host: LabHost, message: Message) -> None:
        host.node.receive(Address(self.liar.name, 7946), self.liar, life_of(host.me), host.node.digests.get(type(message), b""), message)

    # The oracle.

    def _look_over(self, node: GossipNode) -> None:
        """From now on: what this member is told that no member may say is refused, and that is counted."""
        merge = node.merge.merge

        def checked(rumour: Rumour, source: NodeId, **options: bool) -> bool:
            wrong, refused = _is_wrong(node, rumour, source), _refused(node)
            accused = merge(rumour, source, **options)
            if wrong and _refused(node) == refused:
                raise Misbehaved(f"{rumour} breaks a bound, and no refusal was counted")
            return accused

        node.merge.merge = checked  # type: ignore[method-assign]

    def _note_usurpers(self, message: Message) -> None:
        """Some lies last: a newer life of an honest member, and an inc so far above its own that it does not believe the accusation itself.
        A liar comes there in two steps of 2^16."""
        for rumour in _rumours_of(message):
            if rumour.id.name in self.names[1:]:
                me = self.group.host(rumour.id.name).me
                self.usurped |= rumour.id.boot > me.boot or rumour.inc > self.group.node(me.name).inc + INC_STEP

    def _compare(self, node: GossipNode, before: dict[str, Entry], message: Message) -> None:
        table = node.table
        if table.size > MEMBERS_MAX:
            raise Misbehaved(f"{table.size} entries after {message}")
        if len(node.queue) > MEMBERS_MAX or len(node.suspicions) > MEMBERS_MAX or len(node.prober.relays) > 256 or len(node.c_front) > 4:
            raise Misbehaved(f"a queue grew beyond its limit by {message}")
        for name, former in before.items():
            now = table.get(name)
            if now is None:
                if former.listed:
                    raise Misbehaved(f"{name} was listed, and is forgotten after {message}")
            elif name == node.core.name:
                self._compare_own(former, now, message)
            elif name != self.liar.name:
                self._compare_third(former, now, message)
        for entry in table.entries():
            if len(entry.rows) > ROWS_MAX or rows_bytes(entry.rows) > ROWS_BYTES_MAX:
                raise Misbehaved(f"{entry.id} has more rows than a member may publish, after {message}")

    def _compare_own(self, former: Entry, now: Entry, message: Message) -> None:
        same = (now.id, now.address, now.status, now.rows) == (former.id, former.address, former.status, former.rows)
        if not same or not former.inc <= now.inc <= former.inc + 64 * (INC_STEP + 1):
            raise Misbehaved(f"the entry of the receiver itself became {now}, it was {former}, by {message}")

    def _compare_third(self, former: Entry, now: Entry, message: Message) -> None:
        if (now.id.boot, *now.rank) < (former.id.boot, *former.rank):
            raise Misbehaved(f"{former} was taken back to {now} by {message}")
        if now.id != former.id:
            self.counts["new lives"] += 1
            return
        said = len(_rumours_of(message)) or 1
        if now.address != former.address:
            raise Misbehaved(f"{former.id} was moved to {now.address} by another member: {message}")
        if now.inc > former.inc + said * INC_STEP:
            raise Misbehaved(f"{former.id} went from inc {former.inc} to {now.inc} by the word of another member: {message}")
        if now.rows != former.rows and now.rows_at <= former.rows_at:
            raise Misbehaved(f"{former.id} has other rows that are no newer, by {message}")
        if now != former:
            self.counts["entries changed"] += 1

    def _end(self) -> None:
        """The liar is gone. The others list each other again, unless a lie was told that lasts."""
        self.world.crash(self.liar.name)
        self.world.bury(self.liar.name)
        if self.usurped:
            return
        honest = self.names[1:]
        lives = [self.group.host(name).me for name in honest]

        def well() -> bool:
            return all(self.group.node(name).table.lists(life) for name in honest for life in lives)

        if not self.group.until(well, QUIET, 1.0):
            missing = [(name, str(life)) for name in honest for life in lives if not self.group.node(name).table.lists(life)]
            raise Misbehaved(f"{QUIET:g} periods after the last lie {missing[0][0]} does not list {missing[0][1]} (G4)")
        self.counts["healed"] += 1


def _rumours_of(message: Message) -> tuple[Rumour, ...]:
    return getattr(message, "rumours", ()) or getattr(message, "entries", ())


def _is_wrong(node: GossipNode, rumour: Rumour, source: NodeId) -> bool:
    """No member may say this (gossip 3)."""
    known = node.table.of(rumour.id)
    if known is not None and (rumour.inc, rumour.status) <= known.rank:
        return False  # Old news is dropped before it is looked at.
    bad_life = not 0 < rumour.id.boot < BOOT_MAX or not 0 < len(rumour.id.name.encode()) <= NAME_BYTES_MAX
    bad_place = rumour.address.port == 0 or not rumour.address.host
    steps = OWN_STEPS if rumour.id == node.core.me else 1
    return bad_life or bad_place or (rumour.id != source and rumour.inc > (0 if known is None else known.inc) + steps * INC_STEP)


def _refused(node: GossipNode) -> int:
    return sum(count for name, count in node.counts.items() if name.startswith(("refused_", "table_full")))


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
                again = f"python -m fuzz.gossip --inputs 1 --seed {number} --trace"
                outcome.failures.append(f"seed {number}: {type(error).__name__}: {error}; replay: {again}")
        outcome.counts.update(one.counts)
        if progress is not None and outcome.runs % PROGRESS_RUNS == 0:
            progress.write(f"{outcome.runs} of {inputs} runs, {outcome.bad} bad\n")
            progress.flush()
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.gossip", description="One member of a group lies; the others are looked at.")
    parser.add_argument("--inputs", type=int, default=1000, help="runs; each has 30 to 120 lies")
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
