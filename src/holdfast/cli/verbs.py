"""Which verbs there are, and in which file each is. Nothing of a verb is imported before it is run.

The sentence beside a verb is what ``--help`` lists; a test compares it with the beginning of the verb's own text.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple, cast

from holdfast.cli.words import Verb


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


KEYS = Table(
    "Keys of the group: make one, and change it everywhere without a pause.",
    {
        "generate": Entry("features.keys.cli:generate", "Make a new key; with -o FILE into a file that only you can read."),
        "list": Entry("features.keys.cli:listing", "Which keys each member holds; the first is the one it writes with."),
        "install": Entry("features.keys.cli:install", "Step 1 of a rotation: every member can read with the key in this file."),
        "use": Entry("features.keys.cli:use", "Step 2: every member writes with the key of this id."),
        "remove": Entry("features.keys.cli:remove", "Step 3: every member forgets the key of this id."),
    },
)
TAGS = Table(
    "What this agent says about itself.",
    {
        "show": Entry("cli.tags:show", "The tags of this agent."),
        "set": Entry("cli.tags:put", "Set tags of this agent, for everybody to see."),
        "remove": Entry("cli.tags:remove", "Remove tags of this agent."),
    },
    default="show",
)
TICKET = Table(
    "Tickets of a pool: numbered slots, each with at most one holder.",
    {
        "ls": Entry("features.tickets.cli:ls", "Who holds which ticket, as this agent heard it: a hint."),
        "acquire": Entry("features.tickets.cli:acquire", "Hold a ticket around a command, or until stdin is closed."),
        "release": Entry("features.tickets.cli:release", "Ask the client of this agent that holds a ticket to stop."),
        "abandon": Entry("features.tickets.cli:abandon", "Give up a ticket whose guardians are lost for good."),
    },
    default="ls",
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
        "demo": Entry(
            "cli.lab.demo:demo", "A leader election loses its leader, its network and its patience; then a planted bug is hunted down."
        ),
        "node": Entry("cli.lab.node:node", "One member of a leader election on real sockets."),
        "ring": Entry("cli.lab.ring:ring", "Members of a ring on real sockets."),
    },
    quick=False,
)
VERBS = Table(
    "Coordination without a coordinator: membership, leadership and tickets with proved bounds in time.",
    {
        "agent": Entry("cli.agent:agent", "Run an agent: a member of a group."),
        "members": Entry("cli.members:members", "Who is here."),
        "watch": Entry("cli.watch:watch", "Print what happens in the group, as it happens."),
        "info": Entry("cli.info:info", "What the agent is: its settings, its state, its counters."),
        "join": Entry("cli.joining:join", "Let an agent that is in no group knock at these seeds."),
        "leave": Entry("cli.joining:leave", "Let the agent drain, leave the group and end."),
        "force-leave": Entry("cli.joining:force_leave", "Ask another agent, by its name, to drain and leave."),
        "tags": TAGS,
        "keys": KEYS,
        "seats": Entry("cli.seats:seats", "List the voters (seats) and their state: each is asked."),
        "owner": Entry("features.ring.cli:owner", "Print the member that a key belongs to."),
        "leader": Entry("features.leadership.cli:leader", "Who leads what, as this agent knows it: a hint."),
        "ticket": TICKET,
        "send": Entry("features.mail.cli:send", "Send a message to one member."),
        "cast": Entry("features.mail.cli:cast", "Tell everybody who listens to a topic."),
        "messages": Entry("features.mail.cli:messages", "Print the messages that arrive."),
        "run": Entry("cli.run.verb:run", "Run a command while holding a lock or leadership; stop it before the hold expires."),
        "doctor": Entry("cli.doctor:doctor", "Look for what is wrong now, here and at other members."),
        "demo": Entry("cli.demo.verb:demo", "A live group on this machine."),
        "lab": LAB,
        "version": Entry("cli.version:version", "Which Holdfast this is, and on which Python."),
    },
)


def find(words: list[str]) -> tuple[Entry, list[str]] | None:
    """The verb that these words name, and the words that are left for it; None where typer has to look at it."""
    at: Entry | Table = VERBS
    rest = list(words)
    while isinstance(at, Table):
        if not at.quick:
            return None
        if at.default and (not rest or (rest[0].startswith("-") and rest[0] != "--help")):
            rest.insert(0, at.default)
        following = at.verbs.get(rest.pop(0)) if rest else None
        if following is None:
            return None
        at = following
    return at, rest
