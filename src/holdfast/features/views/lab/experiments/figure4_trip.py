"""views/F4: one trip, step by step: cut, black list, overlay, failure, startChange, view.

Spec: views 5.7, 8 (F4), D13; paper 003, 4.2, Figure 4. The application says something to its peer four times a second, directly, and the
peer answers. It puts the peer on its black list when two answers are missing, and has the overlay carry its messages from then on.
Later the last path to the peer is cut, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.events import Changing, Event, ViewChanged
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import form
from holdfast.features.views.lab.users import Answered, Habits, Heard, LabLetter
from holdfast.features.views.protocol.facts import HopFailed
from holdfast.features.views.protocol.messages import OvData, OvResult, StartChange, ViewMsg
from holdfast.host import Address, Carried, Message, NodeId
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations
from holdfast.lab.network import PORT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CUT, BLACK_LIST, OVERLAY, LAST_CUT, FAILURE, START_CHANGE, VIEW, TRIPPED = STEPS = (
    "cut", "black list", "overlay", "last path cut", "failure", "startChange", "view", "tripped",
)  # fmt: skip
PAPER = (CUT, BLACK_LIST, OVERLAY, LAST_CUT, FAILURE, START_CHANGE, VIEW)
SERVERS, CLIENTS = 2, 4
SENDER, PEER = "c0", "c1"  # at servers s0 and s1
LANES = (SENDER, "s0", "s1", PEER)
SHOWN: tuple[type[Message], ...] = (OvData, OvResult, StartChange, ViewMsg)  # arrows of the figure
SAYS_EVERY = 0.25
ANSWERS_MISSED = 2
FORMED_BY, CUT_AT, LAST_CUT_AT, END_AT = 3.0, 4.0, 6.0, 12.0
DIRECT = 1_000_000  # numbers of direct letters are beyond it, those of carried ones below
STEPS_MAX = 40  # arrows that a figure can show


class TripParameters(Parameters, frozen=True, kw_only=True):
    """There is nothing to set but the number of runs."""


class TripTrace(Experiment[TripParameters]):
    """One client loses its peer, first the direct path and then the one over the servers."""

    id = "views/F4"
    name = "views/trip"
    title = "The sequence of events of one trip"
    source = "paper 003, 4.2, Figure 4; views 8, F4"
    criterion = (
        "CB1 to CB9 hold; the steps come in the order of the paper; no view changes while the overlay reaches the peer; every other client "
        "is in a view without the peer at the end"
    )
    parameters = TripParameters
    seconds_per_cell = 0.3
    quick: ClassVar[Mapping[str, str]] = {}

    def cells(self, parameters: TripParameters, seed: int) -> Sequence[Cell]:
        return [{"seed": seed * SEEDS_MAX + number} for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: TripParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        measured: dict[str, Any] = {
            "order": [step for step in rows[0]["steps"] if step in PAPER] if rows else [],
            "seconds after the first cut": {step: round(at - CUT_AT, 3) for step, at in rows[0]["steps"].items()} if rows else {},
            "views installed before the last path is cut": max((row["early"] for row in rows), default=0),
            "arrows": rows[0]["arrows"] if rows else [],
        }
        expected = {"order": list(PAPER), "views installed before the last path is cut": 0}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        arrows = finding.measured["arrows"][:STEPS_MAX]
        for lane, name in enumerate(LANES):
            axes.plot([lane, lane], [0.5, -len(arrows) - 0.5], color="#7b8794", linewidth=1)
            axes.text(lane, 0.9, {SENDER: "member", PEER: "its peer"}.get(name, f"server {name}"), ha="center")
        for row, arrow in enumerate(arrows):
            y, source, target = -row - 0.2, LANES.index(arrow["from"]), LANES.index(arrow["to"])
            lost = arrow["lost"]
            if source == target:
                axes.plot([source], [y], marker="s", color="#b42318" if lost else "#0072b2")
                axes.text(source + 0.06, y, arrow["what"], va="center", fontsize=7.5)
            else:
                end = source + (target - source) * (0.5 if lost else 0.97)
                colour = "#b42318" if lost else "#1f2933"
                axes.annotate("", (end, y), (source, y), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1})
                axes.text((source + end) / 2, y + 0.12, arrow["what"] + (" (lost)" if lost else ""), ha="center", fontsize=7)
            axes.text(-0.45, y, f"{arrow['at'] - CUT_AT:.3f} s", va="center", ha="right", fontsize=7.5, color="#7b8794")
        axes.set_xlim(-0.9, len(LANES) - 0.3)
        axes.set_ylim(-len(arrows) - 0.5, 1.6)
        axes.axis("off")


class _Application:
    """Two members that talk, and what happens to them."""

    def __init__(self, group: ViewGroup) -> None:
        self.group, self.world = group, group.world
        self.steps: dict[str, float] = {}
        self.arrows: list[dict[str, Any]] = []
        self.views: list[tuple[float, str, frozenset[str]]] = []
        self._said = self._answered = 0
        self._drawn: set[tuple[str, str, str]] = set()
        self.world.listeners.append(self._on_event)
        self.world.network.lose_if(self._see)

    @property
    def black_listed(self) -> bool:
        return BLACK_LIST in self.steps

    def step(self, what: str, where: str, *, bad: bool = False) -> None:
        """The first time that it happens. What happens at a member without a lane is drawn at its server."""
        if what not in self.steps:
            self.steps[what] = self.world.now
            at, label = (where, what) if where in LANES else (_home_of(where), f"{what}, at another member")
            self._draw(at, at, label, lost=bad)

    def talk(self) -> None:
        """One letter, by the way that is open; again a little later."""
        if not self.black_listed and self._said - self._answered >= ANSWERS_MISSED:
            self.step(BLACK_LIST, SENDER)
        if self.black_listed:
            self.group.say(SENDER, PEER)
        else:
            self._said += 1
            self._send(SENDER, PEER, DIRECT + self._said)
            if CUT in self.steps:
                self._draw(SENDER, PEER, "direct", lost=True)
        if self.world.now < END_AT - 2 * SAYS_EVERY:
            self.world.at(self.world.now + SAYS_EVERY, self.talk)

    def _send(self, source: str, target: str, number: int) -> None:
        host = self.world.nodes[source]
        self.world.step(host, lambda: host.send(self.world.nodes[target].me, LabLetter(number, b"")))

    def _on_event(self, host: LabHost, event: Event) -> None:
        name = host.me.name
        if isinstance(event, Heard) and name == PEER and not self.black_listed:
            self.world.soon(lambda: self._send(PEER, SENDER, event.number))
        elif isinstance(event, Heard) and name == SENDER:
            self._answered += 1
        elif isinstance(event, Answered) and name == SENDER:
            if event.outcome is Carried.DELIVERED:
                self.step(OVERLAY, SENDER)
            elif event.outcome is Carried.TRIPPED:
                self.step(TRIPPED, SENDER, bad=True)
        elif LAST_CUT in self.steps:
            self._on_failure(name, event)
        if isinstance(event, ViewChanged):
            self.views.append((self.world.now, name, frozenset(member.id.name for member in event.view.members)))

    def _on_failure(self, name: str, event: Event) -> None:
        if isinstance(event, HopFailed):
            self.step(FAILURE, name, bad=True)
        elif isinstance(event, Changing) and name != PEER:
            self.step(START_CHANGE, name)
        elif isinstance(event, ViewChanged) and event.view.find(PEER) is None:
            self.step(VIEW, name)

    def _see(self, source: str, target: str, message: Message) -> bool:
        """A rule that loses nothing."""
        if source in LANES and target in LANES and isinstance(message, SHOWN) and CUT in self.steps and self.world.now < self._shown_until:
            self._draw(source, target, type(message).__name__)
        return False

    @property
    def _shown_until(self) -> float:
        return self.steps.get(TRIPPED, END_AT)

    def _draw(self, source: str, target: str, what: str, *, lost: bool = False) -> None:
        """Once before and once after the last path is cut; what is repeated says nothing new."""
        key = (source, target, f"{what}{LAST_CUT in self.steps}")
        if key not in self._drawn:
            self._drawn.add(key)
            self.arrows.append({"at": round(self.world.now, 4), "from": source, "to": target, "what": what, "lost": lost})


def _home_of(client: str) -> str:
    return f"s{int(client[1:]) % SERVERS}"


def _play(cell: Cell) -> Measured:
    group = ViewGroup(cell["seed"], SERVERS, CLIENTS, homes=True, habits=Habits(says=0.0))
    form(group, FORMED_BY)
    for one, other in ((SENDER, PEER), (PEER, SENDER)):
        peer = group.world.nodes[other]
        group.world.nodes[one].meet(NodeId(other, peer.me.boot), Address(other, PORT))
    application = _Application(group)
    application.talk()
    group.run(CUT_AT - group.world.now)
    application.step(CUT, SENDER, bad=True)
    group.cut([SENDER], [PEER])
    group.run(LAST_CUT_AT - group.world.now)
    application.step(LAST_CUT, PEER, bad=True)
    group.cut([PEER], [*group.servers, *group.clients])
    group.run(END_AT - group.world.now)
    last = {name: members for _, name, members in application.views}
    return {
        **cell,
        "steps": application.steps,
        "arrows": application.arrows,
        "early": sum(CUT_AT <= at < LAST_CUT_AT for at, _, _ in application.views),
        "in": sorted(name for name, members in last.items() if PEER not in members),
        "others": sorted(set(group.clients) - {PEER}),
    }


def _misses(row: Measured) -> list[str]:
    where, steps = f"seed {row['seed']}", row["steps"]
    notes = [f"{where}: no step {step!r}" for step in PAPER if step not in steps]
    times = [steps[step] for step in PAPER if step in steps]
    if times != sorted(times):
        notes.append(f"{where}: the order is {', '.join(sorted(steps, key=steps.__getitem__))}")
    if row["early"]:
        notes.append(f"{where}: {row['early']} views were installed while the overlay reached the peer")
    if row["in"] != row["others"]:
        notes.append(f"{where}: in a view without the peer are {row['in']}, expected {row['others']}")
    return notes


EXPERIMENT = TripTrace()
