"""Seats: where the list comes from, and whether a seat that starts may speak.  Foundation 4 (Seats), F12, F13."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import pytest

from holdfast.errors import ConfigError, StorageDamaged
from holdfast.events import StorageFailed
from holdfast.host import Address, Host, Machine, NodeId
from holdfast.kit.deadline import wait_length
from holdfast.kit.delay import JUST_STARTED, Delay
from holdfast.kit.seats import (
    ASK_TIMEOUT,
    HELLO_PAUSE_MAX,
    HELLO_PERIOD,
    NO_SLOT,
    SeatHello,
    SeatHere,
    SeatOpened,
    Seats,
    SeatState,
)
from holdfast.kit.slots import Slot, find_slots, literal, own_slot
from tests.support.fake_host import FakeHost, FakeStorage
from tests.support.mesh import Mesh

SLOTS = tuple(Slot(number, name, Address(name, 1)) for number, name in enumerate("abc"))
LENGTH_MAX, RHO, MARGIN = 2.0, 0.01, 0.1
FRESH_WAIT = wait_length(LENGTH_MAX, RHO, MARGIN)


def seats_of(host: Host, *, slots: tuple[Slot, ...] = SLOTS, machine: str = "", moved: bool = False) -> Seats:
    own = own_slot(slots, host.me.name, host.address)
    return Seats(host, slots, own, machine=machine or host.me.name, rho=RHO, margin=MARGIN, length_max=LENGTH_MAX, moved=moved)


class Group(Mesh):
    """Three seats and an agent d that is none."""

    def __init__(self, *, started: str = "abcd") -> None:
        super().__init__("abcd", lambda host, members: [seats_of(host)])
        self.down = set("abcd") - set(started)
        for name in started:
            self.seats(name).start()

    def seats(self, name: str) -> Seats:
        machine = self.machines[name][0]
        assert isinstance(machine, Seats)
        return machine

    def states(self) -> list[SeatState]:
        return [self.seats(name).state for name in "abcd"]

    def run(self, seconds: float) -> None:
        """With resends: half a second at a time."""
        self.deliver()
        while seconds > 0:
            self.pass_time(min(0.5, seconds))
            self.deliver()
            seconds -= 0.5


def answered(host: FakeHost) -> list[tuple[object, int, bool]]:
    """To whom, to which question, and whether another journal of that slot is remembered."""
    return [(to, here.serial, here.met) for to, here in host.take(SeatHere)]


def test_the_setting_comes_first() -> None:
    """F12: ``seats=`` names them."""
    found = find(seats=["x@10.0.0.1:7946", "10.0.0.2:7946", "z@[::1]:7946"], seeds=["10.9.9.9:1"])
    assert found == (
        Slot(0, "x", Address("10.0.0.1", 7946)),
        Slot(1, "10.0.0.2:7946", Address("10.0.0.2", 7946)),
        Slot(2, "z", Address("::1", 7946)),
    )
    assert [slot.named for slot in found] == [True, False, True]


def test_a_seat_may_have_a_dns_name() -> None:
    """F12: the name of the agent is the slot; its place is a DNS name, in one spelling, and it is a seat by its name alone."""
    found = find(seats=["x@Holdfast-0.holdfast.:7946", "y@10.0.0.2:7946", "z@pod_2.example:7946"])
    assert [str(slot) for slot in found] == ["0=x@holdfast-0.holdfast:7946", "1=y@10.0.0.2:7946", "2=z@pod_2.example:7946"]
    assert [slot.by_dns for slot in found] == [True, False, True]
    assert own_slot(found, "x", Address("10.244.3.7", 7946)) == 0
    assert own_slot(found, "w", Address("10.244.3.7", 7946)) is None


def test_what_seats_say_of_themselves() -> None:
    """F13, H189: every seat answers a greeting with its state; a silent one is told apart from one that votes."""
    group = served()
    d, hosts = group.seats("d"), group.hosts
    d.greet()
    group.deliver()
    assert [seen.state for number in range(3) if (seen := d.seen(number))] == [SeatState.SERVING] * 3
    assert (d.voting, group.seats("a").voting) == (3, 1)  # The seat a has not asked the others.
    group.seats("b").fail("no space left on device")
    group.down = {"c"}
    group.pass_time(d.heard_for + 0.1)
    d.greet()
    group.deliver()
    seen = d.seen(1)
    assert seen is not None
    assert (seen.state, seen.why, seen.heard_at) == (SeatState.FAILED, "no space left on device", hosts["d"].now)
    assert [d.is_heard(number) for number in range(3)] == [True, True, False]
    assert d.voting == 1


def test_a_seat_that_waits_votes_when_its_wait_is_over() -> None:
    """F13, H189: a restarted seat says for how long it waits, in seconds; it is not asked again to know that it is over."""
    group = served()
    group.seats("b").keeper.cover(1.0, lambda: None)
    group.restart("b", group.hosts["b"].disk.durable)
    group.deliver()
    group.seats("a").greet()
    group.deliver()
    seen = group.seats("a").seen(1)
    assert seen is not None
    assert seen.state is SeatState.WAITING
    assert seen.wait == pytest.approx(wait_length(1.0, RHO, MARGIN))
    before = group.seats("a").voting
    group.pass_time(1.2)
    assert group.seats("a").voting == before + 1


def find(*, seats: Iterable[str] = (), seeds: Iterable[str] = (), key: bool = True, loopback: bool = False) -> tuple[Slot, ...]:
    return find_slots(
        seats=list(seats), seeds=list(seeds), key=key, loopback=loopback, own_name="me", own_address=Address("127.0.0.1", 7946)
    )


@pytest.mark.parametrize("seeds, slots", [(1, 1), (2, 1), (3, 3), (4, 3), (9, 3)])
def test_else_the_first_three_seeds(seeds: int, slots: int) -> None:
    """F12: the first 3 seeds, the first one if there are fewer; the same seed twice is one."""
    texts = [f"10.0.0.{i}:7946" for i in range(seeds)]
    found = find(seeds=[texts[0], *texts])
    assert [str(slot.address) for slot in found] == texts[:slots]


@pytest.mark.parametrize(
    "seeds, key, loopback",
    [(["10.0.0.1:7946", "seeds.example:7946"], True, False), ([], True, True), ([], False, False), ([], True, False)],
)
def test_otherwise_the_missing_setting_is_named(seeds: list[str], key: bool, loopback: bool) -> None:
    """F12: a DNS name, or no seeds with a key or beyond loopback: "who are the seats?"."""
    with pytest.raises(ConfigError, match=r"^seats: who are the seats\?.*set seats= to 1, 3 or 5 of NAME@HOST:PORT"):
        find(seeds=seeds, key=key, loopback=loopback)


def test_an_agent_alone_on_its_machine_is_its_own_seat() -> None:
    """F12: without seeds, key and network."""
    assert find(key=False, loopback=True) == (Slot(0, "me", Address("127.0.0.1", 7946)),)


@pytest.mark.parametrize(
    "seats, match",
    [
        (["a@10.0.0.1:1", "b@10.0.0.2:1"], "2 seats; accepted are 1, 3, 5"),
        (["a@ho st:1"], "'a@ho st:1' is no seat; accepted are NAME@HOST:PORT"),
        (["a@10.0.0.300:1"], "'a@10.0.0.300:1' is no seat"),
        (["a@-x.example:1"], "is no seat"),
        (["a@pod.example:99999"], "is no seat"),
        (["pod.example:1"], "write NAME@pod.example:1"),
        (["a@pod.example:1", "b@POD.example:1", "c@10.0.0.3:1"], "the same address"),
        (["10.0.0.1"], "'10.0.0.1' is no seat"),
        (["a@10.0.0.1:1", "a@10.0.0.2:1", "c@10.0.0.3:1"], "the same name"),
        (["a@10.0.0.1:1", "b@10.0.0.1:1", "c@10.0.0.3:1"], "the same address"),
    ],
)
def test_a_wrong_list_is_said(seats: list[str], match: str) -> None:
    """F12, tickets 4: odd, and each seat once."""
    with pytest.raises(ConfigError, match=match):
        find(seats=seats)


@pytest.mark.parametrize(
    "text", ["::1:7946", "[10.0.0.1]:7946", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:\u0667", "10.0.0:1", ":1", "", "a:b"]
)
def test_what_is_no_literal_address(text: str) -> None:
    """F12: "if every seed is a literal address"."""
    assert literal(text) is None


def test_the_list_is_part_of_the_fingerprint() -> None:
    """F4, tickets D9: two different lists would be two majorities; a mismatch names the slot."""
    other = (*SLOTS[:2], Slot(2, "x", Address("x", 1)))
    one, two = (seats_of(FakeHost("d"), slots=slots).fingerprint.split(b";") for slots in (SLOTS, other))
    assert [field for field in one if field not in two] == [b"seat2='2=c@c:1'"]


def test_the_first_start_needs_everybody_once() -> None:
    """F13, empty journal: fresh only if every other slot says "never met you"; then the wait of an empty journal."""
    group = Group(started="ab")
    group.run(3)
    assert group.states()[:2] == [SeatState.ASKING, SeatState.ASKING]
    group.down.clear()
    group.seats("c").start()
    group.run(1)
    assert group.states()[:3] == [SeatState.WAITING] * 3
    group.run(FRESH_WAIT)
    assert group.states() == [SeatState.SERVING] * 3 + [SeatState.NOT_A_SEAT]


def test_who_waits_for_the_seats_can_be_told_why() -> None:
    """H155: too few seats answer; all must meet once; they wait, and for how long; they grant."""
    group = Group(started="d")
    agent = group.seats("d")
    agent.greet()
    group.run(1)
    assert agent.delay() == Delay(
        "0 of 3 seats answer and may vote, which is no majority; not heard: seat 0 (a:1), seat 1 (b:1), seat 2 (c:1)", None
    )
    group.down = {"c"}
    for name in "ab":
        group.seats(name).start()
    group.run(1)
    agent.greet()
    group.run(0.5)
    new = Delay("the seats have just started and must hear each other first; not heard: seat 2 (c:1)", None)
    assert agent.delay() == group.seats("a").delay() == new
    group.down = set()
    group.seats("c").start()
    group.run(1)
    agent.greet()
    group.deliver()
    waits = sorted(group.seats(name).keeper.wait for name in "abc")
    for each in "ad":
        delay = group.seats(each).delay()
        assert delay is not None
        assert delay.why == JUST_STARTED
        assert delay.seconds == pytest.approx(waits[1], abs=0.01)
    group.run(FRESH_WAIT)
    assert agent.delay() is None


def served() -> Group:
    group = Group()
    group.run(FRESH_WAIT + 1)
    assert group.states()[:3] == [SeatState.SERVING] * 3
    return group


def test_everybody_learns_who_sits_where() -> None:
    """Foundation 4: seat traffic needs no membership, not even for an agent that is no seat."""
    group = served()
    assert [group.seats("d").life(number) for number in range(3)] == [NodeId(name, 1) for name in "abc"]
    assert [group.seats("a").slot_of(NodeId(name, 7)) for name in "abcd"] == [0, 1, 2, None]
    assert group.seats("a").addresses == {0: None, 1: Address("b", 1), 2: Address("c", 1)}
    group.sent.clear()
    group.run(5)
    assert group.sent == []


def greeted(host: FakeHost, seconds: float) -> list[float]:
    """When slot 2 was greeted meanwhile, in steps of HELLO_PERIOD."""
    host.take(SeatHello)
    found = []
    for _ in range(round(seconds / HELLO_PERIOD)):
        host.pass_time(HELLO_PERIOD)
        found += [host.now for to, _ in host.take(SeatHello) if to == SLOTS[2].address]
    return found


def test_a_slot_that_stays_silent_is_greeted_less_and_less() -> None:
    """Seats: each pause is twice the one before, up to a limit, and never the last."""
    host = FakeHost("d")
    seats_of(host).start()
    began_at = host.now
    assert [at - began_at for at in greeted(host, 60)] == pytest.approx([0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5, 39.5, 47.5, 55.5])
    assert greeted(host, 1000)[-1] >= host.now - HELLO_PAUSE_MAX


def test_who_comes_makes_the_greetings_frequent_again() -> None:
    """Seats: when a slot is heard others may be there too; one that is heard again and again puts no greeting off."""
    host = FakeHost("d")
    seats = seats_of(host)
    seats.start()
    greeted(host, 60)
    heard_at = host.now
    seats.on_message(NodeId("b", 1), SeatHere(0, 1, met=False))
    assert [at - heard_at for at in greeted(host, 4)] == pytest.approx([0.5, 1.5, 3.5])
    greeted(host, 60)
    for boot in range(2, 12):
        seats.on_message(NodeId("b", boot), SeatHere(0, 1, met=False))
        host.pass_time(HELLO_PERIOD / 2)
    assert len(host.take(SeatHello)) >= 2


def test_a_restart_with_its_journal_waits_for_the_longest_grant() -> None:
    """F13: it serves after the wait of the longest length it granted; here it granted for one second. H156: others vouch for it."""
    group = served()
    group.seats("b").keeper.cover(1.0, lambda: None)
    group.restart("b", group.hosts["b"].disk.durable)
    assert group.seats("b").state is SeatState.ASKING
    group.deliver()
    assert group.seats("b").state is SeatState.WAITING
    assert group.seats("b").keeper.wait == pytest.approx(wait_length(1.0, RHO, MARGIN))
    group.pass_time(1.2)
    assert group.seats("b").state is SeatState.SERVING


def test_a_lost_journal_is_remembered_by_the_others() -> None:
    """F13: one slot that remembers is enough; the seat stays silent and says so."""
    group = served()
    group.restart("b", None)
    group.run(60)
    assert group.seats("b").state is SeatState.SILENT
    assert group.seats("b").keeper.wait == inf
    said = group.hosts["b"].events(StorageFailed)
    assert len(said) == 1
    assert "seat 1 lost its journal" in said[0].why


def test_two_lost_journals_do_not_vouch_for_each_other() -> None:
    """F13: "every other slot": the third one remembers both."""
    group = served()
    group.restart("a", None)
    group.restart("b", None)
    group.run(60)
    assert group.states()[:3] == [SeatState.SILENT, SeatState.SILENT, SeatState.SERVING]


def test_a_lost_journal_waits_while_a_slot_is_down() -> None:
    """F13: silence of a slot is no "never met you"; the question goes on until it is answered."""
    group = served()
    group.restart("a", None)
    group.restart("b", None)
    group.down = {"c"}
    group.run(3 * ASK_TIMEOUT)
    assert group.states()[:2] == [SeatState.ASKING, SeatState.ASKING]
    group.down.clear()
    group.run(3)
    assert group.states()[:2] == [SeatState.SILENT, SeatState.SILENT]


def test_all_journals_lost_is_a_first_start_with_the_wait() -> None:
    """F13, tickets D21: nobody remembers anything, so all wait for the largest length allowed."""
    group = served()
    for name in "abc":
        group.restart(name, None)
    group.run(1)
    assert group.states()[:3] == [SeatState.WAITING] * 3
    group.run(FRESH_WAIT)
    assert group.states()[:3] == [SeatState.SERVING] * 3


def test_a_crash_before_the_first_service_is_no_loss() -> None:
    """F13: the journal exists and nobody knows another one of this slot; but the wait begins anew."""
    group = Group()
    group.run(FRESH_WAIT / 2)
    assert group.seats("a").state is SeatState.WAITING
    group.restart("a", group.hosts["a"].disk.durable)
    assert group.seats("a").state is SeatState.ASKING
    group.run(1)
    assert group.seats("a").state is SeatState.WAITING
    group.run(FRESH_WAIT)
    assert group.seats("a").state is SeatState.SERVING


def test_a_slot_is_told_it_is_new_only_when_it_will_be_remembered() -> None:
    """F13: "never met you" leaves after the birth is durable; a crash before it must not let two journals be new."""
    host = FakeHost("a", storage=FakeStorage())
    seats = seats_of(host)
    host.take(SeatHello)
    seats.on_message(NodeId("b", 1), SeatHello(5, 1, "b#1"))
    assert host.take(SeatHere) == []
    host.disk.complete()
    assert answered(host) == [(NodeId("b", 1), 5, False)]
    seats.on_message(NodeId("b", 9), SeatHello(6, 1, "b#9"))
    assert answered(host) == [(NodeId("b", 9), 6, True)]


def test_another_machine_in_the_list_is_another_slot() -> None:
    """F13: after a change of the list (whole group stopped) the new machine's journal is the first of its slot."""
    group = served()
    changed = (SLOTS[0], Slot(1, "x", Address("x", 1)), SLOTS[2])
    host = FakeHost("a", 2, storage=FakeStorage(group.hosts["a"].disk.durable, auto=True))
    seats = seats_of(host, slots=changed)
    seats.on_message(NodeId("x", 1), SeatHello(1, 1, "x#1"))
    assert answered(host) == [(NodeId("x", 1), 1, False)]
    seats.on_message(NodeId("c", 9), SeatHello(1, 2, "c#9"))
    assert answered(host) == [(NodeId("c", 9), 1, True)]


