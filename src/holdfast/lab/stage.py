"""Plays a script: one world, the script's commands between stretches of time, the whole trace.  Language: ``script.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import msgspec
from msgspec import Struct

from holdfast.errors import ConfigError
from holdfast.host import Message, NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario
from holdfast.lab.script import COMMANDS, BadLine, Script, Step, duration
from holdfast.lab.trace import Trace, show
from holdfast.lab.violation import Violation
from holdfast.lab.world import World

TIMES_MAX = 1_000_000  # messages one ``drop`` may lose


class Played(Struct, frozen=True):
    """What a script did."""

    trace: str  # every line, each ended
    violation: str = ""

    @property
    def ok(self) -> bool:
        return not self.violation


def play(script: Script, scenario: Scenario | None = None) -> Played:
    """Run a script to its end or to the first violation, which is the trace's last line then."""
    stage = Stage(script, scenario or script.find())
    violation = ""
    try:
        stage.play()
    except Violation as found:
        violation = str(found)
        stage.note("violation: {}", found)
    return Played("".join(f"{line}\n" for line in stage.trace.lines()), violation)


class Stage:
    """One world that obeys a script."""

    def __init__(self, script: Script, scenario: Scenario) -> None:
        self.script = script
        self.trace = Trace()
        setup = script.setup(scenario)
        with self._blaming_settings():
            self.world = World(
                script.seed,
                lambda host: scenario.build(host, setup),
                link=setup.link,
                topology=scenario.topology(setup, Random(f"{script.seed}/topology")),
                checkers=scenario.checkers(setup),
                trace=self.trace,
                life=lambda place, former: scenario.life(place, former, setup),
            )
        self._cuts = 0
        self._verbs: dict[str, Callable[[tuple[str, ...]], None]] = {
            "run": self._run,
            "start": self._start,
            "crash": self._crash,
            "crash-in-save": self._crash_in_save,
            "restart": self._restart,
            "stop": self._stop,
            "resume": self._resume,
            "cut": self._cut,
            "partition": self._partition,
            "heal": self._heal,
            "drop": self._drop,
            "call": self._call,
            "expect": self._expect,
        }
        assert self._verbs.keys() == COMMANDS.keys()

    def play(self) -> None:
        with self._blaming_settings():
            for name in self.script.nodes:
                self.world.start(name)
        for step in self.script.steps:
            self._obey(step)

    def note(self, form: str, *parts: object) -> None:
        self.trace.record(self.world.now, f"* {form}", *parts)

    @contextmanager
    def _blaming_settings(self) -> Iterator[None]:
        """Machines assert what they are built with: where the script chose that, it is the script's mistake."""
        try:
            yield
        except (AssertionError, ArithmeticError, LookupError) as error:
            if not self.script.settings:
                raise
            chosen = ", ".join(f"set {name} {value}" for name, value in self.script.settings.items())
            names = " ".join(self.script.nodes)
            raise ConfigError(
                f"{self.script.source}: {chosen}, nodes {names}: {self.script.scenario} cannot be built so; accepted: what seeds draw"
            ) from error

    def _obey(self, step: Step) -> None:
        try:
            self._verbs[step.verb](step.words)
        except ValueError as error:
            why = f"{' '.join((step.verb, *step.words))!r}: {error}"
            raise BadLine(self.script.source, step.line, why, COMMANDS[step.verb]) from None

    def _run(self, words: tuple[str, ...]) -> None:
        (word,) = words
        self.world.run(self.world.now + duration(word))

    def _start(self, words: tuple[str, ...]) -> None:
        (name,) = words
        if name in self.world.nodes:
            raise ValueError(f"{name} was started before; restart begins its next life")
        self.world.start(name)

    def _crash(self, words: tuple[str, ...]) -> None:
        (name,) = words
        self._alive(name)
        self.world.crash(name)

    def _crash_in_save(self, words: tuple[str, ...]) -> None:
        (name,) = words
        self._alive(name)
        disk = self.world.disks[name]
        disk.crash_at_save = disk.saves + 1
        self.note("{} will crash in its next save", name)

    def _restart(self, words: tuple[str, ...]) -> None:
        (name,) = words
        if not self._known(name).dead:
            raise ValueError(f"{name} is alive; crash it first")
        self.world.start(name)

    def _stop(self, words: tuple[str, ...]) -> None:
        (name,) = words
        if not self._alive(name).running:
            raise ValueError(f"{name} is stopped already")
        self.world.stop(name)

    def _resume(self, words: tuple[str, ...]) -> None:
        name, *order = words
        if self._alive(name).running or order not in ([], ["shuffled"]):
            raise ValueError(f"{name} is not stopped" if order in ([], ["shuffled"]) else f"{order[0]!r} is no order")
        self.world.resume(name, *order)

    def _cut(self, words: tuple[str, ...]) -> None:
        (link,) = words
        sources, targets, both = self._ends(link)
        self._cuts += 1
        self.world.network.cut(f"script {self._cuts}", sources, targets)
        if both:
            self.world.network.cut(f"script {self._cuts} back", targets, sources)
        self.note("cut {}", link)

    def _partition(self, words: tuple[str, ...]) -> None:
        sides = [side.split() for side in " ".join(words).split("|")]
        if len(sides) < 2 or not all(sides):
            raise ValueError("needs at least two sides")
        names = [name for side in sides for name in side]
        for name in names:
            self._known(name)
        if len(set(names)) != len(names):
            raise ValueError("needs each name on one side")
        self._cuts += 1
        self.world.network.partition(f"script {self._cuts}", sides)
        self.note("partition {}", " ".join(words))

    def _heal(self, words: tuple[str, ...]) -> None:
        () = words
        self.world.network.clear()
        self.note("heal")

    def _drop(self, words: tuple[str, ...]) -> None:
        kind, link, *times = words
        sources, targets, both = self._ends(link)
        self._check_type(kind)
        left = [int(times[0])] if times else [TIMES_MAX]
        if len(times) > 1 or not 1 <= left[0] <= TIMES_MAX:
            raise ValueError(f"TIMES is a number between 1 and {TIMES_MAX}")

        def lost(source: str, target: str, message: Message) -> bool:
            there = source in sources and target in targets
            back = both and source in targets and target in sources
            hit = left[0] > 0 and (there or back) and kind in {"*", type(message).__name__}
            left[0] -= hit
            return hit

        self.world.network.lose_if(lost)
        self.note("drop {}", " ".join(words))

    def _call(self, words: tuple[str, ...]) -> None:
        name, method, *arguments = words
        host = self._alive(name)
        offers = [machine for machine in host.node.machines if callable(getattr(machine, method, None))]
        if len(offers) != 1 or method.startswith("_"):
            raise ValueError(f"{0 if method.startswith('_') else len(offers)} machines of {name} have a method {method!r}")
        self.note("call {}", " ".join(words))
        self.world.step(host, lambda: getattr(offers[0], method)(*map(_value, arguments)))

    def _expect(self, words: tuple[str, ...]) -> None:
        attribute, wanted, *rest = words
        if rest and (rest[0] != "on" or len(rest) == 1):
            raise ValueError(f"{rest[0]!r} is not understood")
        hosts = [self._alive(name) for name in rest[1:]] or self.world.alive
        for host in hosts:
            found = _read(host, attribute)
            if wanted.casefold() not in _spellings(found):
                raise Violation("expect", f"{attribute} {wanted} on {host.me}, where it is {show(found)}")
        self.note("as expected: {}", " ".join(words))

    def _known(self, name: str) -> LabHost:
        if name not in self.world.nodes:
            raise ValueError(f"no node is called {name!r}; there are {', '.join(self.world.nodes)}")
        return self.world.nodes[name]

    def _alive(self, name: str) -> LabHost:
        host = self._known(name)
        if host.dead:
            raise ValueError(f"{name} is dead; restart begins its next life")
        return host

    def _ends(self, link: str) -> tuple[list[str], list[str], bool]:
        both = "<->" in link
        left, arrow, right = link.partition("<->" if both else "->")
        sources, targets = left.split(","), right.split(",")
        if not arrow:
            raise ValueError(f"{link!r} is no link")
        for name in (*sources, *targets):
            self._known(name)
        return sources, targets, both

    def _check_type(self, kind: str) -> None:
        names = sorted({each.__name__ for host in self.world.nodes.values() for each in host.node.types})
        if kind not in {"*", *names}:
            raise ValueError(f"no machine handles {kind!r}; there are *, {', '.join(names)}")


def _value(word: str) -> object:
    """A JSON value, else the word itself."""
    try:
        return msgspec.json.decode(word)
    except msgspec.DecodeError:
        return word


def _read(host: LabHost, attribute: str) -> object:
    offers = [machine for machine in host.node.machines if hasattr(machine, attribute)]
    if len(offers) != 1:
        raise ValueError(f"{len(offers)} machines of {host.me} have an attribute {attribute!r}")
    return getattr(offers[0], attribute)


def _spellings(value: object) -> set[str]:
    spellings = {show(value).casefold()}
    return spellings | {value.name.casefold()} if isinstance(value, NodeId) else spellings
