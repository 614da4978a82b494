"""How a ring begins: by hand, or by a majority of the seeds; and how two become one.  Spec: ring 5.7 (found), D20; foundation F8, F16."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError
from holdfast.features.ring.lab.rings import Rings, address_of
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import FOUNDING_LEASES, RingConfig
from holdfast.features.ring.protocol.facts import BecameMember
from holdfast.features.ring.protocol.fencing import GEN_MAX, MICROSECONDS, ORPHAN_JUMP
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, NodeId
from holdfast.lab.links import Fixed, Link
from tests.features.ring.stand import T_L, peer
from tests.support.fake_host import FakeHost, FakeStorage

SEEDS = tuple(Address(name, 1) for name in "abc")
PROMISE = FOUNDING_LEASES * T_L
CONFIG = RingConfig(k=2)


class Seed:
    """One of the three seeds a, b, c, at the point where it asks the others whether it may found."""

    def __init__(self, name: str, *, disk: FakeStorage | None = None, asking: bool = True) -> None:
        self.host = FakeHost(name, storage=disk)
        self.ring = standalone(self.host, RingConfig(k=3, seeds=SEEDS)).ring
        if asking:
            self.ring.start()
            self.host.pass_time(0.0)
            ((_, discover),) = self.host.take(m.Discover)
            other = next(each for each in "abc" if each != name)
            self.ring.on_message(
                NodeId(other, 1), m.Discovered(discover.serial, m.Answer.NO_MEMBER, 0, (), seeded=False, asked=Address(other, 1))
            )

    def asked(self) -> list[str]:
        return sorted(to.host for to, message in self.host.take(m.FoundAsk) if isinstance(to, Address) and not message.withdraw)

    def answer(self, name: str, *, granted: bool, member: bool = False, gen: int = 0) -> None:
        serials = [sent.message.serial for sent in self.host.sent if isinstance(sent.message, m.FoundAsk)]
        self.ring.on_message(NodeId(name, 1), m.FoundPromise(serials[-1], granted, member, Address(name, 1), gen))

    def is_asked(self, name: str, *, serial: int = 1, withdraw: bool = False) -> list[bool]:
        """Another seed asks this one; what it answers."""
        self.ring.on_message(NodeId(name, 1), m.FoundAsk(serial, withdraw))
        return [message.granted for _, message in self.host.take(m.FoundPromise)]

    @property
    def founded(self) -> bool:
        return any(event.founded for event in self.host.events(BecameMember))


# By hand.


def test_found_begins_a_ring_of_one() -> None:
    """Ring 5.7 (found): a member at once, alone, with a ring id of its own and wall-clock microseconds as its generation (F16, H26)."""
    host = FakeHost("a")
    ring = standalone(host, RingConfig(found=True)).ring
    ring.start()
    assert ring.is_member
    assert ring.list.ids == [ring.id]
    assert ring.ring != 0
    assert ring.fencing.gen == int(host.wall_clock * MICROSECONDS)


def test_nobody_founds_twice() -> None:
    """Ring 10 (AlreadyStarted): a member or a candidate is told to leave first."""
    ring = standalone(FakeHost("a"), RingConfig(found=True)).ring
    ring.start()
    with pytest.raises(ConfigError, match="leave first"):
        ring.found()


def test_join_needs_somebody_to_ask() -> None:
    """Ring 10: without seeds there is nobody to knock at."""
    with pytest.raises(ConfigError, match="seeds"):
        standalone(FakeHost("a"), RingConfig()).ring.join()


# By the seeds.


def test_nobody_founds_before_it_has_knocked() -> None:
    """D20: all of them new: only when no seed is in a ring is anybody asked for a promise."""
    seed = Seed("a", asking=False)
    seed.ring.start()
    seed.host.pass_time(0.0)
    assert seed.asked() == []
    assert Seed("a").asked() == ["b", "c"]


def test_a_majority_is_enough_if_the_rest_is_silent() -> None:
    """D20: a majority of the seed list, itself among it; the silent third one has T_l to object."""
    seed = Seed("a")
    seed.answer("b", granted=True)
    seed.host.pass_time(T_L - 0.01)
    assert not seed.founded
    seed.host.pass_time(0.01)
    assert seed.founded


def test_everybody_agrees_at_once() -> None:
    """D20: with the promise of all there is nothing to wait for."""
    seed = Seed("a")
    seed.answer("b", granted=True)
    seed.answer("c", granted=True)
    assert seed.founded


def test_one_objection_is_enough() -> None:
    """D20: none naming a live ring, and the smallest name among them."""
    seed = Seed("a")
    seed.answer("b", granted=True)
    seed.answer("c", granted=False)
    seed.host.pass_time(T_L)
    assert not seed.founded


def test_a_minority_never_founds() -> None:
    """D20: alone of three, whatever the time."""
    seed = Seed("a")
    seed.host.pass_time(50 * T_L)
    assert not seed.founded


def test_a_member_shows_the_way() -> None:
    """D20: a seed that is in a ring already says so, and is knocked at next."""
    seed = Seed("a")
    seed.answer("b", granted=False, member=True)
    seed.answer("c", granted=False)
    seed.host.take(m.Discover)
    seed.host.pass_time(3 * T_L)
    assert seed.host.take(m.Discover)[0][0] == Address("b", 1)


def test_the_member_that_objects_is_the_door() -> None:
    """H160: there is a ring, and where it is was just said: it is knocked at in the same moment."""
    seed = Seed("a")
    seed.answer("b", granted=False, member=True)
    seed.host.take(m.Discover)
    seed.host.pass_time(0.0)
    assert [to for to, _ in seed.host.take(m.Discover)] == [Address("b", 1)]


def test_of_two_that_ask_the_larger_name_gives_way() -> None:
    """D20, H160: both ask at once. The larger name withdraws before it promises, and knocks at the smaller one next."""
    seed = Seed("b")
    assert seed.asked() == ["a", "c"]
    assert seed.is_asked("a") == [True]
    withdrawn = {to: message.serial for to, message in seed.host.take(m.FoundAsk) if message.withdraw}
    assert list(withdrawn) == [Address("a", 1), Address("c", 1)]
    for name in "ac":  # Too late: what they promise now counts for nothing.
        seed.ring.on_message(NodeId(name, 1), m.FoundPromise(withdrawn[Address(name, 1)], True, False, Address(name, 1)))
    assert not seed.founded
    seed.host.take(m.Discover)
    seed.host.pass_time(T_L / 8)
    assert seed.host.take(m.Discover)[0][0] == NodeId("a", 1)


def test_the_smaller_name_does_not_give_way() -> None:
    """D20: the smallest name founds, whoever else asks meanwhile."""
    seed = Seed("a")
    assert seed.is_asked("b") == [False]
    seed.answer("b", granted=True)
    seed.answer("c", granted=True)
    assert seed.founded


def test_who_has_promised_asks_nobody_for_a_promise() -> None:
    """D20, H160: it knocks at the one it promised, soon."""
    seed = Seed("b", asking=False)
    assert seed.is_asked("a") == [True]
    seed.ring.start()
    seed.host.pass_time(0.0)
    ((to, discover),) = seed.host.take(m.Discover)
    assert isinstance(to, Address)
    seed.ring.on_message(NodeId("c", 1), m.Discovered(discover.serial, m.Answer.NO_MEMBER, 0, (), seeded=False, asked=Address("c", 1)))
    assert seed.asked() == []
    seed.host.pass_time(T_L / 8)
    assert seed.host.take(m.Discover)[0][0] == NodeId("a", 1)


def test_a_founder_calls_whoever_it_sent_away() -> None:
    """H160: who asked before there was a ring is told, one at a time, when there is one."""
    seed = Seed("a")
    seed.ring.on_message(NodeId("x", 1), m.Discover(7, peer("x", 5).id, (), over=False))
    assert seed.is_asked("c") == [False]
    seed.host.take(m.Discovered)
    seed.answer("b", granted=True)
    seed.answer("c", granted=True)
    assert seed.founded
    ((to, called),) = seed.host.take(m.Discovered)
    assert (to, called.serial, called.asked) == (NodeId("x", 1), m.INVITED, Address("a", 1))


def test_a_member_cannot_agree() -> None:
    """D20 (none naming a live ring): whatever else it says, whoever is in a ring objects."""
    seed = Seed("a")
    seed.answer("b", granted=True, member=True)
    seed.answer("c", granted=True)
    seed.host.pass_time(T_L)
    assert not seed.founded


def test_a_promise_that_came_too_late_is_none() -> None:
    """D20: the disk took its time, and meanwhile the seed is in a ring: what it answers is what is true now."""
    disk = FakeStorage()
    seed = Seed("c", disk=disk, asking=False)
    assert seed.is_asked("a") == []
    seed.ring.found()
    disk.complete()
    assert [(message.granted, message.member) for _, message in seed.host.take(m.FoundPromise)] == [(False, True)]


@pytest.mark.parametrize("asker,granted", [("a", True), ("c", False)], ids=["smaller", "larger"])
def test_the_smallest_name_founds(asker: str, granted: bool) -> None:
    """D20: a seed that wants to be in a ring promises only to smaller names; a larger one it tells to wait for it."""
    seed = Seed("b", asking=False)
    seed.ring.lifecycle.wanted = True
    assert seed.is_asked(asker) == [granted]


def test_who_wants_no_ring_objects_to_none() -> None:
    """D20, H22: a seed that has left, and whose process still runs, must not keep the others from founding."""
    assert Seed("b", asking=False).is_asked("c") == [True]


def test_a_promise_binds_for_ten_leases() -> None:
    """D20: promises are valid for 10 T_l; to the same name they are given again, to another one not before."""
    seed = Seed("c", asking=False)
    assert seed.is_asked("a") == [True]
    assert seed.is_asked("b") == [False]
    assert seed.is_asked("a") == [True]
    seed.host.pass_time(PROMISE - 0.01)
    assert seed.is_asked("b") == [False]
    seed.host.pass_time(0.01)
    assert seed.is_asked("b") == [True]


def test_a_promise_is_on_disk_before_it_is_given() -> None:
    """D20: a restarted promiser would forget it; so the answer waits for the disk, and the next life keeps the promise in full."""
    disk = FakeStorage()
    seed = Seed("c", disk=disk, asking=False)
    assert seed.is_asked("a") == []
    disk.complete()
    assert [message.granted for _, message in seed.host.take(m.FoundPromise)] == [True]
    again = Seed("c", disk=FakeStorage(disk.durable, auto=True), asking=False)
    assert again.is_asked("b") == [False]
    again.host.pass_time(PROMISE)
    assert again.is_asked("b") == [True]


def test_a_promise_can_be_given_back() -> None:
    """D20: a founder that failed withdraws what it was promised, for that very attempt; an older word withdraws nothing."""
    seed = Seed("c", asking=False)
    assert seed.is_asked("a", serial=5) == [True]
    seed.is_asked("a", serial=4, withdraw=True)
    assert seed.is_asked("b") == [False]
    seed.is_asked("a", serial=5, withdraw=True)
    assert seed.is_asked("b") == [True]


def test_members_promise_nothing() -> None:
    """D20: whoever is in a ring objects."""
    seed = Seed("c", asking=False)
    seed.ring.found()
    assert seed.is_asked("a") == [False]


def test_a_founder_that_stays_alone_gives_up() -> None:
    """D20, F8: before the promises run out on the others' clocks, a founder whom nobody joined departs; they may found then."""
    seed = Seed("a")
    asked_at = seed.host.now
    seed.answer("b", granted=True)
    seed.answer("c", granted=True)
    rho = seed.ring.config.rho
    seed.host.pass_time(PROMISE * (1 - rho) / (1 + rho) - (seed.host.now - asked_at) - 0.001)
    states = [seed.ring.is_member]
    seed.host.pass_time(0.002)
    states.append(seed.ring.is_member)
    assert states == [True, False]