def test_a_sole_seat_waits_for_the_largest_length() -> None:
    """F13: "a sole seat: start after wait_length of the largest length allowed"."""
    host = FakeHost("a")
    seats = seats_of(host, slots=SLOTS[:1])
    seats.start()
    assert host.sent == []
    assert seats.keeper.wait == pytest.approx(FRESH_WAIT)
    assert [event.fresh for event in host.events(SeatOpened)] == [True]
    host.pass_time(FRESH_WAIT / 2)
    again = FakeHost("a", 2, storage=FakeStorage(host.disk.durable, auto=True))
    seats = seats_of(again, slots=SLOTS[:1])
    seats.start()
    assert seats.keeper.wait == pytest.approx(FRESH_WAIT)  # a crash during the wait does not skip it
    again.pass_time(FRESH_WAIT)
    third = FakeHost("a", 3, storage=FakeStorage(again.disk.durable, auto=True))
    seats = seats_of(third, slots=SLOTS[:1])
    seats.start()
    assert seats.state is SeatState.SERVING


def test_a_disk_that_fails_keeps_a_fresh_seat_closed() -> None:
    """Foundation 3 (Storage): what is not durable never happened."""
    host = FakeHost("a", storage=FakeStorage())
    seats = seats_of(host, slots=SLOTS[:1])
    seats.start()
    host.pass_time(100)
    assert seats.state is SeatState.ASKING


