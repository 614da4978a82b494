"""The feed that holds back views, rule by rule, and what happens without it.  Spec: fast-detection D17, E19."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from holdfast.errors import ConfigError
from holdfast.features.leadership.detector.config import ElectionConfig, Term
from holdfast.features.leadership.detector.messages import WatchedOk
from holdfast.host import Address, Host, Machine, NodeId
from holdfast.kit.deadline import wait_length
from holdfast.kit.keeper import MARGIN
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.violation import Violation
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers.election import FenceOrder, LeaseExclusive, TermUnique, election_of
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.termstore import TermStore
from holdfast.papers.detection.protocol.views_feed import HELD_MAX, VIEW_MAX, ViewInstalled, ViewsFeed, single_steps
from tests.papers.detection.election_ablations import NoFeed, NoMajority, NoWait
from tests.papers.detection.election_stand import leaders
from tests.support.fake_host import FakeHost

L, RHO = 4.0, 1e-3
WAIT = wait_length(L, RHO, MARGIN)
A, B, C, D = (NodeId(name, 1) for name in "abcd")


def view(names: str) -> dict[str, Address]:
    return {name: Address(name, 1) for name in names}


class Fed:
    """One feed, and what it handed on."""

    def __init__(self, name: str = "a", installed: int = 0) -> None:
        self.host = FakeHost(name)
        self.installed = installed
        self.views: list[int] = []
        self.feed = ViewsFeed(self.host, interval=1.0, length=L, rho=RHO, installed=lambda: self.installed, install=self._install)
        self.feed.start()

    def _install(self, number: int, members: object) -> None:
        self.views.append(number)
        self.installed = max(number, self.installed)

    def hear(self, source: NodeId, number: int, *, ask: bool = False) -> None:
        self.feed.on_message(source, ViewInstalled(number, ask))


def test_first_view_is_handed_on_at_once() -> None:
    """D17: nothing came before the first view."""
    fed = Fed()
    fed.feed.offer(1, view("abc"))
    assert (fed.views, fed.feed.held, fed.host.timers) == ([1], 0, 0)


def test_next_view_needs_a_majority_and_the_wait() -> None:
    """D17 (2): v + 1 only when a majority of v installed v *and* L (1 + rho)/(1 - rho) has passed since."""
    fed = Fed()
    fed.feed.offer(1, view("abc"))
    fed.feed.offer(2, view("ab"))
    fed.host.pass_time(100.0)
    assert fed.views == [1]
    fed.hear(B, 1)
    fed.host.pass_time(WAIT - 0.001)
    assert fed.views == [1]
    fed.host.pass_time(0.002)
    assert fed.views == [1, 2]


def test_only_members_of_the_view_make_its_majority() -> None:
    """D17 (2): a newcomer, and whoever is still in the view before, do not count."""
    fed = Fed("d")
    fed.feed.offer(1, view("abc"))
    fed.feed.offer(2, view("abcd"))
    fed.hear(A, 1)
    fed.hear(B, 0)
    fed.host.pass_time(100.0)
    assert fed.views == [1]  # d itself is no member of view 1.
    fed.hear(B, 1)
    fed.host.pass_time(WAIT + 0.001)
    assert fed.views == [1, 2]


def test_word_of_one_who_is_further_is_enough() -> None:
    """D17: whoever installed a view could do so only after somebody saw the conditions hold for it."""
    fed = Fed()
    for number, names in ((1, "abc"), (2, "ab"), (3, "abd"), (4, "ad")):
        fed.feed.offer(number, view(names))
    fed.hear(D, 3)
    assert fed.views == [1, 3]
    assert fed.feed.held == 1


def test_restart_begins_with_the_view_on_its_disk() -> None:
    """D17, D18: what the former life had installed needs no proof."""
    fed = Fed(installed=3)
    for number, names in ((1, "abc"), (2, "ab"), (3, "abd"), (4, "ad")):
        fed.feed.offer(number, view(names))
    assert fed.views == [1, 2, 3]


def test_views_come_in_any_order_and_often() -> None:
    """offer: the same number is the same list; what was handed on before is counted and dropped."""
    fed = Fed()
    fed.feed.offer(2, view("ab"))
    assert fed.views == []
    fed.feed.offer(1, view("abc"))
    fed.feed.offer(1, view("abc"))
    fed.hear(B, 1)
    fed.feed.offer(2, view("ab"))
    fed.host.pass_time(WAIT + 0.001)
    assert (fed.views, fed.feed.counts["stale"]) == ([1, 2], 1)


def test_one_member_per_view() -> None:
    """D17 (1): neighbouring views differ by one member; the error says what to do instead."""
    fed = Fed()
    fed.feed.offer(1, view("abc"))
    with pytest.raises(ConfigError, match=r"view 2: 2 members differ .* accepted: one"):
        fed.feed.offer(2, view("abd"))
    fed.feed.offer(3, view("a"))
    with pytest.raises(ConfigError, match="view 3: 2 members differ"):
        fed.feed.offer(2, view("abc"))
    with pytest.raises(ConfigError, match=f"1 to {VIEW_MAX}"):
        fed.feed.offer(VIEW_MAX + 1, view("a"))


def test_single_steps_lead_from_one_list_to_another() -> None:
    """D17 (1): who comes, then who goes, one by one; never empty on the way."""
    steps = single_steps(view("abc"), view("cde"))
    assert ["".join(sorted(step)) for step in steps] == ["abcd", "abcde", "bcde", "cde"]
    assert single_steps(view("ab"), view("ab")) == []


def test_those_who_wait_ask() -> None:
    """D17: while something is held, members of the present and the next view are asked every interval; who is asked answers."""
    fed = Fed()
    fed.feed.offer(1, view("abc"))
    fed.feed.offer(2, view("abcd"))
    fed.host.pass_time(2.5)
    assert fed.host.take(ViewInstalled) == [(Address(name, 1), ViewInstalled(1, ask=True)) for name in "bcd"] * 3
    fed.hear(D, 0, ask=True)
    assert fed.host.take(ViewInstalled) == [(D, ViewInstalled(1, ask=False))]
    fed.hear(B, 2)
    fed.host.pass_time(5.0)
    assert (fed.views, fed.host.take(ViewInstalled)) == ([1, 2], [])


def test_strangers_and_nonsense_are_counted() -> None:
    """A peer's bad input is a counter; what waits has a limit."""
    fed = Fed()
    fed.feed.offer(1, view("abc"))
    fed.hear(D, 9)
    fed.hear(B, -1)
    fed.hear(B, VIEW_MAX + 1)
    for number in range(2, HELD_MAX + 4):
        fed.feed.offer(number, view("abcd" if number % 2 == 0 else "abc"))
    assert (fed.views, fed.feed.counts) == ([1], {"stranger": 1, "malformed": 2, "overflow": 2})
    fed.feed.stop()
    assert fed.host.timers == 0