# Tokens of a ring that is founded after another (F16, H26).


def test_a_founder_begins_above_what_it_was_told() -> None:
    """G9, H26: a promise says the highest generation its giver ever knew; the founder begins above all of them, below 2^53."""
    seed = Seed("a")
    far = int(seed.host.wall_clock * MICROSECONDS) + 7 * ORPHAN_JUMP
    seed.answer("b", granted=True, gen=far)
    seed.answer("c", granted=True, gen=5)
    assert (seed.founded, seed.ring.fencing.gen) == (True, far + 1)
    worst = Seed("a")
    worst.answer("b", granted=True, gen=1 << 53)
    worst.answer("c", granted=True)
    assert (worst.founded, worst.ring.fencing.gen) == (True, GEN_MAX)


def test_whoever_has_seen_a_jump_says_so() -> None:
    """H26: in its promise, and when it is asked whether it knows a ring; also in its next life."""
    disk = FakeStorage(auto=True)
    seed = Seed("c", disk=disk, asking=False)
    seed.ring.found()
    lost = peer("lost", 77)
    seed.ring.list.hear([lost])
    seed.ring.changes.remove(lost.id, certain=False, reason="orphan")
    jumped = seed.ring.fencing.gen
    assert jumped >= int(seed.host.wall_clock * MICROSECONDS) + ORPHAN_JUMP
    again = Seed("c", disk=FakeStorage(disk.durable, auto=True), asking=False)
    again.ring.on_message(NodeId("a", 1), m.FoundAsk(1))
    again.ring.on_message(NodeId("a", 1), m.Discover(1, lost.id, (), over=False))
    assert [message.gen for _, message in again.host.take(m.FoundPromise)] == [jumped]
    assert [message.gen for _, message in again.host.take(m.Discovered)] == [jumped]


