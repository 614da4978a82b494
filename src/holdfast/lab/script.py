"""Directed schedules as text: who takes part, what happens to whom, for how long it runs.  Golden traces are made of them.

A file has a header (which scenario's machines, which seed, which settings), then one command per line, then, below a line
of dashes, the trace it must print. ``COMMANDS`` is the whole language; ``docs/lab.md`` explains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite, nan
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import ConfigError
from holdfast.lab import registry
from holdfast.lab.faults import Plan
from holdfast.lab.links import Delay, Fixed, Link, Uniform
from holdfast.lab.scenario import Scenario, Setup, set_up

SEPARATOR = "----"
COMMENT = re.compile(r"(?:^|\s)#.*")  # "a#1" is a life, not a comment
RUN_SECONDS_MAX = 86_400.0  # of one command; a day is more than a person reads
SEED_MAX = 2**53 - 1  # the largest number that every reader of JSON reads as it was written
SEEDS_ASKED = 64  # drawn to learn what values a parameter takes
DELAY_DEFAULT = Fixed(0.01)  # a trace reads best when answers come after a round number of milliseconds

HEADER = {
    "scenario": "scenario NAME | FILE.py",
    "seed": "seed N",
    "set": "set PARAMETER VALUE",
    "link": "link 10ms | link 1ms..20ms",
    "loss": "loss 0.1",
    "nodes": "nodes a b c",
}
COMMANDS = {
    "run": "run 3s | run 250ms",
    "start": "start d",
    "crash": "crash a",
    "crash-in-save": "crash-in-save a",
    "restart": "restart a",
    "stop": "stop a",
    "resume": "resume a [shuffled]",
    "cut": "cut a->b | cut a<->b | cut a,b->c",
    "partition": "partition a b | c",
    "heal": "heal",
    "drop": "drop TYPE a->b [TIMES]",
    "call": "call a METHOD [ARGUMENT ...]",
    "expect": "expect ATTRIBUTE VALUE [on a b]",
}


class Step(Struct, frozen=True):
    """One command, and where it stands."""

    line: int
    verb: str
    words: tuple[str, ...]


class Script(Struct, frozen=True, kw_only=True):
    """A file, understood as far as it can be without running it."""

    source: str  # what errors call it
    scenario: str
    seed: int
    settings: dict[str, str]
    delay: Delay
    loss: float
    nodes: tuple[str, ...]
    steps: tuple[Step, ...]

    def find(self) -> Scenario:
        """The scenario whose machines run; a path is meant from where the script lies."""
        if registry.is_path(self.scenario):
            return registry.find_scenario(str(Path(self.source).parent / self.scenario))
        return registry.find_scenario(self.scenario)

    def setup(self, scenario: Scenario) -> Setup:
        """What the seed drew, with what the script says instead; the script brings its own faults."""
        drawn = set_up(scenario, self.seed)
        parameters = dict(drawn.parameters)
        for name, value in self.settings.items():
            parameters[name] = _setting(scenario, drawn, name, value, self.source)
        return replace(drawn, names=self.nodes, plan=Plan(), link=Link(self.delay, self.loss), parameters=parameters)


class BadLine(ConfigError):
    """A line that cannot be read: says which one and what is accepted."""

    def __init__(self, source: str, line: int, why: str, accepted: str) -> None:
        super().__init__(f"{source}, line {line}: {why}; accepted: {accepted}")


def split(text: str) -> tuple[str, str]:
    """A golden file's script and the trace it must print; the separator belongs to neither."""
    script, _, golden = text.partition(f"\n{SEPARATOR}\n")
    return script.removesuffix(f"\n{SEPARATOR}").removesuffix("\n") + "\n", golden


def parse(text: str, source: str = "script") -> Script:
    """Read a script; raises ``BadLine`` with the line's number and the accepted commands."""
    head = _Head(source)
    steps: list[Step] = []
    for number, line in enumerate(split(text)[0].splitlines(), 1):
        words = COMMENT.sub("", line).split()
        if not words:
            continue
        step = Step(number, words[0], tuple(words[1:]))
        if step.verb in HEADER and not steps:
            head.read(step)
        elif step.verb in COMMANDS:
            steps.append(step)
        else:
            why = "comes after the first command" if step.verb in HEADER else "is no command"
            raise BadLine(source, number, f"{step.verb!r} {why}", ", ".join([*HEADER, *COMMANDS]))
    return head.finished(tuple(steps))


