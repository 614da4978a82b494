"""Radios in the lab: loss end to end, bytes times hops, and a multicast that is passed on and repaired.  docs/lab.md; spec: election 8."""

from __future__ import annotations

from functools import partial

import pytest

from holdfast.host import Message
from holdfast.lab.accounting import HopBytes
from holdfast.lab.flood import Flood
from holdfast.lab.links import Fixed, Link
from holdfast.lab.topology import Topology
from holdfast.lab.world import World
from tests.lab.machines import Ping, machine, numbers, quiet_world, say

MANY = 2000
LINE = Topology({"a": (0.0, 0.0), "b": (1.0, 0.0), "c": (2.0, 0.0), "d": (3.0, 0.0)}, 1.0)


def line(seed: int = 1, loss: float = 0.0) -> World:
    world = quiet_world(seed, "a b c d", Link(Fixed(0.01), loss=loss))
    world.network.topology = LINE
    world.network.watch()
    return world


def test_loss_end_to_end_replaces_that_of_links() -> None:
    """Election 8: what is lost between two nodes is said by who they are, however many hops are between them."""
    world = line(loss=0.5)
    world.network.set_pair_loss(lambda source, target: 0.2 if target == "d" else 0.0)
    for number in range(MANY):
        for target in "dc":
            world.at(0.001 * number, partial(say, world, "a", target, number))
    world.run(10.0)
    # Binomial: five standard deviations of 2000 draws at 0.2 are 90.
    assert len(numbers(world, "d")) == pytest.approx(0.8 * MANY, abs=90)
    assert len(numbers(world, "c")) == MANY
    world.network.set_pair_loss(None)
    say(world, "a", "b", 1)
    world.run(11.0)


def test_bytes_count_once_per_hop() -> None:
    """Election 8 (F3 to F5): a message counts for each hop of its way, and what went another way is added."""
    world = line()
    counted = HopBytes(world, lambda source, message: 10)
    say(world, "a", "d", 1)
    say(world, "a", "b", 2)
    world.run(1.0)
    assert counted.total == 10 * (3 + 1)
    counted.add(Ping(1), "a", 2)
    assert counted.by_type == {"Ping": 60}
    counted.stop()
    say(world, "a", "b", 3)
    world.run(2.0)
    assert counted.total == 60


def flood(world: World, lost: set[tuple[str, str]], sent: list[str]) -> Flood:
    """Whatever is in ``lost`` is lost the first time."""

    def loss(source: str, target: str) -> float:
        if (source, target) in lost:
            lost.discard((source, target))
            return 1.0
        return 0.0

    return Flood(world, LINE, delay=Fixed(0.01), loss=loss, repair=0.5, counted=lambda message, source: sent.append(source))


def test_a_flood_reaches_all_hop_by_hop() -> None:
    """Election 8: each node passes a message on once, and hears it from the node that sent it first."""
    world, sent = line(), list[str]()
    found = flood(world, set(), sent)
    message: Message = Ping(7)
    found.cast(world.nodes["a"], message)
    world.run(0.025)
    assert [numbers(world, name) for name in "bcd"] == [[7], [7], []]
    world.run(2.0)
    assert [numbers(world, name) for name in "abcd"] == [[], [7], [7], [7]]
    assert sent == ["a", "b", "c", "d"]
    assert {source.name for _, source, _ in machine(world, "d").heard} == {"a"}


def test_what_a_link_lost_is_repaired() -> None:
    """Election 8: the multicast is eventually reliable; a node that is down is not waited for."""
    world, sent = line(), list[str]()
    found = flood(world, {("b", "c")}, sent)
    world.crash("d")
    found.cast(world.nodes["a"], Ping(7))
    world.run(0.4)
    assert numbers(world, "c") == []
    world.run(0.6)
    assert numbers(world, "c") == [7]
    world.run(5.0)
    assert sent == ["a", "b", "b", "c"]