def test_who_is_asked_for_a_ring_brings_what_it_knew() -> None:
    """H26: those whom a departed founder last knew in a ring are no seeds, perhaps; their answer counts all the same."""
    seed = Seed("a", asking=False)
    seed.ring.on_message(NodeId("x", 1), m.Discovered(1, m.Answer.NO_MEMBER, 0, (), seeded=False, asked=Address("x", 1), gen=GEN_MAX - 9))
    seed.ring.found()
    assert seed.ring.fencing.gen == GEN_MAX - 8


def test_an_unreadable_jump_is_none() -> None:
    """H26: what the disk says about it may be damaged; the wall clock remains."""
    seed = Seed("a", disk=FakeStorage({"ring/gen": b"\xc1"}, auto=True), asking=False)
    seed.ring.found()
    assert seed.ring.fencing.gen == int(seed.host.wall_clock * MICROSECONDS)


# Together.


def fleet(seed: int, names: list[str], seeds: list[str], config: RingConfig = CONFIG) -> Rings:
    rings = Rings(seed, config, seeds=seeds, link=Link(Fixed(0.002)))
    for name in names:
        rings.start(name)
    return rings


@pytest.mark.parametrize("seed", range(3))
def test_a_group_that_starts_together_becomes_one_ring(seed: int) -> None:
    """D20: eight processes, three of them seeds, start in the same instant: one ring with all of them."""
    names = [f"n{i}" for i in range(8)]
    rings = fleet(seed, names, names[:3])
    rings.world.run(60.0)
    assert {ring.ring for ring in rings.alive} == {rings.members["n0"].ring}
    assert {len(ring.list) for ring in rings.alive} == {8}