class _Head:
    """The header, while it is read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.scenario, self.seed, self.loss = "", 0, 0.0
        self.delay: Delay = DELAY_DEFAULT
        self.settings: dict[str, str] = {}
        self.nodes: tuple[str, ...] = ()

    def read(self, step: Step) -> None:
        readers: dict[str, Callable[[tuple[str, ...]], None]] = {
            "scenario": self._scenario,
            "seed": self._seed,
            "set": self._set,
            "link": self._link,
            "loss": self._loss,
            "nodes": self._nodes,
        }
        try:
            readers[step.verb](step.words)
        except ValueError as error:
            raise BadLine(self.source, step.line, f"{' '.join((step.verb, *step.words))!r}: {error}", HEADER[step.verb]) from None

    def finished(self, steps: tuple[Step, ...]) -> Script:
        for field, value in (("scenario", self.scenario), ("nodes", self.nodes)):
            if not value:
                raise ConfigError(f"{self.source}: has no line {field!r}; accepted: {HEADER[field]}")
        return Script(
            source=self.source,
            scenario=self.scenario,
            seed=self.seed,
            settings=self.settings,
            delay=self.delay,
            loss=self.loss,
            nodes=self.nodes,
            steps=steps,
        )

    def _scenario(self, words: tuple[str, ...]) -> None:
        (self.scenario,) = words

    def _seed(self, words: tuple[str, ...]) -> None:
        (word,) = words
        self.seed = int(word)
        if not 0 <= self.seed <= SEED_MAX:
            raise ValueError(f"is not between 0 and {SEED_MAX}")

    def _set(self, words: tuple[str, ...]) -> None:
        name, value = words
        self.settings[name] = value

    def _link(self, words: tuple[str, ...]) -> None:
        (word,) = words
        low, dots, high = word.partition("..")
        shortest, longest = duration(low), duration(high if dots else low)
        if shortest > longest:
            raise ValueError("ends before it begins")
        self.delay = Uniform(shortest, longest) if dots else Fixed(shortest)

    def _loss(self, words: tuple[str, ...]) -> None:
        (word,) = words
        self.loss = float(word)
        if not 0 <= self.loss < 1:
            raise ValueError("is no probability")

    def _nodes(self, words: tuple[str, ...]) -> None:
        if not words or len(set(words)) != len(words):
            raise ValueError("needs names, each once")
        self.nodes = words


def duration(word: str) -> float:
    """``3s``, ``250ms`` or plain seconds."""
    found = re.fullmatch(r"([0-9.eE+-]+)(s|ms)?", word)
    if found is None:
        raise ValueError(f"{word!r} is no duration")
    seconds = float(found[1]) / (1000 if found[2] == "ms" else 1)
    if not isfinite(seconds) or not 0 <= seconds <= RUN_SECONDS_MAX:
        raise ValueError(f"{word!r} is not between 0 and {RUN_SECONDS_MAX:g} s")
    return seconds


def _setting(scenario: Scenario, drawn: Setup, name: str, text: str, source: str) -> float | str:
    """A value of the kind that seeds draw for the parameter: a scenario says nowhere else what it accepts."""
    if name not in drawn.parameters:
        raise ConfigError(f"{source}: set {name}: there is no such parameter; accepted: {', '.join(drawn.parameters) or 'none'}")
    setups = [drawn, *(set_up(scenario, seed) for seed in range(SEEDS_ASKED))]
    values = dict.fromkeys(setup.parameters[name] for setup in setups if name in setup.parameters)
    numbers = [value for value in values if not isinstance(value, str)]
    if numbers:
        return _number(numbers, f"{source}: set {name} {text}", text)
    if len(values) > 1 and text not in values:  # One value that is always drawn says nothing about others.
        raise ConfigError(f"{source}: set {name} {text}: accepted: {', '.join(map(str, values))}")
    return text


def _number(drawn: list[float], where: str, text: str) -> float:
    """Positive if all that is drawn is, whole if several values are drawn and all are whole."""
    positive = min(drawn) > 0
    whole = len(drawn) > 1 and all(float(value).is_integer() for value in drawn)
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value) or (positive and value <= 0) or (whole and not value.is_integer()):
        accepted = f"a {'whole' if whole else 'finite'} number{' above 0' if positive else ''}"
        raise ConfigError(f"{where}: {text!r} is no number that fits; accepted: {accepted}")
    return value
