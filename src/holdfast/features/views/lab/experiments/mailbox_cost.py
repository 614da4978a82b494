"""views/Z2: what does a message cost that goes by the servers: alone, one sender as fast as it can, and many at a time?

Spec: views 8 (Z2), 5Z (carry), D23; paper 003, 7.2.2. A message by ZooKeeper is a znode that is written, seen, read and deleted, on a real
ensemble in real time, where it is installed. One process plays all members, and says how much of a core it needed. Messages by our servers
are those of the simulator, which knows delays and limits and no processors: it says whether the protocol lets the load pass.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.views.lab.ensemble import Ensemble, missing
from holdfast.features.views.lab.experiments.table1_failures import MISSING, MOSHE, ZOOKEEPER, BackEnd
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.mailboxes import Mailbox, close_boxes, open_boxes
from holdfast.features.views.lab.measures import form
from holdfast.features.views.lab.users import Answered, Habits
from holdfast.features.views.lab.wires import Wires
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.host import Carried
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations
from holdfast.lab.samples import quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS = 3
BODY = bytes(100)
ALONE, PIPELINED, AT_ONCE, LOAD = "alone", "one sender", "all at once", "all members"
SUSTAINED_SHARE = 0.99  # of the messages that are offered
FORMED_BY = 20.0
AFTER = ViewsConfig().ov_deadline + 1.0  # seconds: by then every message has its result
LOOK_INTERVAL = 0.002
INTERVAL = 0.5  # seconds between two bursts of a member


class MailboxParameters(Parameters, frozen=True, kw_only=True):
    """The load of section 7.2.2: 182 members with 8 messages each per 0.5 s."""

    back_ends: Annotated[tuple[BackEnd, ...], Meta(min_length=1, max_length=LIST_MAX)] = (MOSHE, ZOOKEEPER)
    members: Annotated[int, Meta(ge=4, le=1000)] = 182
    burst: Annotated[int, Meta(ge=1, le=100)] = 8
    seconds: Annotated[float, Meta(ge=1.0, le=600.0)] = 10.0  # of each measurement
    messages: Annotated[int, Meta(ge=10, le=100_000)] = 200  # one after the other
    window: Annotated[int, Meta(ge=1, le=4096)] = 64  # under way from one sender
    sessions: Annotated[int, Meta(ge=2, le=64)] = 6  # that the members share


class MailboxCost(Experiment[MailboxParameters]):
    """A message alone, one sender with many under way, and the load of the paper. On an ensemble also what it can carry: every member has
    one message under way all the time."""

    id = "views/Z2"
    name = "views/mailbox-cost"
    title = "Messages by the servers: latency, and the load of 182 members"
    source = "paper 003, 7.2.2; views 8, Z2"
    criterion = (
        f"the rate is measured, and whether the load is sustained is said ({100 * SUSTAINED_SHARE:.0f} % delivered before their deadline); "
        "alone every message is delivered"
    )
    parameters = MailboxParameters
    seconds_per_cell = 60  # most of them waiting, where it is a real ensemble
    quick: ClassVar[dict[str, str]] = {"back_ends": '["moshe"]', "members": "12", "seconds": "2.0", "messages": "20"}

    def cells(self, parameters: MailboxParameters, seed: int) -> Sequence[Cell]:
        setting = {name: getattr(parameters, name) for name in ("members", "burst", "seconds", "messages", "window", "sessions")}
        return [
            {"back end": back_end, **setting, "seed": seed * SEEDS_MAX + number}
            for back_end in parameters.back_ends
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play_moshe if cell["back end"] == MOSHE else _play_zookeeper, cell)

    def judge(self, parameters: MailboxParameters, results: Sequence[Measured]) -> Finding:
        rows = [row for row in completed(results) if not row.get(MISSING)]
        of = {row["back end"]: row for row in reversed(rows)}  # the first seed of each
        rate = {back_end: row[LOAD]["delivered"] / row[LOAD]["seconds"] for back_end, row in of.items()}
        share = {back_end: row[LOAD]["delivered"] / max(1, row[LOAD]["offered"]) for back_end, row in of.items()}
        offered = parameters.members * parameters.burst / INTERVAL
        measured: dict[str, Any] = {
            "alone, ms, p50": {back_end: _ms(row[ALONE]["took"], 0.5) for back_end, row in of.items()},
            "alone, ms, p99": {back_end: _ms(row[ALONE]["took"], 0.99) for back_end, row in of.items()},
            "alone, not delivered": {back_end: row[ALONE]["offered"] - row[ALONE]["delivered"] for back_end, row in of.items()},
            "one sender, messages/s": {back_end: _rate(row[PIPELINED]) for back_end, row in of.items()},
            "all members, offered/s": {back_end: round(row[LOAD]["offered"] / parameters.seconds, 1) for back_end, row in of.items()},
            "all members, delivered/s": {back_end: round(found, 1) for back_end, found in rate.items()},
            "all members, share delivered": {back_end: round(found, 4) for back_end, found in share.items()},
            "all members, ms, p50": {back_end: _ms(row[LOAD]["took"], 0.5) for back_end, row in of.items()},
            "all members, ms, p99": {back_end: _ms(row[LOAD]["took"], 0.99) for back_end, row in of.items()},
            "sustained": {back_end: found >= SUSTAINED_SHARE for back_end, found in share.items()},
            "all at once, messages/s": {back_end: _rate(row[AT_ONCE]) for back_end, row in of.items() if AT_ONCE in row},
            "CPU ms per message, members": {back_end: _each(row[AT_ONCE], "cpu") for back_end, row in of.items() if AT_ONCE in row},
            "CPU ms per message, ensemble": {back_end: _each(row[AT_ONCE], "cpu of it") for back_end, row in of.items() if AT_ONCE in row},
        }
        expected = {
            "alone, not delivered": dict.fromkeys(of, 0),
            "all members, offered/s": dict.fromkeys(of, offered),
            "sustained": {ZOOKEEPER: False} if ZOOKEEPER in of else {},  # the bottleneck of the paper's deployment
        }
        misses = [*violations(results), *_misses(measured)]
        without = {row["back end"]: row[MISSING] for row in results if row.get(MISSING)}
        left_out = {each: "it was not asked for" for each in (MOSHE, ZOOKEEPER) if each not in parameters.back_ends}
        unmeasured = [f"{each} is not measured: {why}" for each, why in {**without, **left_out}.items()]
        return Finding(measured, expected, bool(of) and not misses, shortened([*misses, *unmeasured]))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        kinds = ("one sender, messages/s", "all at once, messages/s", "all members, offered/s", "all members, delivered/s")
        back_ends = list(finding.measured["sustained"])
        for number, back_end in enumerate(back_ends):
            places = [at + 0.8 * number / len(back_ends) for at in range(len(kinds))]
            label = back_end if back_end == ZOOKEEPER else f"{back_end}, in the simulator"
            axes.bar(places, [finding.measured[kind].get(back_end, 0.0) for kind in kinds], 0.8 / len(back_ends), align="edge", label=label)
        axes.set_xticks([at + 0.4 for at in range(len(kinds))], [kind.replace(", ", ",\n") for kind in kinds])
        axes.set_ylabel("messages per second")
        axes.legend(loc="upper left")


class _Results:
    """Of one measurement. ``now`` is the clock of what is measured."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self.began_at = now, now()
        self.offered = self.delivered = self.under_way = 0
        self.took: list[float] = []
        self._last_at = self.began_at

    def begin(self) -> Callable[[Carried], None]:
        """One message leaves; what to call with its result."""
        self.offered += 1
        self.under_way += 1
        at = self._now()

        def done(result: Carried) -> None:
            self.under_way -= 1
            if result is Carried.DELIVERED:
                self._last_at = self._now()
                self.delivered += 1
                self.took.append(self._last_at - at)

        return done

    def found(self, seconds: float = 0.0) -> dict[str, Any]:
        """``seconds``: for which messages were offered; the last result may come later."""
        took = round(max(seconds, self._last_at - self.began_at, 1e-9), 6)
        return {
            "offered": self.offered,
            "delivered": self.delivered,
            "seconds": took,
            "took": [round(each, 6) for each in sorted(self.took)],
        }


