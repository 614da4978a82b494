"""views/S1: what does one crash cost in a large group, with delta views and without?

Spec: views 8 (S1), D14, D29; paper 003, 7.2 (182 nodes). Three servers. The bytes of a change are those of the messages that only a change
sends: link states, proposals, startChange, views. What heartbeats cost is told beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.views.lab.checkers import Disjoint, Monotone, UniqueId
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import Reached, form
from holdfast.features.views.lab.users import Habits
from holdfast.features.views.protocol.config import CLIENTS_MAX
from holdfast.features.views.protocol.deltas import ViewMessages
from holdfast.features.views.protocol.liveness import Client
from holdfast.features.views.protocol.messages import (
    ClientPing,
    ClientPong,
    LinkPing,
    LinkPong,
    Lsa,
    LsaWant,
    Propose,
    StartChange,
    ViewMsg,
)
from holdfast.host import Message, View
from holdfast.lab.accounting import count_bytes, total
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations
from holdfast.lab.mutation import put

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS = 3
DELTAS, WHOLE = "deltas", "whole lists"
BYTES_MAX = 1000  # per client, for one crash
OF_A_CHANGE: tuple[type[Message], ...] = (StartChange, ViewMsg, Lsa, LsaWant, Propose)
HEARTBEATS: tuple[type[Message], ...] = (ClientPing, ClientPong, LinkPing, LinkPong)
FORMED_BY, IDLE, LATEST, AFTER = 20.0, 4.0, 30.0, 2.0  # seconds


class ScaleParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S1."""

    clients: Annotated[tuple[Annotated[int, Meta(ge=4, le=CLIENTS_MAX)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (
        182,
        500,
        1000,
        2000,
    )
    whole_lists: Annotated[int, Meta(ge=0, le=CLIENTS_MAX)] = CLIENTS_MAX  # the largest group that is also run without deltas


class Scale(Experiment[ScaleParameters]):
    """A random client is killed."""

    id = "views/S1"
    name = "views/scale"
    title = "One crash in a large group: bytes per client, and time to the view of all"
    source = "paper 003, 7.2 (182 nodes deployed); views 8, S1, D14"
    criterion = "CB1, CB2, CB4 and F17 hold; with delta views one crash sends less than 1 kB per client, at every size"
    parameters = ScaleParameters
    seconds_per_cell = 11
    quick: ClassVar[Mapping[str, str]] = {"clients": "[182]", "whole_lists": "182"}

    def cells(self, parameters: ScaleParameters, seed: int) -> Sequence[Cell]:
        return [
            {"clients": clients, "views": views, "seed": seed * SEEDS_MAX + number}
            for clients in parameters.clients
            for views in (DELTAS, WHOLE)
            if views == DELTAS or clients <= parameters.whole_lists
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: ScaleParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        of = {key: [row for row in rows if _key(row) == key] for key in dict.fromkeys(map(_key, rows))}
        measured: dict[str, Any] = {
            "bytes per client": {key: round(max(_bytes_per_client(row) for row in found), 1) for key, found in of.items()},
            "seconds to the view of all": {key: max(row["seconds"] or LATEST for row in found) for key, found in of.items()},
            "seconds from the first view to the last": {key: max(row["spread"] for row in found) for key, found in of.items()},
            "heartbeats, bytes per client and second": {key: round(max(row["idle"] for row in found), 1) for key, found in of.items()},
            "of it": {key: found[0]["bytes"] for key, found in of.items()},
            "sizes": [{"clients": row["clients"], "views": row["views"], "bytes": _bytes_per_client(row)} for row in rows],
        }
        expected = {"bytes per client": {key: f"< {BYTES_MAX}" for key in of if key.endswith(DELTAS)}}
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        for views in (DELTAS, WHOLE):
            rows = sorted((row["clients"], row["bytes"]) for row in finding.measured["sizes"] if row["views"] == views)
            left.plot([clients for clients, _ in rows], [size for _, size in rows], marker="o", label=views)
        left.axhline(BYTES_MAX, color="#7b8794", linestyle="--", linewidth=1, label="accepted, with deltas")
        left.set_yscale("log")
        left.set_xlabel("clients")
        left.set_ylabel("bytes per client for one crash")
        left.legend()
        for what, label in (
            ("seconds to the view of all", "crash to the last view"),
            ("seconds from the first view to the last", "first view to last"),
        ):
            rows = [(int(key.split()[0]), value) for key, value in finding.measured[what].items() if key.endswith(DELTAS)]
            right.plot([clients for clients, _ in rows], [seconds for _, seconds in rows], marker="o", label=label)
        right.set_ylim(bottom=0)
        right.set_xlabel("clients")
        right.set_ylabel("seconds")
        right.legend()


def whole_lists(stack: ExitStack) -> None:
    """D14 is out: every view is sent as the whole list."""
    make = ViewMessages.make

    def whole(self: ViewMessages, client: Client, view: View, former: View | None) -> ViewMsg:
        return make(self, client, view, None)

    put(stack, ViewMessages, "make", whole)


def _play(cell: Cell) -> Measured:
    group = ViewGroup(cell["seed"], SERVERS, cell["clients"], habits=Habits(says=0.0), checkers=[UniqueId(), Monotone(), Disjoint()])
    form(group, FORMED_BY)
    group.run(IDLE)
    count_bytes(group.world)
    group.run(IDLE)
    idle = _sent(group)
    victim = group.world.random.choice(group.clients)
    reached = Reached(group, set(group.clients) - {victim})
    with ExitStack() as stack:
        if cell["views"] == WHOLE:
            whole_lists(stack)
        crashed_at = group.world.now
        group.crash(victim)
        group.until(lambda: reached.at is not None, LATEST)
        group.run(AFTER)
    sent = _sent(group)
    changed = {kind.__name__: sent.get(kind.__name__, 0) - idle.get(kind.__name__, 0) for kind in OF_A_CHANGE}
    beats = sum(idle.get(kind.__name__, 0) for kind in HEARTBEATS)
    first_at, last_at = reached.first_at, reached.at
    return {
        **cell,
        "bytes": changed,
        "idle": beats / IDLE / cell["clients"],
        "seconds": None if last_at is None else round(last_at - crashed_at, 3),
        "spread": 0.0 if last_at is None or first_at is None else round(last_at - first_at, 3),
        "while_idle": sum(idle.get(kind.__name__, 0) for kind in OF_A_CHANGE),
    }


def _sent(group: ViewGroup) -> dict[str, int]:
    return {name: each.size for name, each in total(group.world).items()}


def _bytes_per_client(row: Measured) -> float:
    return float(sum(row["bytes"].values()) / row["clients"])


def _key(row: Measured) -> str:
    return f"{row['clients']} clients, {row['views']}"


def _misses(row: Measured) -> list[str]:
    notes = []
    if row["views"] == DELTAS and _bytes_per_client(row) >= BYTES_MAX:
        notes.append(f"{_key(row)}: {_bytes_per_client(row):.0f} bytes per client, accepted are less than {BYTES_MAX}")
    if row["seconds"] is None:
        notes.append(f"{_key(row)}: no view of all within {LATEST:g} s")
    if row["while_idle"]:
        notes.append(f"{_key(row)}: {row['while_idle']} bytes of changes while nothing changed")
    return notes


EXPERIMENT = Scale()
