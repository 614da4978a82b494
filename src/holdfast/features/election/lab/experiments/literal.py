"""election/L5: what goes wrong in the paper as it is printed, and not in ours?  Spec: election 6 (D1, D5, D7, D8, D22), 8 (L5); H465.

Three configurations run the same traces: ``literal`` (the paper as printed), ``paper`` (with the repairs that its own text needs, and none
of the product), and what ships. Each trace is made for one flaw:

- holes: the lists of c members lack the best-ranked, and these answer (D1);
- orders: lists and healths differ, so that streaming names several, and their LEADERs arrive in different orders (D5);
- exclusions: each holds a few others to be ill (D7);
- healthy: none is ill, and the group has about as many members as may be left out (D8);
- partition: two sides elect, then the network heals (D22).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.election.lab.experiments.safety import LINK as LOSSY
from holdfast.features.election.lab.experiments.safety import names_best
from holdfast.features.election.lab.groups import NAME, ElectionGroup, names_of
from holdfast.features.election.lab.lists import Board, Hole, Holes, ScriptedLists
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.lab.schedules import open_holes
from holdfast.features.election.lab.settled import HEALED
from holdfast.features.election.lab.watch import Life
from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Initiated
from holdfast.features.election.protocol.profiles import PAPER_TIMEOUT, Profile
from holdfast.features.election.protocol.shown import Role
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.faults import Partition
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import shortened
from holdfast.lab.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LITERAL, PAPER, SHIPS = "literal", "paper", "ships"
WAYS = (LITERAL, PAPER, SHIPS)
WRONG, UNENDED, EARLY, NEEDLESS, REUSED, SHARED = COUNTED = (
    "wrong leader", "no end", "early restart", "needless restart", "one term twice", "shared term",
)  # fmt: skip
VARIANTS = {
    "holes": ("base", "optimistic"),
    "orders": ("optimistic", "hybrid"),
    "exclusions": ("hybrid",),
    "healthy": ("preferred", "hybrid"),
    "partition": ("base", "optimistic", "preferred", "hybrid"),
}
# Which trace shows what; election 6.
FLAWS = {
    "a wrong leader (D1)": ("holes", WRONG),
    "members disagree for ever (D5)": ("orders", UNENDED),
    "one election makes two leaders of one term (D5)": ("orders", REUSED),
    "a restart before c+1 answers (D7)": ("exclusions", EARLY),
    "a restart because healthy ones are out (D8)": ("healthy", NEEDLESS),
    "members disagree for ever after a heal (D22)": ("partition", UNENDED),
    "both sides have leaders of one term (D22)": ("partition", SHARED),
}
SHARED_MAX = 0.01  # of what ships: two initiators may nominate in the same millisecond (A2)
BATCH = 50
LINK = Link(Uniform(0.001, 0.1))
APART = 6.0  # seconds in which lists differ, or sides are parted: enough for both to elect
LOOKS = 5.0  # seconds, after those in which an honest disagreement ends


class LiteralParameters(Parameters, frozen=True, kw_only=True):
    """200 elections of each trace, variant and configuration."""

    runs: Annotated[int, Meta(ge=1, le=100_000)] = 200


class LiteralPaper(Experiment[LiteralParameters]):
    """One group per run; the three configurations have the same seeds."""

    id = "election/L5"
    name = "election/literal"
    title = "The paper as printed against its repairs and what ships: what goes wrong"
    source = "paper 004, Algorithms 1 to 4; election 6, D1, D5, D7, D8, D22; election 8, L5"
    criterion = "each flaw shows in literal and in none of ours; two initiators that count alike (D22) may in paper, which has no clock"
    parameters = LiteralParameters
    seconds_per_cell = 0.6
    repetitions = "runs"
    quick: ClassVar[Mapping[str, str]] = {"runs": "10"}

    def cells(self, parameters: LiteralParameters, seed: int) -> Sequence[Cell]:
        return [
            cell
            for trace, variants in VARIANTS.items()
            for variant in variants
            for way in WAYS
            for cell in in_batches({"trace": trace, "variant": variant, "way": way}, parameters.runs, BATCH, seed * SEEDS_MAX)
        ]

    def measure(self, cell: Cell) -> Measured:
        """In how many of the runs each of them happened."""
        found: Counter[str] = Counter()
        for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
            found.update(RUNS[cell["trace"]](cell["way"], cell["variant"], seed))
        return {**cell, "found": dict(found)}

    def judge(self, parameters: LiteralParameters, results: Sequence[Measured]) -> Finding:
        table: dict[str, dict[str, int]] = {}
        misses: list[str] = []
        runs = {trace: len(variants) * parameters.runs for trace, variants in VARIANTS.items()}
        for flaw, (trace, what) in FLAWS.items():
            row = table[flaw] = {way: counted(results, trace, way, what) for way in WAYS}
            if not row[LITERAL]:
                misses.append(f"{flaw}: not in {runs[trace]} runs of {LITERAL}")
        for trace in VARIANTS:
            for what in COUNTED:
                for way, most in accepted(what, runs[trace]).items():
                    count = counted(results, trace, way, what)
                    if count > most:
                        misses.append(f"{way}, {trace}: {what} in {count} of {runs[trace]} runs; accepted are {most:g}")
        measured: dict[str, Any] = {"flaws": table, "runs": {flaw: runs[trace] for flaw, (trace, _) in FLAWS.items()}}
        expected = {"flaws": {flaw: {LITERAL: "> 0", **_words(what)} for flaw, (_, what) in FLAWS.items()}}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        table, runs = finding.measured["flaws"], finding.measured["runs"]
        places = range(len(table))
        for number, way in enumerate(WAYS):
            shares = [100 * row[way] / runs[flaw] for flaw, row in table.items()]
            bars = axes.barh([place + 0.27 * (number - 1) for place in places], shares, height=0.27, label=way)
            axes.bar_label(bars, [f"{row[way]}" for row in table.values()], fontsize=6, padding=2)
        axes.set_yticks(list(places), list(table), fontsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("% of the runs, and in how many")
        axes.legend(loc="center right")


def counted(results: Sequence[Measured], trace: str, way: str, what: str) -> int:
    return sum(row["found"].get(what, 0) for row in results if (row["trace"], row["way"]) == (trace, way))


def accepted(what: str, runs: int) -> dict[str, float]:
    """How many runs of ours may have it. ``paper`` has no wall clock in its terms: two initiators that do not hear of each other count
    alike."""
    return {SHIPS: SHARED_MAX * runs} if what == SHARED else {PAPER: 0, SHIPS: 0}


def _words(what: str) -> dict[str, str | int]:
    return {PAPER: "any", SHIPS: f"<= {SHARED_MAX:.0%}"} if what == SHARED else {PAPER: 0, SHIPS: 0}


def profile_of(way: str, variant: str, *, c: int, f: int) -> Profile:
    """All with the same c, f and timeout, so that they ask equally many and wait equally long."""
    if way == SHIPS:
        found = profiles.default(variant)  # type: ignore[arg-type]
        return Profile(replace(found.config, c=c, f=f, timeout=PAPER_TIMEOUT), found.rules)
    made = profiles.literal if way == LITERAL else profiles.paper
    return made(variant, c=c, f=f)  # type: ignore[arg-type]


# One run of each trace: what happened in it.


def holes(way: str, variant: str, seed: int) -> set[str]:
    """One election among members of which c lack the best-ranked; messages get lost. The initiator lists it."""
    random = Random(f"{seed}/literal/holes")
    c, f = random.randint(1, 4), random.randint(0, 1)
    names = by_rank(NAME, names_of(c + f + 3))
    best, others = names[0], names[1:]
    lacking = open_holes("static", best, others, c, seed)
    lackers = {viewer for viewer, _ in lacking(0.0)}
    group = ElectionGroup(
        seed, names, profile_of(way, variant, c=c, f=f), lambda world, board: Holes(world, board, lacking), link=LOSSY, table=way == SHIPS
    )
    right = names_best(group, random.choice([name for name in others if name not in lackers]), best)
    return {UNENDED} if right is None else set() if right else {WRONG}


def orders(way: str, variant: str, seed: int) -> set[str]:
    """Lists that lack members, and members that others hold to be ill, until all lists agree; no message is lost."""
    random = Random(f"{seed}/literal/orders")
    names, c = names_of(random.randint(5, 9)), random.randint(2, 3)
    lacking = frozenset((viewer, member) for member in names for viewer in random.sample([each for each in names if each != member], c))
    ill = _healths(random, names)
    return _lived(way, variant, seed, names, c, lambda now: lacking if now < APART else frozenset(), ill)


def exclusions(way: str, variant: str, seed: int) -> set[str]:
    """Lists are equal, and each member holds three others to be ill."""
    random = Random(f"{seed}/literal/exclusions")
    names = names_of(random.randint(6, 9))
    return _lived(way, variant, seed, names, random.randint(2, 3), lambda now: frozenset(), _healths(random, names))


def healthy(way: str, variant: str, seed: int) -> set[str]:
    """Lists are equal, and no member is ill."""
    random = Random(f"{seed}/literal/healthy")
    return _lived(way, variant, seed, names_of(random.randint(3, 9)), random.randint(1, 2), lambda now: frozenset(), {})


def partition(way: str, variant: str, seed: int) -> set[str]:
    """From the beginning there are two sides; all lists show it, and later that it is over."""
    random = Random(f"{seed}/literal/partition")
    names = names_of(random.randint(6, 9))
    shuffled, middle = random.sample(names, len(names)), random.randint(3, len(names) - 3)
    here, there = shuffled[:middle], shuffled[middle:]
    parted = frozenset((viewer, member) for one, other in ((here, there), (there, here)) for viewer in one for member in other)
    cut = Partition(0.0, APART, (tuple(here), tuple(there)))
    return _lived(way, variant, seed, names, 1, lambda now: parted if now < APART else frozenset(), {}, cut)


def _healths(random: Random, names: Sequence[str]) -> dict[str, list[str]]:
    return {viewer: random.sample([name for name in names if name != viewer], 3) for viewer in names}


def _lived(
    way: str,
    variant: str,
    seed: int,
    names: Sequence[str],
    c: int,
    lacking: Callable[[float], frozenset[Hole]],
    ill: Mapping[str, Sequence[str]],
    cut: Partition | None = None,
) -> set[str]:
    """A group that begins elections by itself, from the first until all has been calm for long."""
    restarts: set[str] = set()

    def direct(world: World, board: Board) -> Holes:
        for viewer, members in ill.items():
            found = {world.nodes[name].me: float(number + 1) for number, name in enumerate(members)}
            world.nodes[viewer].node.use(ScriptedLists).health = found
        world.listeners.append(lambda host, event: restarts.update(_restart(host, event)))
        if cut is not None:
            cut.begin(world)
        return Holes(world, board, lacking)

    profile = profile_of(way, variant, c=c, f=1)
    group = ElectionGroup(seed, names, profile, direct, link=LINK, watching=True, table=way == SHIPS)
    group.run(APART + HEALED)
    found = set(restarts)
    if not group.until(lambda: _one_leads(group), LOOKS):
        found.add(UNENDED)
    return found | _terms(group)


def _terms(group: ElectionGroup) -> set[str]:
    """Who led under which."""
    led: dict[int, set[str]] = {}
    for _, name, term in group.elected:
        led.setdefault(term, set()).add(name)
    named: dict[tuple[str, int, int], set[str]] = {}
    for initiator, event in group.nominated:
        named.setdefault((initiator, event.eid, event.term), set()).add(event.nominee.name)
    reused = any(len(nominees & led.get(term, set())) > 1 for (_, _, term), nominees in named.items())
    shared = any(len(leaders) > 1 for leaders in led.values())
    return {what for what, happened in ((REUSED, reused), (SHARED, shared)) if happened}


def _one_leads(group: ElectionGroup) -> bool:
    """All know it, and it does."""
    leader = group.agreed()
    active = [name for name in group.names if group.state(name).role is Role.ACTIVE]
    return leader is not None and active == [leader]


def _restart(host: LabHost, event: Event) -> set[str]:
    """E11, H410: with how little an election began anew."""
    if not isinstance(event, Initiated) or event.why != "empty":
        return set()
    before = Life(host, host.node.use(Elections)).finished(NAME)
    assert before is not None
    early = len(before.answers) <= before.c
    needless = any(value <= 0 for value in before.excluded.values())
    return {what for what, happened in ((EARLY, early), (NEEDLESS, needless)) if happened}


RUNS: Mapping[str, Callable[[str, str, int], set[str]]] = {
    "holes": holes,
    "orders": orders,
    "exclusions": exclusions,
    "healthy": healthy,
    "partition": partition,
}

EXPERIMENT = LiteralPaper()
