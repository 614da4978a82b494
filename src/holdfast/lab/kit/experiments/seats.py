"""kit/seats-restart: when does a seat grant again after a restart, and does the former holder always end first?

Spec: foundation 4 (Seats), F8, F13; tickets 5.2. How long a promise runs is not on disk, so a seat that comes back waits for the
longest length it ever granted: ``wait_length`` of it, on its own clock, from the moment it opens. In each run one candidate holds and stops
renewing, a majority of the seats restarts (fewer could not let another candidate win), and a second candidate asks all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.host import Address, Host, Machine, Message, NodeId
from holdfast.kit.deadline import RHO_MAX, Deadline, holder_length, wait_length
from holdfast.kit.keeper import MARGIN
from holdfast.kit.phase import Phase, PhaseEnd, Questions, majority
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.kit.seats import Seats
from holdfast.kit.slots import COUNTS, Slot
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.kit.claims import KEY, Claim, ClaimAnswer
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 0.05  # seconds between two asks of a candidate, on its clock
DELAY = 0.002  # of each message: fixed, so that asks arrive as regularly as they leave
REST_SECONDS = 0.02  # after the last ask: twice what a round trip and the lab's slowest write (5 ms) take
ROUNDING = 1e-6  # instants are sums of floats
LENGTH_MAX = 3.0  # what a candidate may ask for; less is asked for in most runs
FOUNDED_SECONDS = 10.0  # by then all have met, and the wait of a first start (that of ``LENGTH_MAX``) is over
DOWN_SECONDS_MAX = 0.5
RUNS_PER_CELL = 25
FORMER, NEXT = "former", "next"
Note = Callable[[NodeId, float, float], None]  # the seat, the length, and its clock at the decision


class SeatsParameters(Parameters, frozen=True, kw_only=True):
    """Every restart is a repetition."""

    seats: Annotated[tuple[Literal[1, 3, 5], ...], Meta(min_length=1, max_length=len(COUNTS))] = (1, 3, 5)
    drifts: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=RHO_MAX)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (0.0, 0.02)
    restarts: Annotated[int, Meta(ge=1, le=1_000_000)] = 200  # per setting


class NotedPromises(Promises):
    """Tells what is granted, and when that was decided: the write comes after."""

    def __init__(self, host: Host, seats: Seats, note: Note) -> None:
        super().__init__(host, host.storage.part("promises"), seats.keeper)
        self._noting, self._note = host, note

    def ask(self, key: str, holder: HolderId, number: int, length: float, then: Callable[[Answer], None]) -> None:
        decided_at = self._noting.now

        def noted(answer: Answer) -> None:
            if answer.granted:
                self._note(self._noting.me, length, decided_at)
            then(answer)

        super().ask(key, holder, number, length, noted)


class Desk:
    """Answers claims for a seat."""

    handles = (Claim,)
    fingerprint = b""

    def __init__(self, host: Host, seats: Seats, promises: Promises) -> None:
        self._host, self._seats, self._promises = host, seats, promises

    def start(self) -> None:
        """Nothing happens by itself."""

    def stop(self) -> None:
        """Nothing runs by itself."""

    def on_away(self, seconds: float) -> None:
        """No process is paused here."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Claim)
        slot = self._seats.own
        assert slot is not None

        def answer(it: Answer) -> None:
            self._host.send(source, ClaimAnswer(message.serial, slot, it.granted, it.number, it.wait, it.era))

        self._promises.ask(KEY, HolderId(source, 0), message.number, message.length, answer)


