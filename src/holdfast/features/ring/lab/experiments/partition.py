"""ring/E12: a ring is cut in two or three; who has to leave, who stays, and are all back after the heal?

Spec: ring 8 (E12), 1 (partition), D13, D19, D20; paper 000, VI-C. A side is counted twice: who is still in the ring that was cut, and who
is in any ring, because members that were put out may found another one (D20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.ring.lab.measures import is_lost, mean, quartiles
from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPLITS: Mapping[str, tuple[float, ...]] = {
    "90/10": (0.9, 0.1),
    "70/30": (0.7, 0.3),
    "50/50": (0.5, 0.5),
    "three-way": (0.34, 0.33, 0.33),
}
SMALL, LARGE = JUDGED = "90/10", "70/30"  # whose majority is asked to stay
SHARES_MEMBERS = 64  # in a smaller ring a group spans so much of it that shares of it say nothing about what the spec asks for
BIN = 0.05  # of a majority
DIP_MAX = 0.15  # of a majority of 70 %
EMPTY_BY = 20  # in T_l: a minority of 30 % is out
BACK_BY = 100  # in T_l after the heal
WARM_UP = 5  # in T_l, which is 1 s


class PartitionParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, E12."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 20  # runs per split
    members: Annotated[int, Meta(ge=10, le=200)] = 64
    heal: Annotated[int, Meta(ge=20, le=1000)] = 60  # in T_l after the cut
    doors: Annotated[int, Meta(ge=1, le=15)] = 3  # members whose addresses all have: where to knock, and who may found (D20)


class Partition(Experiment[PartitionParameters]):
    """Random members on each side. A member that is put out tries to come back."""

    id = "ring/E12"
    name = "ring/partition"
    title = "Partitions: the minority drains, the majority heals, all come back"
    source = "paper 000, VI-C; ring 8, E12"
    criterion = (
        "I1 to I14 hold; 10 % cut off: the others lose nobody; 30 %: the others dip by at most 15 % and are complete again before the heal"
        ", the minority is out within 20 T_l; always: everybody is back in one ring within 100 T_l of the heal"
    )
    parameters = PartitionParameters
    seconds_per_cell = 1.7
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "members": "16"}

    def cells(self, parameters: PartitionParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "heal": parameters.heal, "doors": parameters.doors}
        return [{"split": split, "seed": seed * SEEDS_MAX + number, **setting} for split in SPLITS for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: PartitionParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        runs = {split: [row for row in rows if row["split"] == split] for split in SPLITS}
        shares = parameters.members >= SHARES_MEMBERS
        noted = {split: [note for row in runs[split] if (note := "; ".join(_misses(row, shares=shares)))] for split in SPLITS}
        misses = [*violations(results), *(note for split in SPLITS for note in noted[split])]
        unjudged = () if shares else (f"not judged below {SHARES_MEMBERS} members: how many of a majority leave",)
        measured: dict[str, Any] = {what: {split: _range(runs[split], what) for split in SPLITS} for what in _RANGES}
        measured["runs that miss"] = {split: f"{len(noted[split])} of {len(runs[split])}" for split in SPLITS}
        measured["share of the majority lost at the lowest point"] = {split: _spread([_dip(r) for r in runs[split]]) for split in SPLITS}
        measured["share that the cut itself costs"] = {split: _spread([_doomed_share(r) for r in runs[split]]) for split in SPLITS}
        measured["runs in which the majority of 70 % dips by more than 15 %"] = sum(_dips(row) for row in runs[LARGE])
        measured["departures before the heal that no group explains"] = sum(row["unexplained"] for row in rows)
        measured["runs not back in time"] = sum(row["back after"] is None for row in rows)
        measured["runs in which two rings were there at once"] = {
            split: sum(row["twin T_l"] > 0 for row in runs[split]) for split in SPLITS
        }
        measured["violations"] = len(violations(results))
        measured["dips"] = [{"split": split, "bins": _bins([_dip(row) for row in runs[split]])} for split in JUDGED]
        measured["sizes"] = [_mean_sizes(split, runs[split]) for split in SPLITS if runs[split]]
        expected = {
            "share of the majority lost at the lowest point": {SMALL: "all 0", LARGE: f"all <= {DIP_MAX}"},
            "runs in which the majority of 70 % dips by more than 15 %": 0,
            "departures before the heal that no group explains": 0,
            "runs not back in time": 0,
            "violations": 0,
        }
        return Finding(measured, expected, not misses, (*shortened(misses), *unjudged))

    def draw(self, figure: Figure, finding: Finding) -> None:
        places = figure.subplots(2, 3).flatten()
        for place, dips in zip(places[4:], finding.measured["dips"], strict=True):
            _draw_dips(place, dips)
        for place, row in zip(places[:4], finding.measured["sizes"], strict=True):
            for number, (old, any_ring) in enumerate(zip(row["in the ring that was cut"], row["in any ring"], strict=True)):
                (drawn,) = place.plot(range(len(any_ring)), any_ring, label=f"side of {row['sides'][number]}")
                place.plot(range(len(old)), old, linestyle=":", color=drawn.get_color())
            place.axvline(row["heal"], color="#7b8794", linewidth=0.8)
            place.plot([], [], linestyle=":", color="#7b8794", label="in the ring that was cut")
            place.set_title(f"{row['split']}, mean of {row['runs']} runs")
            place.set_xlabel("T_l since the cut; the line is the heal")
            place.set_ylabel("members of a ring")
            place.set_ylim(bottom=0)
            place.legend(fontsize=7, loc="lower right")


def _draw_dips(place: Axes, dips: Mapping[str, Any]) -> None:
    allowed = 0.0 if dips["split"] == SMALL else DIP_MAX
    place.bar([i * BIN for i in range(len(dips["bins"]))], dips["bins"], BIN * 0.9, align="edge")
    place.axvline(allowed, color="#b42318", linestyle="--", label=f"asked for: at most {allowed:.0%}")
    place.set_title(f"{dips['split']}: how deep the majority falls")
    place.set_xlabel("share of the majority that had left at the lowest point")
    place.set_ylabel("runs")
    place.set_xlim(0, 1)
    place.legend(fontsize=7)


class Departures:
    """Who leaves before the heal, and whether a group without a majority within reach explains it."""

    def __init__(self, rings: Observed, sides: Sequence[Sequence[str]]) -> None:
        self._rings = rings
        self._side = {name: set(side) for side in sides for name in side}
        self.left: list[str] = []
        self.unexplained = 0
        self.healed = False
        self.doomed = self._doomed(sides[0])
        rings.world.listeners.append(self._on_event)

    def _doomed(self, side: Sequence[str]) -> int:
        """Arithmetic: members with a peer beyond the cut about which their own side cannot decide, whatever happens next."""
        here = {self._rings.members[name].id for name in side}
        return sum(
            any(pair.peer.id not in here and is_lost(ring, pair, here) for pair in ring.pairs.values())
            for ring in map(self._rings.members.__getitem__, side)
        )

    def _on_event(self, host: LabHost, event: Event) -> None:
        if not isinstance(event, Departed) or not event.was_member or self.healed:
            return
        self.left.append(host.me.name)
        ring = self._rings.members[host.me.name]
        reachable = {each.id for each in self._rings.alive if each.raw.me.name in self._side[host.me.name]} | {ring.id}
        lost = any(pair.susp is not None and is_lost(ring, pair, reachable) for pair in ring.pairs.values())
        # An isolated one could not reach a majority of the list (D19), a twin goes where the seeds are (D20).
        self.unexplained += not lost and event.reason not in ("isolated", "twin")


def _play(cell: Cell) -> Measured:
    names = names_of(cell["members"])
    rings = Observed(cell["seed"], names, RingConfig(), seeds=names[: cell["doors"]])
    world = rings.world
    sides = _sides(world.random.sample(names, len(names)), SPLITS[cell["split"]])
    rings.form(names)
    world.run(WARM_UP)
    number = rings.members[names[0]].ring
    departures = Departures(rings, sides)
    world.network.partition("cut", sides)
    old, any_ring, twins = [_sizes(rings, sides, number)], [_sizes(rings, sides)], 0
    for t in range(1, cell["heal"] + BACK_BY + 1):
        world.run(WARM_UP + t)
        old.append(_sizes(rings, sides, number))
        any_ring.append(_sizes(rings, sides))
        twins += len({ring.ring for ring in rings.alive}) > 1
        if t == cell["heal"]:
            world.network.heal("cut")
            departures.healed = True
        elif t > cell["heal"] and rings.whole:
            break
    majority = [sizes[0] for sizes in old[: cell["heal"] + 1]]
    others = [sum(sizes[1:]) for sizes in old[: cell["heal"] + 1]]
    return {
        "split": cell["split"],
        "seed": cell["seed"],
        "heal": cell["heal"],
        "sides": [len(side) for side in sides],
        "majority left": sum(name in sides[0] for name in departures.left),
        "doomed": departures.doomed,
        "lowest majority": min(majority),
        "majority at the heal": majority[-1],
        "minority out after": _first_zero(others),
        "back after": len(old) - 1 - cell["heal"] if rings.whole else None,
        "twin T_l": twins,
        "unexplained": departures.unexplained,
        "old": old,
        "any": any_ring,
    }


_RANGES = ("lowest majority", "majority at the heal", "minority out after", "back after", "majority left", "twin T_l")


def _sides(mixed: Sequence[str], shares: Sequence[float]) -> list[list[str]]:
    sides, begin, total = [], 0, 0.0
    for share in shares:
        total += share
        end = round(min(1.0, total) * len(mixed))
        sides.append(list(mixed[begin:end]))
        begin = end
    return sides


def _sizes(rings: Observed, sides: Sequence[Sequence[str]], number: int | None = None) -> list[int]:
    """Members on each side, of one ring or of any."""
    alive = {ring.raw.me.name for ring in rings.alive if number in (None, ring.ring)}
    return [sum(name in alive for name in side) for side in sides]


def _first_zero(sizes: Sequence[int]) -> int | None:
    """From when on no member was left; None if one was at the end."""
    if sizes[-1]:
        return None
    return next(t for t in range(len(sizes)) if not any(sizes[t:]))


def _dips(row: Measured) -> bool:
    return bool(row["lowest majority"] < (1 - DIP_MAX) * row["sides"][0])


def _dip(row: Measured) -> float:
    return 1 - float(row["lowest majority"]) / float(row["sides"][0])


def _doomed_share(row: Measured) -> float:
    return float(row["doomed"]) / float(row["sides"][0])


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "nothing was measured"
    low, middle, high = quartiles(values)
    return f"{min(values):.3f} / {low:.3f} / {middle:.3f} / {high:.3f} / {max(values):.3f}"


def _bins(values: Sequence[float]) -> list[int]:
    counts = [0] * (round(1 / BIN) + 1)
    for each in values:
        counts[int(each / BIN + 1e-9)] += 1
    return counts


def _misses(row: Measured, *, shares: bool) -> list[str]:
    """``shares``: the ring is large enough to be asked how many of a side leave."""
    told, notes, majority = f"{row['split']}, seed {row['seed']}", [], row["sides"][0]
    if shares and row["split"] == SMALL and row["majority left"]:
        notes.append(f"{told}: {row['majority left']} of the {majority} left")
    if shares and row["split"] == LARGE:
        if _dips(row):
            notes.append(f"{told}: the majority of {majority} fell to {row['lowest majority']}, {DIP_MAX:.0%} are allowed")
        if row["majority at the heal"] < majority:
            notes.append(f"{told}: {row['majority at the heal']} of {majority} were in the ring at the heal")
    if row["split"] == LARGE and (row["minority out after"] is None or row["minority out after"] > EMPTY_BY):
        notes.append(f"{told}: the minority was out after {row['minority out after']} T_l, {EMPTY_BY} are allowed")
    if row["unexplained"]:
        notes.append(f"{told}: {row['unexplained']} departures are not explained by a group without a majority within reach")
    if row["back after"] is None:
        notes.append(f"{told}: not everybody was back in one ring {BACK_BY} T_l after the heal")
    return notes


def _range(rows: Sequence[Measured], what: str) -> str:
    """Lowest, middle and highest; a run in which it never happened counts as the highest."""
    values = sorted((row[what] for row in rows), key=lambda value: (value is None, value))
    if not values:
        return "nothing was measured"
    return " / ".join("never" if each is None else str(each) for each in (values[0], values[len(values) // 2], values[-1]))


def _mean_sizes(split: str, rows: Sequence[Measured]) -> dict[str, Any]:
    longest = max(len(row["old"]) for row in rows)
    sides = range(len(rows[0]["sides"]))

    def means(what: str) -> list[list[float]]:
        # A run ends when all are back: from then on nothing changes any more.
        return [[round(mean([row[what][min(t, len(row[what]) - 1)][side] for row in rows]), 2) for t in range(longest)] for side in sides]

    return {
        "split": split,
        "runs": len(rows),
        "heal": rows[0]["heal"],
        "sides": rows[0]["sides"],
        "in the ring that was cut": means("old"),
        "in any ring": means("any"),
    }


EXPERIMENT = Partition()
