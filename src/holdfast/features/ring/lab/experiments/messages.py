"""ring/E6: what does watching cost?

Spec: ring 8 (E6); paper 000, section VI-C, Equation 2: each member sends 2k lease requests and answers 2k of them per lease period, which
is 2 (2k) / T_l messages per second, however large the ring. What else a calm ring sends is counted and has a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.ring.lab.measures import formed
from holdfast.features.ring.protocol.config import K_MAX, LEASE_MAX, LEASE_MIN, RingConfig
from holdfast.features.ring.protocol.messages import LeaseAck, LeaseRequest
from holdfast.lab.accounting import count_bytes, total
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEASE_MESSAGES = (LeaseRequest.__name__, LeaseAck.__name__)
TOLERANCE = 0.01  # of LR + ACK against Equation 2
REST_MAX = 0.1  # of everything else, as a share of LR + ACK
SOME = Meta(min_length=1, max_length=LIST_MAX)


class MessagesParameters(Parameters, frozen=True, kw_only=True):
    """The grid of section 8, E6."""

    members: Annotated[tuple[Annotated[int, Meta(ge=2, le=5000)], ...], SOME] = (16, 64, 256)
    ks: Annotated[tuple[Annotated[int, Meta(ge=1, le=K_MAX)], ...], SOME] = (1, 3, 5)
    lease: Annotated[float, Meta(ge=LEASE_MIN, le=LEASE_MAX)] = 1.0  # T_l
    periods: Annotated[int, Meta(ge=1, le=10_000)] = 10  # in T_l


class Messages(Experiment[MessagesParameters]):
    """A calm ring; who sends how much of what?"""

    id = "ring/E6"
    name = "ring/messages"
    title = "Lease messages per member do not depend on the size of the ring"
    source = "paper 000, Equation 2; ring 8, E6"
    criterion = "LR + ACK per member and second within 1 % of 2 (2k) / T_l; everything else at most 10 % of that"
    parameters = MessagesParameters
    seconds_per_cell = 0.25
    quick: ClassVar[Mapping[str, str]] = {"members": "[16,64]", "ks": "[1,3]"}

    def cells(self, parameters: MessagesParameters, seed: int) -> Sequence[Cell]:
        return [
            {"members": members, "k": k, "lease": parameters.lease, "periods": parameters.periods, "seed": seed * SEEDS_MAX + number}
            for members in parameters.members
            for k in parameters.ks
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        rings = formed(cell["seed"], cell["members"], RingConfig(lease=cell["lease"], k=cell["k"]))
        count_bytes(rings.world)
        before = total(rings.world)
        rings.world.run(rings.world.now + cell["periods"] * cell["lease"])
        after = total(rings.world)
        messages = {kind: sent.messages - (before[kind].messages if kind in before else 0) for kind, sent in after.items()}
        return {
            "members": cell["members"],
            "k": cell["k"],
            "messages": {kind: count for kind, count in messages.items() if count},
            "bytes": sum(sent.size for sent in after.values()),
        }

    def judge(self, parameters: MessagesParameters, results: Sequence[Measured]) -> Finding:
        settings = dict.fromkeys((result["members"], result["k"]) for result in results)
        rows = [_row(parameters, [r for r in results if (r["members"], r["k"]) == setting]) for setting in settings]
        notes = [note for row in rows for note in _misses(row)]
        measured: dict[str, Any] = {
            which: {_label(row): row[which] for row in rows}
            for which in ("LR + ACK per member and second", "everything else, share", "bytes per member and second")
        }
        measured["settings"] = rows
        expected: dict[str, Any] = {
            "LR + ACK per member and second": {_label(row): row["equation 2"] for row in rows},
            "everything else, share": {_label(row): f"<= {REST_MAX}" for row in rows},
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["settings"]
        for k in dict.fromkeys(row["k"] for row in rows):
            line = [row for row in rows if row["k"] == k]
            members = [row["members"] for row in line]
            (drawn,) = axes.plot(members, [row["LR + ACK per member and second"] for row in line], marker="o", label=f"LR + ACK, k = {k}")
            rest = [row["everything else, share"] * row["LR + ACK per member and second"] for row in line]
            axes.plot(members, rest, marker=".", linestyle=":", color=drawn.get_color())
            axes.plot(members, [row["equation 2"] for row in line], linestyle="--", linewidth=1, color="#7b8794")
        axes.plot([], [], linestyle=":", marker=".", color="#7b8794", label="everything else")
        axes.plot([], [], linestyle="--", linewidth=1, color="#7b8794", label="paper, Equation 2")
        sizes = sorted({row["members"] for row in rows})
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlabel("members")
        axes.set_ylabel("messages sent per member and second")
        axes.set_ylim(0, 1.3 * max(row["equation 2"] for row in rows))
        axes.legend(loc="upper left", ncols=2)


def _label(row: Mapping[str, Any]) -> str:
    return f"n={row['members']}, k={row['k']}"


def _row(parameters: MessagesParameters, parts: Sequence[Measured]) -> dict[str, Any]:
    """Rings of at most 2k + 1 watch all others, which is fewer than 2k."""
    members, k = parts[0]["members"], parts[0]["k"]
    messages: Counter[str] = Counter()
    for part in parts:
        messages.update(part["messages"])
    seconds = members * parameters.periods * parameters.lease * len(parts)
    leases = sum(messages[kind] for kind in LEASE_MESSAGES)
    return {
        "members": members,
        "k": k,
        "equation 2": 2 * min(2 * k, members - 1) / parameters.lease,
        "LR + ACK per member and second": round(leases / seconds, 4),
        "everything else, share": round((sum(messages.values()) - leases) / leases, 4),
        "bytes per member and second": round(sum(part["bytes"] for part in parts) / seconds, 1),
        "messages": dict(sorted(messages.items())),
    }


def _misses(row: Mapping[str, Any]) -> list[str]:
    rate, promised, rest = row["LR + ACK per member and second"], row["equation 2"], row["everything else, share"]
    notes = []
    if abs(rate - promised) > TOLERANCE * promised:
        notes.append(f"{_label(row)}: {rate:g} lease messages per member and second, Equation 2 says {promised:g}")
    if rest > REST_MAX:
        notes.append(f"{_label(row)}: everything else is {rest:.1%} of the lease messages, at most {REST_MAX:.0%} is accepted")
    return notes


EXPERIMENT = Messages()
