"""kit/phase-loss: how often does a phase reach a majority under loss, by which try, and is that what the arithmetic says?

Spec: foundation 4 (Call / Phase); tickets 3. A request and its answer both arrive with (1-p)^2, so a member has answered by try t with
q(t) = 1 - (1 - (1-p)^2)^t. The asker is a member too and its own vote is free: the phase has won by try t when at least
need - 1 of the N - 1 others have answered, which is binomial. A try that takes no time but the way there and back makes instants exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import exp, isclose, lgamma, log
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.host import Address, Host, Message, NodeId
from holdfast.kit.phase import Phase, PhaseEnd, Questions, majority
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.kit.ballots import BallotAsk, BallotVote
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVERY = 0.2  # tickets 4: rtx
DELAY = 0.005  # of each message: a try is over long before the next one
ROUNDING = 1e-6  # instants are sums of floats
CONFIDENCE = 0.99  # that every share of a run is inside its interval, all of them taken together
SOME = Meta(min_length=1, max_length=LIST_MAX)


class PhaseParameters(Parameters, frozen=True, kw_only=True):
    """Every phase is a repetition."""

    members: Annotated[tuple[Annotated[int, Meta(ge=2, le=64)], ...], SOME] = (3, 5, 7)  # F17: a phase asks at most 64
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.9)], ...], SOME] = (0.0, 0.1, 0.3, 0.5)
    tries: Annotated[int, Meta(ge=1, le=20)] = 3  # until the timeout; with more, all losses look alike
    phases: Annotated[int, Meta(ge=1, le=100_000)] = 4000  # per setting


class Voter:
    """Asks by the real ``Phase``, and answers yes at once."""

    handles = (BallotAsk, BallotVote)
    fingerprint = b""

    def __init__(self, host: Host, names: Sequence[str]) -> None:
        self._host, self._names = host, names
        self._questions = Questions()
        self.ends: list[tuple[bool, float]] = []  # won, seconds since it was asked

    def open(self, tries: int) -> None:
        me = self._host.me
        members = {name: None if name == me.name else NodeId(name, 1) for name in self._names}
        phase: Phase[str] = Phase(
            self._host,
            self._questions,
            members,
            partial(BallotAsk, ballot=1),
            every=EVERY,
            timeout=_timeout(tries),
            enough=majority(members),
            done=self._on_end,
        )
        phase.start()
        self._questions.answer(phase.serial, me.name, BallotVote(phase.serial, yes=True))

    def start(self) -> None:
        """Lives are known, so that no try is spent on finding out who is there (F3)."""
        for name in self._names:
            self._host.meet(NodeId(name, 1), Address(name, PORT))

    def stop(self) -> None:
        """Nothing runs by itself."""

    def on_away(self, seconds: float) -> None:
        """No process is paused here."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, BallotAsk):
            self._host.send(source, BallotVote(message.serial, yes=True))
        else:
            assert isinstance(message, BallotVote)
            self._questions.answer(message.serial, source.name, message, yes=message.yes)

    def _on_end(self, end: PhaseEnd[str]) -> None:
        self.ends.append((end.won, self._host.now - end.asked_at))


