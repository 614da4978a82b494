"""Who must relay for whom: shortest paths over a graph of short-range links.

Without a topology every node reaches every other in one hop. With one, a message crosses each hop on its own:
each hop draws its delay and may lose it, and a relay that is down loses everything it should pass on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import dist
from random import Random

Point = tuple[float, float]
DRAWS_MAX = 1000  # placements tried until the graph is connected; denser settings succeed within a few


class Topology:
    """Nodes at points; two are linked when they are within ``reach`` of each other."""

    def __init__(self, points: Mapping[str, Point], reach: float) -> None:
        self.points = dict(points)
        self.reach = reach
        self.neighbours = {name: tuple(other for other in self.points if self._linked(name, other)) for name in self.points}
        self._paths: dict[str, dict[str, str]] = {}  # source -> node -> the node before it

    @property
    def connected(self) -> bool:
        first = next(iter(self.points))
        return len(self._tree(first)) == len(self.points)

    def path(self, source: str, target: str) -> tuple[str, ...] | None:
        """The nodes a message visits after ``source``, ``target`` last; None if there is no way."""
        before = self._tree(source)
        if target not in before:
            return None
        steps = [target]
        while (previous := before[steps[-1]]) != source:
            steps.append(previous)
        return tuple(reversed(steps))

    def _linked(self, name: str, other: str) -> bool:
        return name != other and dist(self.points[name], self.points[other]) <= self.reach

    def _tree(self, source: str) -> dict[str, str]:
        if source not in self._paths:
            self._paths[source] = _breadth_first(self.neighbours, source)
        return self._paths[source]


def grid(names: Sequence[str], *, pitch: float = 1.0, reach: float = 1.0) -> Topology:
    """Rows and columns, as square as the number allows."""
    columns = max(1, round(len(names) ** 0.5))
    return Topology({name: (i % columns * pitch, i // columns * pitch) for i, name in enumerate(names)}, reach)


def scattered(names: Sequence[str], random: Random, *, side: float, reach: float) -> Topology:
    """Uniform in a square, redrawn until all can reach all."""
    return _connected(reach, lambda: {name: (random.uniform(0, side), random.uniform(0, side)) for name in names})


def clustered(names: Sequence[str], random: Random, *, side: float, reach: float, sizes: Sequence[int]) -> Topology:
    """Gaussian clouds (sigma 9 % of the side) around one centre per entry of ``sizes``, redrawn until connected."""
    assert sum(sizes) == len(names)
    owner = [cluster for cluster, size in enumerate(sizes) for _ in range(size)]
    sigma = 0.09 * side

    def draw() -> dict[str, Point]:
        centres = [(random.uniform(0, side), random.uniform(0, side)) for _ in sizes]
        around = zip(names, (centres[cluster] for cluster in owner), strict=True)
        return {name: (random.gauss(x, sigma), random.gauss(y, sigma)) for name, (x, y) in around}

    return _connected(reach, draw)


def _connected(reach: float, draw: Callable[[], dict[str, Point]]) -> Topology:
    for _ in range(DRAWS_MAX):
        topology = Topology(draw(), reach)
        if topology.connected:
            return topology
    raise ValueError(f"no connected placement in {DRAWS_MAX} draws: make reach larger than {reach} or the side smaller")


def _breadth_first(neighbours: Mapping[str, Sequence[str]], source: str) -> dict[str, str]:
    before = {source: source}
    queue = deque([source])
    while queue:
        here = queue.popleft()
        for there in neighbours[here]:
            if there not in before:
                before[there] = here
                queue.append(there)
    return before