class Candidate:
    """Asks every ``PERIOD``, anew each time, until told to stop; holds while a majority's promise runs by its clock (F8)."""

    handles = (ClaimAnswer,)
    fingerprint = b""

    def __init__(self, host: Host, seats: Seats, rho: float) -> None:
        self._host, self._seats, self._rho = host, seats, rho
        self._questions = Questions()
        self._asking = False
        self.deadline = Deadline(host)
        self.won: Callable[[], None] = _nobody_listens

    def begin(self, number: int, length: float) -> None:
        self._asking = True
        self._on_period(number, length)

    def end(self) -> None:
        """Ask no more. What is held is held to its last instant."""
        self._asking = False

    def start(self) -> None:
        """Nothing happens by itself."""

    def stop(self) -> None:
        self._asking = False

    def on_away(self, seconds: float) -> None:
        """No process is paused here."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, ClaimAnswer)
        if self._seats.slot_of(source) == message.slot:
            self._questions.answer(message.serial, message.slot, message, yes=message.granted, era=message.era)

    def _on_counted(self, length: float, end: PhaseEnd[int]) -> None:
        if end.won and self._asking:
            self.deadline.extend(end.asked_at + holder_length(length, self._rho))
            self.won()

    def _on_period(self, number: int, length: float) -> None:
        if not self._asking:
            return
        self._host.after(PERIOD, partial(self._on_period, number, length))
        members = self._seats.addresses
        Phase(
            self._host,
            self._questions,
            members,
            lambda serial: Claim(serial, number, length),
            every=2 * PERIOD,  # once: the next question is a new one
            timeout=PERIOD,
            enough=majority(members),
            done=partial(self._on_counted, length),
        ).start()


class Restart:
    """One run: a group is founded, one candidate holds, seats restart, another wins."""

    def __init__(self, seed: int, seats: int, drift: float) -> None:
        self.random = Random(f"{seed}/restart")
        self.rho = drift
        self.places = [Slot(number, f"s{number}", Address(f"s{number}", PORT)) for number in range(seats)]
        self.longest: dict[str, float] = {}  # per seat, the longest length it granted before it went down
        self.opened_at: dict[str, float] = {}  # per seat, by the last life, on its clock
        self.granted_at: dict[str, float] = {}  # the first time after that
        self.won_at: float | None = None  # by the second candidate, in true time
        self.world = World(seed, self._build, link=Link(Fixed(DELAY)))
        for name in [slot.name for slot in self.places] + [FORMER, NEXT]:
            self.world.drift[name] = _rate(self.random, drift)
            self.world.start(name)

    def run(self) -> dict[str, Any]:
        world, random = self.world, self.random
        world.run(FOUNDED_SECONDS)
        former, following = (world.nodes[name].node.use(Candidate) for name in (FORMER, NEXT))
        length = random.uniform(0.2, 1.0) * LENGTH_MAX
        # A longer promise came before, in half of the runs: the wait is for the longest there ever was.
        for earlier in (random.choice((length, LENGTH_MAX)), length):
            world.run(world.now + 2 * PERIOD)  # The timer of the last ask finds that it was the last.
            world.soon(partial(former.begin, 1, earlier))
            world.run(world.now + random.uniform(4, 8) * PERIOD)
            former.end()
            world.run(world.now + REST_SECONDS)
        ends_at = world.now + former.deadline.remaining / world.nodes[FORMER].rate
        down = random.sample([slot.name for slot in self.places], len(self.places) // 2 + 1)
        world.run(world.now + random.choice((0.0, random.uniform(0, 1))) * (ends_at - world.now))
        following.won = self._on_won
        world.soon(partial(following.begin, 2, length))
        self._restart(down)
        world.run(world.now + 3 * LENGTH_MAX)
        return self._found(down, ends_at)

    def _restart(self, down: Sequence[str]) -> None:
        """All at once, so that no seat that knows better is left among them; each is back after a time of its own."""
        for name in down:
            self.world.crash(name)
            self.world.revive_after(self.random.choice((0.0, self.random.uniform(0, DOWN_SECONDS_MAX))), name)

    def _found(self, down: Sequence[str], ends_at: float) -> dict[str, Any]:
        late = {
            name: self.granted_at[name] - self.opened_at[name] - wait_length(self.longest[name], self.rho, MARGIN)
            for name in down
            if name in self.granted_at
        }
        gap = None if self.won_at is None else self.won_at - ends_at
        return {"late": list(late.values()), "silent": len(down) - len(late), "gap": gap}

    def _build(self, host: Host) -> Iterable[Machine]:
        own = next((slot.number for slot in self.places if slot.name == host.me.name), None)
        seats = Seats(host, self.places, own, machine=host.me.name, rho=self.rho, length_max=LENGTH_MAX)
        if own is None:
            return seats, Candidate(host, seats, self.rho)
        self.opened_at[host.me.name] = host.now  # F13 counts from the start: whatever the former life granted, it granted before.
        return seats, Desk(host, seats, NotedPromises(host, seats, self._on_granted))

    def _on_granted(self, seat: NodeId, length: float, decided_at: float) -> None:
        if seat.boot == 1:
            self.longest[seat.name] = max(length, self.longest.get(seat.name, 0.0))
        else:
            self.granted_at.setdefault(seat.name, decided_at)

    def _on_won(self) -> None:
        if self.won_at is None:
            self.won_at = self.world.now


class SeatsRestart(Experiment[SeatsParameters]):
    """Clocks at the ends of what rho allows, and between; restarts at any moment of a hold."""

    id = "kit/seats-restart"
    name = "kit/restart-wait"
    title = "A seat restarts: when it grants again, and who holds meanwhile"
    source = "foundation 4 (Seats), F8, F13; tickets 5.2"
    criterion = (
        "every restarted seat grants again, never before wait_length(longest granted) on its own clock and at most one asking period "
        "later; the smallest gap between two holders is at least 0 in true time"
    )
    parameters = SeatsParameters
    seconds_per_cell = 0.15
    repetitions = "restarts"
    quick: ClassVar[Mapping[str, str]] = {"restarts": "25"}

    def cells(self, parameters: SeatsParameters, seed: int) -> Sequence[Cell]:
        cells: list[Cell] = []
        for seats in parameters.seats:
            for drift in parameters.drifts:
                for first in range(0, parameters.restarts, RUNS_PER_CELL):
                    share = min(RUNS_PER_CELL, parameters.restarts - first)
                    cells.append({"seats": seats, "drift": drift, "restarts": share, "seed": (seed * 100_000 + len(cells)) * RUNS_PER_CELL})
        return cells

    def measure(self, cell: Cell) -> Measured:
        runs = [Restart(cell["seed"] + number, cell["seats"], cell["drift"]).run() for number in range(cell["restarts"])]
        return {**cell, "runs": runs}

    def judge(self, parameters: SeatsParameters, results: Sequence[Measured]) -> Finding:
        settings = dict.fromkeys((r["seats"], r["drift"]) for r in results)
        rows = [_summed([r for r in results if (r["seats"], r["drift"]) == setting]) for setting in settings]
        notes = [note for row in rows for note in _misses(row)]
        measured = {
            "earliest grant after wait_length": {_label(row): row["late_min"] for row in rows},
            "latest grant after wait_length": {_label(row): row["late_max"] for row in rows},
            "smallest gap between holders": {_label(row): row["gap_min"] for row in rows},
            "settings": rows,
        }
        expected = {
            "earliest grant after wait_length": {_label(row): 0.0 for row in rows},
            "latest grant after wait_length": {_label(row): round(late_max(row["drift"]), 6) for row in rows},
            "smallest gap between holders": {_label(row): 0.0 for row in rows},
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        rows = [row for row in finding.measured["settings"] if row["late_min"] is not None and row["gap_min"] is not None]
        places = range(len(rows))
        for place, row in zip(places, rows, strict=True):
            above.plot([place, place], [row["late_min"] * 1000, row["late_max"] * 1000], marker="_", linewidth=3)
            above.plot([place - 0.3, place + 0.3], [late_max(row["drift"]) * 1000] * 2, color="#7b8794", linestyle="--")
        above.axhline(0, color="#7b8794")
        above.set_ylabel("first grant after\nwait_length, ms")
        below.bar(places, [row["gap_min"] * 1000 for row in rows])
        below.axhline(0, color="#7b8794")
        below.set_ylabel("smallest gap between\ntwo holders, ms")
        below.set_xticks(list(places), [f"{row['seats']} seats\ndrift {row['drift']:.0%}" for row in rows])


def late_max(rho: float) -> float:
    """One asking period, as another clock may count it."""
    return wait_length(PERIOD, rho, 0)


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['seats']} seats, drift {row['drift']:.1%}"


def _summed(parts: Sequence[Measured]) -> dict[str, Any]:
    runs = [run for part in parts for run in part["runs"]]
    late = [seconds for run in runs for seconds in run["late"]]
    gaps = [run["gap"] for run in runs if run["gap"] is not None]
    return {
        "seats": parts[0]["seats"],
        "drift": parts[0]["drift"],
        "restarts": len(runs),
        "silent": sum(run["silent"] for run in runs),
        "nobody_won": len(runs) - len(gaps),
        "late_min": round(min(late), 6) if late else None,
        "late_max": round(max(late), 6) if late else None,
        "gap_min": round(min(gaps), 6) if gaps else None,
    }


def _misses(row: Mapping[str, Any]) -> list[str]:
    setting = _label(row)
    notes = []
    if row["silent"] or row["nobody_won"]:
        notes.append(f"{setting}: {row['silent']} restarted seats never granted again, in {row['nobody_won']} runs nobody won")
    if row["late_min"] is not None and row["late_min"] < -ROUNDING:
        notes.append(f"{setting}: a seat granted {-row['late_min']} s before wait_length was over")
    if row["late_max"] is not None and row["late_max"] > late_max(row["drift"]) + ROUNDING:
        notes.append(f"{setting}: a seat granted {row['late_max']} s after wait_length, at most {late_max(row['drift']):.6f} s are allowed")
    if row["gap_min"] is not None and row["gap_min"] < 0:
        notes.append(f"{setting}: two holders for {-row['gap_min']} s of true time")
    return notes


def _rate(random: Random, drift: float) -> float:
    """Two of three draws are the extremes: that is where formulas break."""
    return 1 + drift * random.choice((-1.0, 1.0, random.uniform(-1, 1)))


def _nobody_listens() -> None:
    """A candidate whose success is not waited for."""


EXPERIMENT = SeatsRestart()