@pytest.mark.parametrize("size, limit", [(3, 1.5), (5, 1.5), (16, 2.0)])
def test_a_group_that_starts_together_is_soon_complete(size: int, limit: float) -> None:
    """H160: every list is complete within so many T_l of the last start, however the starts fall within 0.3 T_l."""
    names = [f"s{number:02}" for number in range(size)]
    for seed in range(10):
        rings = Rings(seed, RingConfig(), link=Link(Fixed(0.001)), seeds=names[:3])
        for name in rings.world.random.sample(names, size):
            rings.world.run(rings.world.now + 0.3 * T_L / size)
            rings.start(name)
        rings.world.run(rings.world.now + limit * T_L)
        assert [len(rings.members[name].members()) for name in names] == [size] * size, f"seed {seed}"


def test_an_emptied_ring_founds_again() -> None:
    """D20 (departed with no live pair): everybody was forced out; the seeds found a new ring, and all come back."""
    names = [f"n{i}" for i in range(5)]
    rings = fleet(1, names, names[:3])
    rings.world.run(40.0)
    former = rings.members["n0"].ring
    for name in names:
        rings.members[name].depart("test")
    rings.world.run(140.0)
    assert rings.size == 5
    assert {ring.ring for ring in rings.alive} != {former}
    assert len({ring.ring for ring in rings.alive}) == 1


