"""The network model: each message draws its own delay and fate, and cuts mean what they say."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.lab.links import Exponential, Fixed, Link, LogNormal, Uniform
from holdfast.lab.world import World
from tests.lab.machines import Ping, machine, numbers, quiet_world, say

MANY = 4000


def send_many(world: World, count: int = MANY, gap: float = 0.0) -> None:
    for number in range(count):
        world.at(number * gap, lambda number=number: say(world, "a", "b", number))  # type: ignore[misc]
    world.run(count * gap + 100.0)


def delays(link: Link, count: int = MANY) -> list[float]:
    """How long each message took, from a clock that is exact and starts anywhere."""
    world = quiet_world(1, "a b", link)
    send_many(world, count)
    offset = world.nodes["b"].now - world.now
    return [at - offset for at, _, _ in machine(world, "b").heard]


@pytest.mark.parametrize("tail", [0.0, 1e-9])
def test_loss_rate(tail: float) -> None:
    """A link loses the share it was told to, on the short road (calm) and on the long one (with a tail)."""
    world = quiet_world(2, "a b", Link(Fixed(0.01), loss=0.3, tail=tail))
    assert world.network.calm == (tail == 0.0)
    send_many(world)
    # Binomial: five standard deviations of 4000 draws at 0.3 are 145.
    assert len(numbers(world, "b")) == pytest.approx(0.7 * MANY, abs=145)


def test_uniform_delay_stays_in_its_bounds() -> None:
    """Uniform: every delay between the bounds, and the whole range is used."""
    found = delays(Link(Uniform(0.002, 0.004)))
    assert min(found) >= 0.002 - 1e-9
    assert max(found) <= 0.004 + 1e-9
    assert min(found) < 0.00201
    assert max(found) > 0.00399


def test_exponential_delay_has_its_mean_and_its_least() -> None:
    """Exponential: nothing is faster than ``least``; the mean above it is ``mean``."""
    found = delays(Link(Exponential(0.010, least=0.005)))
    assert min(found) >= 0.005 - 1e-9
    assert sum(found) / len(found) - 0.005 == pytest.approx(0.010, rel=0.1)


def test_lognormal_delay_has_its_median() -> None:
    """LogNormal: half of the messages take longer than the median."""
    found = sorted(delays(Link(LogNormal(0.020, 0.5))))
    assert found[len(found) // 2] == pytest.approx(0.020, rel=0.05)


def test_tail_makes_some_messages_late() -> None:
    """A tail: that share of the messages takes longer than the delay says, by at most ``tail_seconds``."""
    found = delays(Link(Fixed(0.01), tail=0.1, tail_seconds=2.0))
    late = [delay for delay in found if delay > 0.0101]
    assert len(late) == pytest.approx(0.1 * MANY, abs=100)
    assert max(late) <= 2.01


def test_messages_overtake_each_other() -> None:
    """Reordering: each message draws its own delay."""
    world = quiet_world(3, "a b", Link(Uniform(0.001, 0.1)))
    send_many(world, 200, gap=0.001)
    heard = numbers(world, "b")
    assert sorted(heard) == list(range(200))
    assert any(later < earlier for earlier, later in pairwise(heard))


def test_duplicates_arrive_twice() -> None:
    """Duplication: that share of the messages comes twice, each copy with a delay of its own."""
    world = quiet_world(4, "a b", Link(Uniform(0.001, 0.1), duplicate=0.25))
    send_many(world)
    heard = numbers(world, "b")
    assert len(heard) - len(set(heard)) == pytest.approx(0.25 * MANY, abs=140)
    assert max(heard.count(number) for number in set(heard[:50])) <= 2


def test_one_way_cut() -> None:
    """A cut silences one direction only, until it heals."""
    world = quiet_world(5, "a b c")
    world.network.cut("fault", ["a"], ["b"])
    for source, target in (("a", "b"), ("b", "a"), ("a", "c")):
        say(world, source, target)
    world.run(1.0)
    assert [len(numbers(world, name)) for name in "abc"] == [1, 0, 1]
    world.network.heal("fault")
    say(world, "a", "b", 7)
    world.run(2.0)
    assert numbers(world, "b") == [7]


def test_partition_and_heal() -> None:
    """A partition: nothing passes between the sides, everything within one; who is on no side reaches all."""
    world = quiet_world(6, "a b c d")
    world.network.partition("fault", (("a", "b"), ("c",)))
    for source in "abcd":
        for target in "abcd":
            if source != target:
                say(world, source, target, ord(source))
    world.run(1.0)
    assert {name: "".join(sorted(map(chr, numbers(world, name)))) for name in "abcd"} == {"a": "bd", "b": "ad", "c": "d", "d": "abc"}
    world.network.heal()
    say(world, "a", "c", 9)
    world.run(2.0)
    assert 9 in numbers(world, "c")


def test_two_faults_over_one_link_end_one_by_one() -> None:
    """Every fault carries its own end: the end of one does not lift the other."""
    world = quiet_world(7, "a b")
    world.network.cut("first", ["a"], ["b"])
    world.network.cut("second", ["a"], ["b"])
    world.network.heal("first")
    say(world, "a", "b")
    world.run(1.0)
    assert numbers(world, "b") == []


def test_links_can_differ() -> None:
    """Per-link delay: a setting for one direction goes before what holds for all."""
    world = quiet_world(8, "a b c")
    world.network.set_link(Link(Fixed(0.5)), "a", "b")
    say(world, "a", "b")
    say(world, "a", "c")
    world.run(0.1)
    assert (numbers(world, "b"), numbers(world, "c")) == ([], [0])
    world.run(1.0)
    assert numbers(world, "b") == [0]


def test_weather_comes_and_goes() -> None:
    """A spell of weather lies over all links; the latest one counts, and its end brings back what was there before."""
    world = quiet_world(9, "a b")
    world.network.set_weather("first", Link(Fixed(0.2)))
    world.network.set_weather("second", Link(loss=0.999999))
    say(world, "a", "b", 1)
    world.network.set_weather("second", None)
    say(world, "a", "b", 2)
    world.network.set_weather("first", None)
    say(world, "a", "b", 3)
    world.run(1.0)
    assert numbers(world, "b") == [3, 2]


def test_hand_made_rules_lose_what_they_name() -> None:
    """Directed schedules lose single messages."""
    world = quiet_world(10, "a b")
    world.network.lose_if(lambda source, target, message: isinstance(message, Ping) and message.number == 1)
    for number in range(3):
        say(world, "a", "b", number)
    world.run(1.0)
    assert numbers(world, "b") == [0, 2]


def test_a_disturbance_reaches_those_who_are_running() -> None:
    """The short road and the long one: a fault in the middle of a run takes effect at once, and so does its end."""
    world = quiet_world(11, "a b")
    for second in range(30):
        world.at(second + 0.5, lambda second=second: say(world, "a", "b", second))  # type: ignore[misc]
    world.at(10.0, lambda: world.network.cut("fault", ["a"], ["b"]))
    world.at(20.0, lambda: world.network.heal("fault"))
    world.run(40.0)
    assert numbers(world, "b") == [*range(10), *range(20, 30)]