def journal_of(machine: str) -> dict[str, bytes]:
    host = FakeHost("a")
    seats = seats_of(host, slots=SLOTS[:1], machine=machine)
    seats.start()
    host.pass_time(FRESH_WAIT)
    return host.disk.durable


def test_a_copy_on_another_machine_does_not_start() -> None:
    """F13: the journal names its machine; ``moved`` says that the old one is gone, once."""
    durable = journal_of("old")
    storage = FakeStorage(durable, auto=True)
    with pytest.raises(ConfigError, match="moved: this journal of slot 0 is a copy from machine 'old'"):
        seats_of(FakeHost("a", storage=storage), slots=SLOTS[:1], machine="new")
    seats_of(FakeHost("a", storage=storage), slots=SLOTS[:1], machine="new", moved=True).start()
    seats_of(FakeHost("a", storage=storage), slots=SLOTS[:1], machine="new")
    with pytest.raises(ConfigError, match="copy from machine 'new'"):
        seats_of(FakeHost("a", storage=storage), slots=SLOTS[:1], machine="old")


def test_a_journal_of_another_slot_does_not_start() -> None:
    """F13: the journal names its slot; what was promised there is not this slot's to keep."""
    slots = (Slot(0, "x", Address("x", 1)), Slot(1, "a", Address("a", 1)), Slot(2, "c", Address("c", 1)))
    storage = FakeStorage(journal_of("a"), auto=True)
    with pytest.raises(ConfigError, match="belongs to slot 0, the configuration says slot 1"):
        seats_of(FakeHost("a", storage=storage), slots=slots, moved=True)