def test_seeds_that_come_back_find_the_ring() -> None:
    """D20 (a cached member list on disk is tried first): all seeds restart while others keep the ring; they found no second one."""
    names = [f"n{i}" for i in range(7)]
    rings = fleet(1, names, names[:2])
    rings.world.run(40.0)
    ring = rings.members["n6"].ring
    for name in names[:2]:
        rings.world.crash(name)
    rings.world.run(60.0)
    for name in names[:2]:
        rings.start(name)
    rings.world.run(120.0)
    assert {each.ring for each in rings.alive} == {ring}
    assert rings.size == 7


@pytest.mark.parametrize("refound", [100.0, 0.0], ids=["on", "off"])
def test_seeds_that_are_cut_off_found_no_second_ring(refound: float) -> None:
    """D20, H29: all seeds are cut off with a minority and put out. Most of those they last knew are silent, so the ring may go on without
    them: they wait, and come back to it after the heal. Off, they found a second ring at once."""
    names = [f"n{i}" for i in range(12)]
    rings = fleet(3, names, names[:3], RingConfig(k=2, refound=refound))
    rings.world.run(40.0)
    assert rings.size == 12
    former = rings.members["n11"].ring
    rings.world.network.partition("cut", (names[:4], names[4:]))
    rings.world.run(120.0)
    assert {ring.ring == former for ring in rings.alive} == ({True} if refound else {True, False})
    rings.world.network.heal("cut")
    rings.world.run(220.0)
    assert len({ring.ring for ring in rings.alive}) == 1
    assert rings.size == 12
    assert rings.members["n11"].ring == former or not refound


def test_when_most_are_dead_the_seeds_found_in_the_end() -> None:
    """D20, H29 (live): eight of twelve die at once and stay dead, the rest is put out; nobody can tell that from a cut, so the seeds wait
    for ``refound``, and found then."""
    names = [f"n{i}" for i in range(12)]
    rings = fleet(3, names, names[:3], RingConfig(k=2, refound=60.0))
    rings.world.run(40.0)
    assert rings.size == 12
    for name in names[4:]:
        rings.world.crash(name)
    rings.world.run(90.0)
    assert rings.size == 0
    rings.world.run(200.0)
    assert rings.size == 4
    assert len({ring.ring for ring in rings.alive}) == 1


@pytest.mark.parametrize("out", [1, 2], ids=["too few", "a majority"])
def test_a_majority_of_the_last_ring_must_be_out_of_it(out: int) -> None:
    """H29: of four members, itself among them, so many others say that they are in no ring; silence is no answer for a while. A promise to
    somebody else needs the same."""
    seed = Seed("c", asking=False)
    seed.ring.found()
    others = [peer(name, 10 + place) for place, name in enumerate("xyz")]
    seed.ring.list.hear(others)
    seed.ring.depart("rejected")
    seed.ring.lifecycle.wanted = True
    seed.host.take(m.Discover)
    asked: list[tuple[NodeId | Address, m.Discover]] = []
    while len(asked) < 3:
        seed.host.pass_time(T_L / 10)
        asked = seed.host.take(m.Discover)
    for to, discover in asked[:out]:
        name = to.host if isinstance(to, Address) else to.name
        no = m.Discovered(discover.serial, m.Answer.NO_MEMBER, 0, (), seeded=False, asked=Address(name, 1))
        seed.ring.on_message(NodeId(name, 1), no)
    seed.host.pass_time(T_L)
    assert seed.ring.scouting.may_found is (out == 2)
    assert seed.is_asked("a") == [out == 2]


