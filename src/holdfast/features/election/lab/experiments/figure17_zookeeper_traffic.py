"""election/F17: traffic of 16 nodes, ours and ZooKeeper's.  Paper 004, section VII.B, Figure 17.  Spec: election 8 (F17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.beside import OURS, Beside, BesideParameters, Setting, calm, lines, not_below, over_ours, over_time
from holdfast.lab.experiment import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KBIT_MIN, KBIT_MAX = 10, 40
SPREAD_MAX = 0.25  # standard deviation of single seconds over the mean


class ZooKeeperTraffic(Beside):
    """What all nodes send, with the headers of IP; each packet counts once."""

    id = "election/F17"
    name = "election/zookeeper-traffic"
    title = "Traffic of 16 nodes, beside ZooKeeper"
    source = "paper 004, section VII.B, Figure 17; election 8, F17"
    criterion = "10 to 40 kbit/s in total, standard deviation below a quarter of the mean; below ZooKeeper with a server on every node"

    def judge_run(self, parameters: BesideParameters, settings: Mapping[str, Setting]) -> Finding:
        table = calm(settings, lambda found: found.kbit)
        spread = calm(settings, lambda found: found.kbit_std / found.kbit)
        misses = not_below(table, "kbit/s of all nodes")
        if not KBIT_MIN <= table[OURS] <= KBIT_MAX:
            misses.append(f"ours sends {table[OURS]:g} kbit/s")
        if spread[OURS] >= SPREAD_MAX:
            misses.append(f"the standard deviation of ours is {spread[OURS]:.0%} of its mean")
        series = {name: found.usage.series for name, found in settings.items() if found.usage is not None}
        measured: dict[str, Any] = {
            "kbit/s of all nodes": table,
            "of that, payload": calm(settings, lambda found: found.payload_kbit),
            "standard deviation": calm(settings, lambda found: found.kbit_std),
            "standard deviation / mean": spread,
            "ours is less by": over_ours(table),
            "over time": over_time(series, "kbit"),
        }
        expected = {
            "kbit/s of all nodes": {OURS: f"{KBIT_MIN} to {KBIT_MAX}; the paper 20", "the paper's ZooKeeper": 117},
            "standard deviation": {OURS: 2.1, "the paper's ZooKeeper": 25.1},
            "standard deviation / mean": {OURS: f"< {SPREAD_MAX}"},
            "ours is less by": {"the paper's ZooKeeper": 0.829},
        }
        return Finding(measured, expected, not misses, tuple(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines(figure, finding.measured.get("over time", []), "kbit/s of all nodes")


EXPERIMENT = ZooKeeperTraffic()