@pytest.mark.parametrize("durable", [{"seats/me": b"\xc1"}, {"seats/met/1=b@b:1": b"\xff"}])
def test_an_unreadable_journal_is_an_error(durable: dict[str, bytes]) -> None:
    """Foundation 3: damage is reported, not guessed around."""
    with pytest.raises(StorageDamaged):
        seats_of(FakeHost("a", storage=FakeStorage(durable)))


def test_who_does_not_sit_there_is_counted() -> None:
    """A named slot belongs to its name; a slot that does not exist to nobody; ours to us."""
    host = FakeHost("a")
    seats = seats_of(host)
    for slot in (1, 0, 7, -5):
        seats.on_message(NodeId("x", 1), SeatHello(1, slot, ""))
    seats.on_message(NodeId("x", 1), SeatHello(1, NO_SLOT, "b" * 999))
    seats.on_message(NodeId("x", 1), SeatHello(1, NO_SLOT, "x#1"))
    assert host.take(SeatHere) == []
    assert seats.counts == {"impostor": 2, "malformed": 4}
    seats.on_message(NodeId("x", 1), SeatHello(3, NO_SLOT, ""))
    assert answered(host) == [(NodeId("x", 1), 3, False)]
    observer = seats_of(FakeHost("d"))
    observer.on_message(NodeId("a", 1), SeatHello(1, 0, ""))
    assert observer.counts == {"not_a_seat": 1}


def test_a_slot_without_a_name_belongs_to_whoever_lives_there() -> None:
    """F12: seats taken from seeds have addresses only; the greeting tells who answers."""
    slots = tuple(Slot(number, str(Address(name, 1)), Address(name, 1)) for number, name in enumerate("abc"))
    host = FakeHost("a")
    seats = seats_of(host, slots=slots)
    assert seats.own == 0
    seats.on_message(NodeId("somebody", 4), SeatHere(0, 1, met=False))
    assert seats.life(1) == NodeId("somebody", 4)
    assert seats.slot_of(NodeId("somebody", 5)) == 1


def test_the_interfaces() -> None:
    """Foundation 3: a machine; ``node.use(Seats)`` finds it."""
    machine: Machine = seats_of(FakeHost("a"))
    assert machine.handles == (SeatHello, SeatHere)
    assert SeatHello.greeting
    assert not SeatHere.greeting
