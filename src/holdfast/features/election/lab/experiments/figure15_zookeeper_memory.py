"""election/F15: memory of 16 nodes, ours and ZooKeeper's.  Paper 004, section VII.B, Figure 15.  Spec: election 8 (F15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.beside import OURS, Beside, BesideParameters, Setting, calm, lines, not_below, over_ours, over_time
from holdfast.lab.experiment import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPIKE_MAX = 0.13


class ZooKeeperMemory(Beside):
    """Resident memory: each node is a machine of its own in the paper, so a page counts for each process that has it."""

    id = "election/F15"
    name = "election/zookeeper-memory"
    title = "Memory of 16 nodes, beside ZooKeeper"
    source = "paper 004, section VII.B, Figure 15; election 8, F15"
    criterion = "below ZooKeeper with a server on every node; while it starts and elects less than 13 % above the stable memory"

    def judge_run(self, parameters: BesideParameters, settings: Mapping[str, Setting]) -> Finding:
        table = calm(settings, lambda found: found.rss_mib)
        spike = calm(settings, lambda found: found.warm_rss_mib_max / found.rss_mib - 1)
        misses = not_below(table, "MiB of all nodes")
        if spike[OURS] >= SPIKE_MAX:
            misses.append(f"the first seconds have {spike[OURS]:.1%} more memory than the rest")
        series = {name: found.usage.series for name, found in settings.items() if found.usage is not None}
        measured: dict[str, Any] = {
            "MiB of all nodes": table,
            "of that, programs that ask to lead": calm(settings, lambda found: found.program_rss_mib),
            "MiB, shared pages once": calm(settings, lambda found: found.pss_mib),
            "ours is less by": over_ours(table),
            "first seconds above the rest": spike,
            "over time": over_time(series, "rss_mib"),
        }
        expected = {"ours is less by": {"the paper's ZooKeeper": 0.059}, "first seconds above the rest": {OURS: f"< {SPIKE_MAX}"}}
        return Finding(measured, expected, not misses, tuple(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines(figure, finding.measured.get("over time", []), "MiB of all nodes")


EXPERIMENT = ZooKeeperMemory()