def test_who_left_politely_looks_before_it_promises() -> None:
    """D20 (none naming a live ring): a ring without seeds may be known to nobody but a seed that left it. It asks there first; if that ring
    lives, the founder is sent there, otherwise it gets its promise."""
    seed = Seed("c", asking=False)
    seed.ring.found()
    other = peer("x", 10)
    seed.ring.list.hear([other])
    seed.ring.leave()
    assert seed.is_asked("a") == []
    ((_, discover),) = seed.host.take(m.Discover)
    found = m.Discovered(discover.serial, m.Answer.OK, 1, (other,), seeded=False, asked=other.address)
    seed.ring.on_message(other.node, found)
    assert [(message.granted, message.guide) for _, message in seed.host.take(m.FoundPromise)] == [(False, other.address)]
    assert seed.is_asked("a", serial=2) == []  # It may have ended since: every question is looked into.
    seed.host.pass_time(T_L)
    assert [(message.serial, message.granted) for _, message in seed.host.take(m.FoundPromise)] == [(2, True)]


def test_a_founder_goes_where_it_is_sent() -> None:
    """D20: a seed that is in no ring names a member of one; the founder knocks there."""
    seed = Seed("a")
    seed.host.take(m.Discover)
    ((_, ask), *_) = seed.host.take(m.FoundAsk)
    seed.ring.on_message(NodeId("b", 1), m.FoundPromise(ask.serial, False, False, Address("b", 1), 0, Address("x", 1)))
    seed.host.pass_time(3 * T_L)
    assert seed.host.take(m.Discover)[0][0] == Address("x", 1)


def test_twins_do_not_mix() -> None:
    """D20, ring 3: messages of another ring are dropped, so two rings in one group keep their lists apart."""
    rings = Rings(1, RingConfig(k=2))
    rings.form(["a0", "a1", "a2"])
    rings.form(["b0", "b1", "b2"])
    rings.world.run(20.0)
    assert {len(ring.list) for ring in rings.alive} == {3}
    assert len({ring.ring for ring in rings.alive}) == 2


def test_a_ring_without_the_seeds_joins_the_one_that_has_them() -> None:
    """D20 (residual risk): two rings of one group; the one that holds no majority of the seeds dissolves into the other."""
    rings = Rings(1, RingConfig(k=2), configure=lambda name, config: RingConfig(k=2, seeds=tuple(map(address_of, ("a0", "a1", "a2")))))
    rings.form(["a0", "a1", "a2"])
    rings.form(["b0", "b1"])
    rings.world.run(80.0)
    assert {ring.ring for ring in rings.alive} == {rings.members["a0"].ring}
    assert rings.size == 5


@pytest.mark.parametrize(
    "seeded,smaller,leaves", [(True, False, True), (False, True, True), (False, False, False)], ids=["seeded", "smaller", "neither"]
)
def test_of_two_rings_one_gives_way(seeded: bool, smaller: bool, leaves: bool) -> None:
    """D20 (twins): a member of a ring without the seeds finds another ring at a seed. It goes there if that one holds the seeds or has
    the smaller id, and stays otherwise: never do both give way to each other."""
    host = FakeHost("me")
    ring = standalone(host, RingConfig(k=3, seeds=SEEDS)).ring
    ring.found()
    found: list[tuple[NodeId | Address, m.Discover]] = []
    while not found:
        host.pass_time(T_L / 10)
        found = host.take(m.Discover)
    ((asked, discover),) = found
    assert asked in SEEDS
    other = ring.ring - 1 if smaller else ring.ring + 1
    name = asked.host if isinstance(asked, Address) else asked.name
    ring.on_message(NodeId(name, 1), m.Discovered(discover.serial, m.Answer.OK, other, (), seeded=seeded, asked=Address(name, 1)))
    assert ring.is_member is not leaves
