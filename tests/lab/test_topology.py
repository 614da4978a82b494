"""Multi-hop networks: who relays for whom, what each hop costs, what a dead relay loses."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import Network
from holdfast.lab.topology import Topology, clustered, grid, scattered
from tests.lab.machines import machine, numbers, quiet_world, say

NINE = tuple("abcdefghi")  # a grid of three rows: a b c / d e f / g h i


def drawn(kind: str, seed: int = 1) -> Topology:
    names = [f"n{i}" for i in range(30)]
    if kind == "grid":
        return grid(names)
    if kind == "scattered":
        return scattered(names, Random(seed), side=10, reach=3)
    return clustered(names, Random(seed), side=10, reach=4, sizes=[10, 10, 10])


@pytest.mark.parametrize("kind", ["grid", "scattered", "clustered"])
def test_paths_are_short_and_made_of_links(kind: str) -> None:
    """Shortest-path routing: every step is a link, and no neighbour of the target is nearer to the source than the last relay."""
    topology = drawn(kind)
    assert topology.connected
    for source in topology.points:
        for target in topology.points:
            if source == target:
                continue
            path = topology.path(source, target)
            assert path is not None
            assert path[-1] == target
            steps = [source, *path]
            assert all(b in topology.neighbours[a] for a, b in zip(steps, path, strict=False))
            shorter = [topology.path(source, each) for each in topology.neighbours[target] if each != source]
            assert all(len(path) <= len(other or ()) + 1 for other in shorter)


@pytest.mark.parametrize("kind", ["grid", "scattered", "clustered"])
def test_every_hop_takes_its_time(kind: str) -> None:
    """Per-hop delay: a message over h hops takes h delays."""
    topology = drawn(kind)
    world = quiet_world(1, " ".join(topology.points), Link(Fixed(0.01)), topology=topology)
    far = max(topology.points, key=lambda name: len(topology.path("n0", name) or ()) if name != "n0" else 0)
    path = topology.path("n0", far)
    assert path is not None
    assert len(path) >= 2
    say(world, "n0", far)
    world.run(10.0)
    (at, _, _) = machine(world, far).heard[0]
    assert at - (world.nodes[far].now - world.now) == pytest.approx(0.01 * len(path))


def test_every_hop_may_lose() -> None:
    """Per-hop loss: over h hops (1 - loss)^h of the messages arrive."""
    world = quiet_world(2, " ".join(NINE), Link(Fixed(0.01), loss=0.2), topology=grid(NINE))
    for number in range(2000):
        say(world, "a", "i", number)
    world.run(1.0)
    assert len(numbers(world, "i")) == pytest.approx(2000 * 0.8**4, abs=110)


def test_a_relay_that_is_down_loses_everything() -> None:
    """A dead relay passes nothing on; a message to a neighbour needs none."""
    line = Topology({"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 1.0)
    world = quiet_world(3, "a b c", topology=line)
    world.crash("b")
    say(world, "a", "c")
    world.run(1.0)
    assert numbers(world, "c") == []
    world.start("b")
    say(world, "a", "c", 5)
    world.run(2.0)
    assert numbers(world, "c") == [5]


LINE = Topology({"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 1.0)


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(lambda network: network.cut("fault", ["a"], ["b"]), id="first hop cut"),
        pytest.param(lambda network: network.cut("fault", ["b"], ["c"]), id="second hop cut"),
        pytest.param(lambda network: network.cut("fault", ["a"], ["c"]), id="ends cut"),
        pytest.param(lambda network: network.partition("fault", [["a"], ["b"]]), id="partition"),
        pytest.param(lambda network: network.set_link(Link(Fixed(0.01), loss=1.0), "a", "b"), id="first hop loses"),
        pytest.param(lambda network: network.set_link(Link(Fixed(0.01), loss=1.0), "b", "c"), id="second hop loses"),
    ],
)
def test_every_hop_can_be_disturbed(disturb: Callable[[Network], None]) -> None:
    """Cuts and settings of one link hold for whatever crosses it, also on its way to somebody else; the way back is another."""
    world = quiet_world(5, "a b c", topology=LINE)
    disturb(world.network)
    say(world, "a", "c", 1)
    world.run(1.0)
    assert numbers(world, "c") == []
    world.network.heal()
    world.network.set_link(Link(Fixed(0.01)), "a", "b")
    world.network.set_link(Link(Fixed(0.5)), "b", "c")
    say(world, "a", "c", 2)
    world.run(1.5)
    assert numbers(world, "c") == []
    world.run(1.52)
    assert numbers(world, "c") == [2]


def test_the_last_hop_doubles() -> None:
    """Duplication of a link: the copy comes from there, so it has made the same way before."""
    world = quiet_world(6, "a b c", topology=LINE)
    world.network.set_link(Link(Fixed(0.01), duplicate=1.0), "b", "c")
    say(world, "a", "c")
    world.run(1.0)
    assert numbers(world, "c") == [0, 0]
    assert all(at - (world.nodes["c"].now - world.now) == pytest.approx(0.02) for at, _, _ in machine(world, "c").heard)


def test_a_relay_that_never_started_is_down() -> None:
    """A relay without a process passes nothing on."""
    world = quiet_world(7, "a c", topology=LINE)
    say(world, "a", "c")
    world.run(1.0)
    assert numbers(world, "c") == []


def test_no_way_is_no_way() -> None:
    """Two islands: nothing arrives, and nothing raises."""
    islands = Topology({"a": (0, 0), "b": (5, 0)}, 1.0)
    assert not islands.connected
    assert islands.path("a", "b") is None
    world = quiet_world(4, "a b", topology=islands)
    say(world, "a", "b")
    world.run(1.0)
    assert numbers(world, "b") == []


def test_placements_are_drawn_from_the_seed() -> None:
    """The same random, the same map; another one, another map."""
    assert drawn("clustered", 1).points == drawn("clustered", 1).points
    assert drawn("clustered", 1).points != drawn("clustered", 2).points


def test_an_impossible_placement_says_so() -> None:
    """A reach that connects nobody ends in an error that names it, not in a loop."""
    with pytest.raises(ValueError, match=r"make reach larger than 0\.001"):
        scattered(NINE, Random(1), side=10, reach=0.001)
