"""election/F18: the next leader after kill -9, ours and ZooKeeper's.  Not in the paper.  Spec: election 8 (F15-F17 under kills)."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.beside import ROUNDING, STOCK, Beside, BesideParameters, Setting, lines, over_time, under_kills
from holdfast.lab.experiment import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ZooKeeperKills(Beside):
    """Failover times side by side: these are reported, and no criterion compares them."""

    id = "election/F18"
    name = "election/zookeeper-kills"
    title = "The next leader after kill -9, beside ZooKeeper"
    source = "election 8, F15-F17 under kills"
    criterion = "reported: the leader was killed as often as asked, and was followed each time; with ZooKeeper its leading server as well"

    def judge_run(self, parameters: BesideParameters, settings: Mapping[str, Setting]) -> Finding:
        misses = []
        for name, found in settings.items():
            if len(found.kill) < parameters.kills:
                misses.append(f"{name}: {len(found.kill)} kills of the leader, not {parameters.kills}")
            if name.startswith(STOCK) and len(found.kill_server) < parameters.kills:
                misses.append(f"{name}: {len(found.kill_server)} kills of a server, not {parameters.kills}")
        killing = under_kills(settings)
        measured: dict[str, Any] = {
            "seconds until the next leader": {name: _spread([kill.failover for kill in of.kill]) for name, of in settings.items()},
            "seconds without a leader's deed, leading server killed": {
                name: _spread([each.silence for each in of.kill_server]) for name, of in settings.items() if name.startswith(STOCK)
            },
            "kills of a server after which another one led": {
                name: sum(each.changed for each in of.kill_server) for name, of in settings.items() if name.startswith(STOCK)
            },
            "majority killed": {name: _most(found) for name, found in settings.items()},
            "kbit/s of all nodes": {name: round(fmean(series["kbit"]), ROUNDING) for name, series in killing.items()},
            "percent of a core, all nodes": {name: round(fmean(series["cpu_percent"]), ROUNDING) for name, series in killing.items()},
            "most MiB of all nodes": {name: max(series["rss_mib"]) for name, series in killing.items()},
            "over time": over_time(killing, "kbit"),
        }
        return Finding(measured, {}, not misses, tuple(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines(figure, finding.measured.get("over time", []), "kbit/s of all nodes")


def _spread(values: list[float]) -> dict[str, float]:
    return {"least": round(min(values), 2), "median": round(median(values), 2), "most": round(max(values), 2)} if values else {}


def _most(found: Setting) -> str:
    if found.kill_most is None:
        return "not tried"
    silence = f"{found.kill_most.silence:.1f} s"
    return f"led again after {silence}" if found.kill_most.acts else f"no leader for {silence}, when it was given up"


EXPERIMENT = ZooKeeperKills()
