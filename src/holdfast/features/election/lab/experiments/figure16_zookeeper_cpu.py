"""election/F16: CPU time of 16 nodes, ours and ZooKeeper's.  Paper 004, section VII.B, Figure 16.  Spec: election 8 (F16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.beside import Beside, BesideParameters, Setting, calm, lines, not_below, over_ours, over_time
from holdfast.lab.experiment import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ZooKeeperCpu(Beside):
    """CPU time of all processes of all nodes, once they have started."""

    id = "election/F16"
    name = "election/zookeeper-cpu"
    title = "CPU time of 16 nodes, beside ZooKeeper"
    source = "paper 004, section VII.B, Figure 16; election 8, F16"
    criterion = "below ZooKeeper with a server on every node"

    def judge_run(self, parameters: BesideParameters, settings: Mapping[str, Setting]) -> Finding:
        table = calm(settings, lambda found: found.cpu_percent)
        misses = not_below(table, "percent of a core, all nodes")
        series = {name: found.usage.series for name, found in settings.items() if found.usage is not None}
        measured: dict[str, Any] = {
            "percent of a core, all nodes": table,
            "of that, programs that ask to lead": calm(settings, lambda found: found.program_cpu_percent),
            "ours is less by": over_ours(table),
            "over time": over_time(series, "cpu_percent"),
        }
        return Finding(measured, {"ours is less by": {"the paper's ZooKeeper": 0.269}}, not misses, tuple(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines(figure, finding.measured.get("over time", []), "percent of a core, all nodes")


EXPERIMENT = ZooKeeperCpu()