# Our servers, in the simulator.


class _Lab:
    """A group that says things to each other."""

    def __init__(self, group: ViewGroup) -> None:
        self.group = group
        self.refill: Callable[[], None] = lambda: None  # when a result came
        self._present = self.results()
        self._done: dict[tuple[str, int], Callable[[Carried], None]] = {}
        group.world.listeners.append(self._on_event)

    def results(self) -> _Results:
        """Of what is said from now on."""
        self._present = _Results(lambda: self.group.world.now)
        return self._present

    def say(self, source: str, target: str) -> None:
        done = self._present.begin()
        self._done[source, self.group.say(source, target)] = done

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Answered):
            self._done.pop((host.me.name, event.number))(event.outcome)
            self.group.world.soon(self.refill)


def _play_moshe(cell: Cell) -> Measured:
    group = ViewGroup(cell["seed"], SERVERS, cell["members"], habits=Habits(says=0.0), checkers=())
    form(group, FORMED_BY)
    lab = _Lab(group)
    first, second = group.clients[:2]
    alone = lab.results()
    for _ in range(cell["messages"]):
        lab.say(first, second)
        group.until(lambda: not alone.under_way, AFTER)
    pipelined, end_at = lab.results(), group.world.now + cell["seconds"]
    lab.refill = lambda: lab.say(first, second) if group.world.now < end_at else None
    for _ in range(cell["window"]):
        lab.say(first, second)
    group.run(cell["seconds"] + AFTER)
    lab.refill = lambda: None
    load, began_at = lab.results(), group.world.now
    for at, source, target in _bursts(cell):
        group.world.at(began_at + at, partial(lab.say, group.clients[source], group.clients[target]))
    group.run(cell["seconds"] + AFTER)
    return {**cell, ALONE: alone.found(), PIPELINED: pipelined.found(), LOAD: load.found(cell["seconds"])}


