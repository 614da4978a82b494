"""Which verbs there are, and in which file each is. Nothing of a verb is imported before it is run.

Verbs about the agent and the group stand here. Those of a feature stand in its ``verbs.py``, which offers them: nothing of that file is
imported for a verb that stands here. The sentence beside a verb is what ``--help`` lists; a test compares it with the beginning of the
verb's own text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.cli.parser import Verb

if TYPE_CHECKING:
    from holdfast.cli.run.hold_flags import RunFirst, RunKind


class Entry(NamedTuple):
    """One verb: ``module:function`` below ``holdfast``."""

    place: str
    title: str

    def load(self) -> Verb:
        module, _, function = self.place.partition(":")
        return cast(Verb, getattr(import_module(f"holdfast.{module}"), function))


class Table(NamedTuple):
    """Verbs under one word. ``default`` is the verb that is meant when none is named."""

    title: str
    verbs: Mapping[str, Entry | Table]
    default: str = ""
    quick: bool = True  # its verbs declare their words without typer


class Offer:
    """What the ``verbs.py`` of a feature, or of a paper, adds to the command line: it declares one as ``OFFER``.

    ``verbs`` are listed by ``--help`` above the verb of this file called ``above``, in the order of the list of features or, if ``last``,
    behind those of the others. ``kinds`` are what `holdfast run` can hold for a command, ``firsts`` what it can wait for before, and
    ``lab`` has verbs of `holdfast lab`. ``checks`` has for a kind of grant the ``module:function`` that looks at what flags said of it,
    before an agent is asked.
    """

    __slots__ = ("above", "checks", "firsts", "kinds", "lab", "last", "verbs")

    def __init__(
        self,
        verbs: Mapping[str, Entry | Table] | None = None,
        *,
        above: str = "run",
        last: bool = False,
        kinds: tuple[RunKind, ...] = (),
        firsts: tuple[RunFirst, ...] = (),
        checks: Mapping[str, str] | None = None,
        lab: Mapping[str, Entry] | None = None,
    ) -> None:
        self.verbs, self.above, self.last, self.lab = verbs or {}, above, last, lab or {}
        self.kinds, self.firsts, self.checks = kinds, firsts, checks or {}


TAGS = Table(
    "What this agent says about itself.",
    {
        "show": Entry("cli.tags:show", "The tags of this agent."),
        "set": Entry("cli.tags:put", "Set tags of this agent, for all members to see."),
        "remove": Entry("cli.tags:remove", "Remove tags of this agent."),
    },
    default="show",
)
LAB = Table(
    "The simulator: virtual time, seeded faults, invariants, every figure of the papers.",
    {
        "list": Entry("cli.lab.listing:listing", "All scenarios and experiments."),
        "run": Entry(
            "cli.lab.run:run", "Run an experiment and judge it (exit 0: pass, 1: miss), or one seed of a scenario (1: violation)."
        ),
        "sweep": Entry("cli.lab.sweep:sweep", "Many seeds of a scenario (exit 0: all passed, 1: violations)."),
        "replay": Entry("cli.lab.replay:replay", "One seed again, with the trace (exit 0: it goes well, 1: the violation is there)."),
        "plan": Entry(
            "cli.lab.plan:plan", "The faults that a seed draws, as JSON: save them, change them, give them to `lab replay --plan`."
        ),
        "script": Entry(
            "cli.lab.script:script", "Play a directed schedule and print its trace (exit 1: an invariant or an expectation did not hold)."
        ),
        "reproduce": Entry(
            "cli.lab.reproduce:reproduce",
            "Every experiment of a folder, and one page of the paper's values beside ours (exit 1: some criterion was missed).",
        ),
    },
    quick=False,
)
RUN = Entry("cli.run.verb:run", "")  # its title names what can be held
OWN: Mapping[str, Entry | Table] = {
    "agent": Entry("cli.agent:agent", "Run an agent: a member of a group."),
    "members": Entry("cli.members:members", "Who is here."),
    "watch": Entry("cli.watch:watch", "Print what happens in the group, as it happens."),
    "info": Entry("cli.info:info", "What the agent is: its settings, its state, its counters."),
    "join": Entry("cli.joining:join", "Let an agent that is in no group knock at these seeds."),
    "leave": Entry("cli.joining:leave", "Let the agent drain, leave the group and end."),
    "tags": TAGS,
    "seats": Entry("cli.seats:seats", "List the voters (seats) and their state: each is asked."),
    "run": RUN,
    "doctor": Entry("cli.doctor:doctor", "Look for what is wrong now, here and at other members."),
    "demo": Entry("cli.demo.verb:demo", "A live group on this machine."),
    "lab": LAB,
    "version": Entry("cli.version:version", "Which Holdfast this is, and on which Python."),
}


def offers() -> Iterator[Offer]:
    """Of the features, in the order of their list. A feature without verbs has no such file."""
    from holdfast.features import rooms

    for module in rooms("verbs"):
        yield module.OFFER


@cache
def everything() -> Table:
    """All of them, for ``--help``, completion and mistakes."""
    from holdfast.cli.run.hold_flags import title
    from holdfast.features import IN_ONE_SENTENCE

    every = sorted(offers(), key=lambda offer: offer.last)
    own = {**OWN, "run": RUN._replace(title=title()), "lab": LAB._replace(verbs=_of_lab(every))}
    verbs: dict[str, Entry | Table] = {}
    for name, entry in own.items():
        for offer in every:
            if offer.above == name:
                verbs.update(offer.verbs)
        verbs[name] = entry
    return Table(IN_ONE_SENTENCE, verbs)


def find(words: list[str]) -> tuple[Entry, list[str]] | None:
    """The verb that these words name, and the words that are left for it; None where typer has to look at it."""
    if not words:
        return None
    at, rest = _first(words[0] if words != ["--version"] else "version"), words[1:]
    while isinstance(at, Table):
        if not at.quick:
            return None
        if at.default and (not rest or (rest[0].startswith("-") and rest[0] != "--help")):
            rest.insert(0, at.default)
        at = at.verbs.get(rest.pop(0)) if rest else None
    return None if at is None else (at, rest)


def _first(word: str) -> Entry | Table | None:
    if word in OWN or word.startswith("-"):
        return OWN.get(word)
    return next((offer.verbs[word] for offer in offers() if word in offer.verbs), None)


def _of_lab(every: list[Offer]) -> dict[str, Entry | Table]:
    """Nothing that ships imports a paper: their verbs are loaded by name."""
    papers = import_module("holdfast.papers").rooms("verbs")
    verbs = dict(LAB.verbs)
    for offer in (*(module.OFFER for module in papers), *every):
        verbs.update(offer.lab)
    return verbs