# With elections on top: E19.


def fed_group(kind: type[ViewsFeed], names: str, checked: bool = True) -> World:
    config = ElectionConfig(t_itv=1.0, t_lat=0.05, length=L, rho=RHO)

    def build(host: Host) -> Iterable[Machine]:
        election = LeaderElection(host, config, TermStore(host.storage.part("election")))
        feed = kind(host, interval=1.0, length=L, rho=RHO, installed=lambda: election.installed, install=election.install_view)
        return [election, feed]

    checkers = [TermUnique(), LeaseExclusive(), FenceOrder()] if checked else []
    world = World(3, build, link=Link(Fixed(0.01)), checkers=checkers)
    for name in names:
        world.start(name)
    return world


def offer(world: World, number: int, members: str, to: str) -> None:
    for name in to:
        host = world.nodes[name]
        world.step(host, lambda host=host: host.node.use(ViewsFeed).offer(number, {each: Address(each, PORT) for each in members}))  # type: ignore[misc]


@pytest.mark.parametrize("kind", [ViewsFeed, NoWait, NoFeed], ids=lambda kind: kind.__name__)
def test_e19_lease_length_between_views(kind: type[ViewsFeed]) -> None:
    """D17, E19: {a, b, c}, a leads with b's promise; {b, c}; {c}. Without the wait c leads alone while a's lease runs."""
    world = fed_group(kind, "abc")
    offer(world, 1, "abc", "abc")
    # So that c promises nothing to anybody.
    world.network.lose_if(lambda source, target, message: target == "c" and isinstance(message, WatchedOk))
    world.run(10.0)
    assert leaders(world) == ["a"]
    world.network.cut("a is cut off", "a", "bc")
    world.network.cut("and hears nobody", "bc", "a")
    offer(world, 2, "bc", "bc")
    offer(world, 3, "c", "bc")
    if kind is ViewsFeed:
        world.run(40.0)
        assert leaders(world) == ["c"]
        assert election_of(world.nodes["c"]).term.view == 3
    else:
        with pytest.raises(Violation, match="I2 lease-exclusive"):
            world.run(40.0)


@pytest.mark.parametrize("kind", [ViewsFeed, NoMajority, NoFeed], ids=lambda kind: kind.__name__)
def test_e19_majority_of_a_view_installs_it_first(kind: type[ViewsFeed]) -> None:
    """D17, E19: a view feed ahead of its majority: d alone hears that everybody else has left, one by one, and would lead beside a."""
    world = fed_group(kind, "abcd")
    offer(world, 1, "abcd", "abcd")
    world.run(10.0)
    assert leaders(world) == ["a"]
    world.network.partition("alone", ["abc", "d"])
    for number, members in ((2, "bcd"), (3, "cd"), (4, "d")):
        offer(world, number, members, "d")
    if kind is ViewsFeed:
        world.run(60.0)
        assert leaders(world) == ["a"]
    else:
        with pytest.raises(Violation, match="I2 lease-exclusive"):
            world.run(60.0)


def test_views_pass_while_leadership_goes_on() -> None:
    """D17: through three views the leader stays, and its token grows with each of them."""
    world = fed_group(ViewsFeed, "abcd")
    offer(world, 1, "abc", "abcd")
    world.run(5.0)
    offer(world, 2, "abcd", "abcd")
    offer(world, 3, "acd", "abcd")
    tokens = []
    for until in range(6, 40):
        world.run(float(until))
        assert leaders(world) == ["a"]
        tokens.append(election_of(world.nodes["a"]).token())
    assert list(dict.fromkeys(tokens)) == [Term(1, 0).token, Term(2, 0).token, Term(3, 0).token]