# A real ensemble, in real time.


def _play_zookeeper(cell: Cell) -> Measured:
    """Or why that cannot be."""
    why = missing()
    if why:
        return {**cell, MISSING: why}
    with TemporaryDirectory() as folder, Wires() as wires, Ensemble(Path(folder), wires) as ensemble:
        return asyncio.run(_on_zookeeper(cell, ensemble))


async def _on_zookeeper(cell: Cell, ensemble: Ensemble) -> Measured:
    loop = asyncio.get_running_loop()
    boxes = await open_boxes(ensemble, [f"c{number}" for number in range(cell["members"])], cell["sessions"])
    try:
        first, second = boxes[:2]
        alone = _Results(loop.time)
        for _ in range(cell["messages"]):
            first.send(second.me, BODY, alone.begin())
            await _until(loop, lambda: not alone.under_way)
        pipelined, end_at = _Results(loop.time), loop.time() + cell["seconds"]
        _keep_sending(first, second, pipelined, cell["window"], lambda: loop.time() < end_at)
        await asyncio.sleep(cell["seconds"])
        await _until(loop, lambda: not pipelined.under_way)
        at_once = await _all_at_once(cell, boxes, ensemble)
        load, began_at = _Results(loop.time), loop.time()
        for at, source, target in _bursts(cell):
            loop.call_at(began_at + at, partial(_send, load, boxes[source], boxes[target]))
        await asyncio.sleep(cell["seconds"])
        await _until(loop, lambda: not load.under_way)
        return {**cell, ALONE: alone.found(), PIPELINED: pipelined.found(), AT_ONCE: at_once, LOAD: load.found(cell["seconds"])}
    finally:
        close_boxes(boxes)


async def _all_at_once(cell: Cell, boxes: Sequence[Mailbox], ensemble: Ensemble) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    results, end_at = _Results(loop.time), loop.time() + cell["seconds"]
    used, used_by_it = time.process_time(), ensemble.cpu_seconds()
    for source, target in zip(boxes, [*boxes[1:], boxes[0]], strict=True):
        _keep_sending(source, target, results, 1, lambda: loop.time() < end_at)
    await asyncio.sleep(cell["seconds"])
    await _until(loop, lambda: not results.under_way)
    cpu = {"cpu": time.process_time() - used, "cpu of it": ensemble.cpu_seconds() - used_by_it}
    return {**results.found(), **{name: round(seconds, 3) for name, seconds in cpu.items()}}


def _send(results: _Results, source: Mailbox, target: Mailbox) -> None:
    source.send(target.me, BODY, results.begin())


def _keep_sending(source: Mailbox, target: Mailbox, results: _Results, window: int, goes_on: Callable[[], bool]) -> None:
    """So many under way, until it is over."""

    def next_one() -> None:
        done = results.begin()

        def answered(result: Carried) -> None:
            done(result)
            if goes_on():
                next_one()

        source.send(target.me, BODY, answered)

    for _ in range(window):
        next_one()


async def _until(loop: asyncio.AbstractEventLoop, holds: Callable[[], bool]) -> None:
    """Every message has its result within a deadline; the loop may be later than that on a busy machine."""
    end_at = loop.time() + 4 * AFTER
    while not holds():
        if loop.time() > end_at:
            return
        await asyncio.sleep(LOOK_INTERVAL)


def _bursts(cell: Cell) -> list[tuple[float, int, int]]:
    """When, from whom and to whom: each member says some things at once to others, in each interval at a moment of its own."""
    random, members = Random(cell["seed"]), cell["members"]
    found = []
    for source in range(members):
        moment = random.random()
        for interval in range(int(cell["seconds"] / INTERVAL)):
            targets = [(source + random.randrange(1, members)) % members for _ in range(cell["burst"])]
            found += [((interval + moment) * INTERVAL, source, target) for target in targets]
    return found


def _ms(took: Sequence[float], share: float) -> float | None:
    return round(1000 * quantile(took, share), 2) if took else None


def _rate(results: Measured) -> float:
    return round(float(results["delivered"] / results["seconds"]), 1)


def _each(results: Measured, name: str) -> float:
    """In milliseconds, of one message."""
    return round(1000 * float(results[name]) / max(1, int(results["delivered"])), 3)


def _misses(measured: Measured) -> list[str]:
    notes = [
        f"{back_end}: {count} messages alone were not delivered" for back_end, count in measured["alone, not delivered"].items() if count
    ]
    for kind in ("one sender, messages/s", "all at once, messages/s"):
        notes += [f"{back_end}: no rate was measured: {kind}" for back_end, rate in measured[kind].items() if not rate]
    if measured["sustained"].get(MOSHE) is False:
        notes.append(f"{MOSHE}: our own rules let {measured['all members, share delivered'][MOSHE]:.2%} of the load pass")
    return notes


EXPERIMENT = MailboxCost()