class PhaseLoss(Experiment[PhaseParameters]):
    """One member asks, again and again, over links that lose."""

    id = "kit/phase-loss"
    name = "kit/phase-under-loss"
    title = "A phase under loss: how often a majority, and by which try"
    source = "foundation 4 (Call / Phase); tickets 3"
    criterion = (
        "for every group, loss and try, the share of phases that have won lies within the exact binomial interval of the closed form "
        "(99 % for all of them together), and every phase ends a round trip after a try or at its timeout"
    )
    parameters = PhaseParameters
    seconds_per_cell = 0.064
    repetitions = "phases"
    quick: ClassVar[Mapping[str, str]] = {"phases": "400"}

    def cells(self, parameters: PhaseParameters, seed: int) -> Sequence[Cell]:
        shared = {"tries": parameters.tries, "phases": parameters.phases}
        settings = [(members, loss) for members in parameters.members for loss in parameters.losses]
        return [
            {"members": members, "loss": loss, "seed": seed * 10_000 + number, **shared} for number, (members, loss) in enumerate(settings)
        ]

    def measure(self, cell: Cell) -> Measured:
        names = [f"n{i}" for i in range(cell["members"])]
        world = World(cell["seed"], lambda host: [Voter(host, names)], names=names, link=Link(Fixed(DELAY), loss=cell["loss"]))
        voter = world.nodes[names[0]].node.use(Voter)
        for number in range(cell["phases"]):
            world.soon(partial(voter.open, cell["tries"]))
            world.run((number + 1) * cell["tries"] * EVERY)
        instants = [EVERY * number + 2 * DELAY for number in range(cell["tries"])]
        seconds = [seconds for won, seconds in voter.ends if won]
        by_try = [sum(s <= instant + ROUNDING for s in seconds) for instant in instants]
        on_time = sum(_is_one_of(s, instants if won else [_timeout(cell["tries"])]) for won, s in voter.ends)
        return {**cell, "won": by_try, "stray": cell["phases"] - on_time, "seconds": sum(seconds) / max(1, len(seconds))}

    def judge(self, parameters: PhaseParameters, results: Sequence[Measured]) -> Finding:
        doubt = (1 - CONFIDENCE) / sum(result["tries"] for result in results)
        rows = [_row(result, doubt) for result in results]
        notes = [note for row in rows for note in _misses(row)]
        expected = [row.pop("expected") for row in rows]
        return Finding(_by_setting(rows), _by_setting(expected), not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        measured, expected = finding.measured["settings"], finding.expected["settings"]
        for members in dict.fromkeys(row["members"] for row in measured):
            rows = [(row, closed) for row, closed in zip(measured, expected, strict=True) if row["members"] == members]
            losses = [row["loss"] for row, _ in rows]
            for axes, key in ((left, "share"), (right, "seconds")):
                (line,) = axes.plot(losses, [closed[key] for _, closed in rows], linestyle="--", linewidth=1)
                axes.plot(losses, [row[key] for row, _ in rows], "o", color=line.get_color(), label=f"N = {members}")
        left.set_ylabel("share of phases that reached a majority")
        right.set_ylabel("mean seconds of those that did")
        for axes in (left, right):
            axes.set_xlabel("loss (dashed: closed form)")
            axes.legend()


def won_by(members: int, loss: float, tries: int) -> float:
    """P(a majority by this try): the binomial tail over the others, of whom one less than a majority is needed."""
    others, need = members - 1, members // 2
    answered = 1 - (1 - (1 - loss) ** 2) ** tries
    return min(1.0, sum(_chance(others, answered, k) for k in range(need, others + 1)))


def interval(draws: int, chance: float, doubt: float) -> tuple[int, int]:
    """The fewest and the most successes that are not surprising: each tail beyond them has less than half of ``doubt``."""
    return _quantile(draws, chance, doubt / 2), draws - _quantile(draws, 1 - chance, doubt / 2)


def _quantile(draws: int, chance: float, doubt: float) -> int:
    """The smallest k with P(X <= k) >= doubt."""
    total = 0.0
    for k in range(draws):
        total += _chance(draws, chance, k)
        if total >= doubt:
            return k
    return draws


def _chance(draws: int, chance: float, k: int) -> float:
    """P(X = k) of a binomial, by logarithms: the coefficients of a thousand draws are no floats."""
    if chance in (0.0, 1.0):
        return float(k == draws * chance)
    ways = lgamma(draws + 1) - lgamma(k + 1) - lgamma(draws - k + 1)
    return exp(ways + k * log(chance) + (draws - k) * log(1 - chance))


def _timeout(tries: int) -> float:
    """Half an interval after the last try that it leaves room for."""
    return EVERY * (tries - 0.5)


def _is_one_of(seconds: float, instants: Sequence[float]) -> bool:
    return any(isclose(seconds, instant, abs_tol=ROUNDING) for instant in instants)


def _row(result: Measured, doubt: float) -> dict[str, Any]:
    phases, tries = result["phases"], range(1, result["tries"] + 1)
    chances = [won_by(result["members"], result["loss"], t) for t in tries]
    first = [after - before for before, after in zip([0.0, *chances], chances, strict=False)]
    seconds = sum(chance * (EVERY * (t - 1) + 2 * DELAY) for t, chance in zip(tries, first, strict=True)) / chances[-1]
    expected = {
        "members": result["members"],
        "loss": result["loss"],
        "share": round(chances[-1], 6),
        "seconds": round(seconds, 6),
        "won": [list(interval(phases, chance, doubt)) for chance in chances],
        "stray": 0,
    }
    share = round(result["won"][-1] / phases, 6)
    return {**result, "share": share, "seconds": round(result["seconds"], 6), "expected": expected}


def _by_setting(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "share": {_label(row): row["share"] for row in rows},
        "mean seconds": {_label(row): row["seconds"] for row in rows},
        "settings": [dict(row) for row in rows],
    }


def _label(row: Mapping[str, Any]) -> str:
    return f"N={row['members']}, loss={row['loss']:.0%}"


def _misses(row: Mapping[str, Any]) -> list[str]:
    setting = _label(row)
    bounds = zip(row["won"], row["expected"]["won"], strict=True)
    notes = [
        f"{setting}: {won} of {row['phases']} phases had won by try {number}, expected {low} to {high}"
        for number, (won, (low, high)) in enumerate(bounds, start=1)
        if not low <= won <= high
    ]
    if row["stray"]:
        notes.append(f"{setting}: {row['stray']} phases ended at an instant that is neither a round trip after a try nor the timeout")
    return notes


EXPERIMENT = PhaseLoss()
