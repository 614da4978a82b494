"""Who led when, as a picture: one line per process, one bar per reign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.papers.detection.lab.elections import Elections

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIGITS = 6


def reigns_of(group: Elections, since: float = 0.0) -> list[dict[str, Any]]:
    """Every reign as plain data, times counted from ``since``."""
    now = group.world.now
    return [
        {
            "name": reign.name,
            "view": reign.term.view,
            "round": reign.term.round,
            "from": round(max(reign.since, since) - since, DIGITS),
            "to": round((now if reign.until is None else reign.until) - since, DIGITS),
        }
        for reign in group.reigns
        if reign.until is None or reign.until > since
    ]


def draw_reigns(axes: Axes, names: Sequence[str], reigns: Sequence[Mapping[str, Any]], title: str) -> None:
    """Bars with their round above the names of those who led."""
    places = {name: place for place, name in enumerate(names)}
    for reign in reigns:
        place, begin, end = places[reign["name"]], reign["from"], reign["to"]
        axes.barh([place], [end - begin], left=[begin], height=0.6, color="#0072b2", alpha=0.75)
        axes.text(begin, place, f" {reign['round']}", va="center", fontsize=8, color="#ffffff")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_title(title, loc="left")
