"""Marks: a seat whose journal is an old copy is found out, and an honest one never is.  Foundation F13; H156."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from holdfast.errors import StorageDamaged
from holdfast.events import StorageFailed
from holdfast.host import NodeId
from holdfast.kit.marks import MARK_DELAY, MARK_MAX, MARK_PERIOD, MARK_TIMEOUT, NAG_MAX, WORD_CHARS, Mark
from holdfast.kit.seats import SeatHello, SeatHere, SeatState
from tests.kit.test_seats import Group, seats_of, served
from tests.support.fake_host import FakeHost, FakeStorage

WORK = MARK_PERIOD + 1.0  # seconds in which a change is marked and told


def change(group: Group, name: str, *, seconds: float = WORK) -> None:
    """The seat writes something that a promise rests on."""
    group.seats(name).keeper.on_change()
    group.run(seconds)


def copy_of(group: Group, name: str) -> dict[str, bytes]:
    return dict(group.hosts[name].disk.durable)


def restart(group: Group, name: str, durable: dict[str, bytes] | None = None) -> SeatState:
    group.restart(name, copy_of(group, name) if durable is None else dict(durable))
    group.run(3.0)
    return group.seats(name).state


def test_a_restored_copy_stays_silent_and_says_so() -> None:
    """H156: it is one mark behind; the others go on."""
    group = served()
    change(group, "b")
    copy = copy_of(group, "b")
    change(group, "b")
    assert restart(group, "b", copy) is SeatState.SILENT
    assert group.seats("b").keeper.wait == inf
    (said,) = group.hosts["b"].events(StorageFailed)
    assert said.why.startswith("seat 1 went back in time: its journal is an old copy (slot 0 remembers a later one)")
    assert [group.seats(name).state for name in "ac"] == [SeatState.SERVING] * 2


def test_a_copy_from_before_the_first_promise_is_found_out() -> None:
    """H156: also one from before the seat ever served, which would ask as a new one."""
    group = Group()
    group.run(0.5)
    copy = copy_of(group, "b")
    group.run(5.0)
    change(group, "b")
    assert restart(group, "b", copy) is SeatState.SILENT


def test_it_stays_silent_however_often_it_is_started() -> None:
    """H156: a mark moves only after others vouched for the one before, so an old copy never gets ahead."""
    group = served()
    copy = copy_of(group, "b")
    for _ in range(3):
        change(group, "b")
    for _ in range(6):
        assert restart(group, "b", copy) is SeatState.SILENT
        group.seats("b").keeper.on_change()
        group.run(WORK)
        copy = copy_of(group, "b")


def test_the_right_directory_brought_back_speaks_again() -> None:
    """H156: what others remember is what the latest journal says, whatever a copy said meanwhile."""
    group = served()
    copy = copy_of(group, "b")
    change(group, "b")
    latest = copy_of(group, "b")
    assert restart(group, "b", copy) is SeatState.SILENT
    assert restart(group, "b", latest) is SeatState.SERVING


def opened_without_a() -> Group:
    """B went back to a copy. Only a remembers what changed since, because c was down, and now a is down: b is vouched for, and serves."""
    group = served()
    copy = copy_of(group, "b")
    group.down = {"c"}
    change(group, "b")
    group.down = {"a"}
    assert restart(group, "b", copy) is SeatState.SERVING
    return group


def test_one_slot_that_remembers_is_enough() -> None:
    """H156: c was down while the mark moved, and vouches; a answers late. The seat has opened by then, and falls silent."""
    group = opened_without_a()
    group.down = set()
    group.restart("a", copy_of(group, "a"))
    group.run(3.0)
    assert group.seats("b").state is SeatState.SILENT


def test_a_slot_that_was_cut_off_is_asked_until_it_answers() -> None:
    """H156: a remembers, and is not reached for a while; c vouches. The seat goes on asking a after it has opened."""
    group = opened_without_a()
    group.run(60)
    group.down = set()
    group.sent.clear()
    group.run(NAG_MAX)
    assert group.seats("b").state is SeatState.SILENT
    group.run(60)
    assert len([message for source, _, message in group.sent if source == "b" and isinstance(message, SeatHello) and message.birth]) <= 2


def test_without_a_majority_it_waits_for_others() -> None:
    """H156: it could grant nothing alone; the wait of F13 counts from its start all the same."""
    group = served()
    group.seats("b").keeper.cover(1.0, lambda: None)
    group.down = {"a", "c"}
    group.restart("b", copy_of(group, "b"))
    group.run(2 * MARK_TIMEOUT)
    assert group.seats("b").state is SeatState.ASKING
    group.down = {"a"}
    group.run(1.0)
    assert group.seats("b").state is SeatState.SERVING


def test_all_restarted_together_open() -> None:
    """H156: a seat answers others before it has opened itself."""
    group = served()
    for name in "abc":
        change(group, name)
    for name in "abc":
        group.restart(name, copy_of(group, name))
    group.run(3.0)
    assert group.states()[:3] == [SeatState.SERVING] * 3


def test_a_slot_that_lost_its_memory_vouches_for_nothing() -> None:
    """H156: its "never met you" is not knowledge; with c down there is none, so b waits."""
    group = served()
    copy = copy_of(group, "b")
    change(group, "b")
    group.down = {"b"}
    group.restart("a", {})
    group.run(3.0)
    group.down = {"c"}
    assert restart(group, "b", copy) is SeatState.ASKING
    group.down = set()
    group.run(3.0)
    assert group.seats("b").state is SeatState.SILENT


def test_a_mark_is_durable_before_it_is_told() -> None:
    """H156: else an honest journal could be behind what others remember."""
    group = served()
    disk = group.hosts["b"].disk
    disk.auto = False
    group.seats("b").keeper.on_change()
    group.sent.clear()
    group.run(WORK)
    assert group.sent == []
    disk.complete()
    group.deliver()
    assert {target for source, target, message in group.sent if source == "b" and isinstance(message, SeatHello)} == {"a", "c"}


def test_a_mark_is_remembered_before_it_is_vouched_for() -> None:
    """H156: the other slot's disk comes first."""
    host = FakeHost("a", storage=FakeStorage())
    seats = seats_of(host)
    host.take(SeatHello)
    seats.on_message(NodeId("b", 1), SeatHello(5, 1, "b#1", 3, "w3", "w2"))
    assert host.take(SeatHere) == []
    host.disk.complete()
    ((_, here),) = host.take(SeatHere)
    assert (here.met, here.behind) == (False, False)


@pytest.mark.parametrize(
    "mark, behind",
    [
        (Mark(7, "w7", "w6"), False),  # told again
        (Mark(8, "w8", "w7"), False),  # the next one
        (Mark(9, "w9", "w8"), False),  # one was missed
        (Mark(6, "w6", "w5"), True),
        (Mark(0, "", ""), True),
        (Mark(7, "x7", "w6"), True),  # a copy that moved on by itself
        (Mark(8, "x8", "x7"), True),
    ],
)
def test_which_marks_are_behind(mark: Mark, behind: bool) -> None:
    """H156: a later one was here, or another word of this number or the one before."""
    group = Group(started="")
    marks = group.seats("a").marks
    marks.remember("1=b", Mark(7, "w7", "w6"), lambda: None)
    assert marks.is_behind("1=b", mark) is behind
    assert not marks.is_behind("2=c", mark)


def test_changes_that_come_together_have_one_mark() -> None:
    """H156: a mark soon after a change, one per period of a busy seat, none of an idle one."""
    group = served()
    number = group.seats("b").marks.mark.number
    for _ in range(100):
        group.seats("b").keeper.on_change()
        group.pass_time(0.1)
        group.deliver()
    moved = group.seats("b").marks.mark.number - number
    assert 10 / MARK_PERIOD - 1 <= moved <= 10 / MARK_PERIOD + 2
    group.run(60)
    assert group.seats("b").marks.mark.number - number <= moved + 1
    group.sent.clear()
    group.run(30)
    assert group.sent == []
    group.seats("b").keeper.on_change()
    group.pass_time(MARK_DELAY)
    assert group.seats("b").marks.mark.number > number + moved


def test_a_journal_of_an_earlier_release_has_mark_0() -> None:
    """H156: it is vouched for by others that remember none, and found out once it has been marked."""
    group = served()
    for name in "abc":
        durable = {key: value for key, value in copy_of(group, name).items() if "/mark" not in key}
        group.restart(name, durable)
    group.run(3.0)
    assert group.states()[:3] == [SeatState.SERVING] * 3
    old = copy_of(group, "b")
    change(group, "b")
    assert restart(group, "b", old) is SeatState.SILENT


def test_the_number_of_marks_is_bounded() -> None:
    """H156: a journal with more than any clock comes to is damaged."""
    with pytest.raises(StorageDamaged, match="a mark in the seat's journal is unreadable"):
        seats_of(FakeHost("a", storage=FakeStorage({"seats/mark": b"\x93\xcf" + (MARK_MAX + 1).to_bytes(8, "big") + b"\xa0\xa0"})))


@pytest.mark.parametrize("seed", range(30))
def test_an_honest_journal_is_never_found_out(seed: int) -> None:
    """H156: changes, crashes in the middle of a save, seats that are down, lost, doubled and shuffled messages, in any order; and a copy
    that is older than a mark which two others heard always is."""
    random = Random(seed)
    group = served()
    for _ in range(120):
        name = random.choice("abc")
        what = random.random()
        disk = group.hosts[name].disk
        if what < 0.35:
            group.seats(name).keeper.on_change()
        elif what < 0.5:
            disk.auto = False  # What is saved from now on is lost with the process.
        elif what < 0.7:
            group.restart(name, copy_of(group, name))
        elif what < 0.8:
            group.down = set(random.sample("abc", 1)) - set(group.down)
        group.pass_time(random.choice((0.0, 0.1, 0.6, 2.0)))
        group.deliver(random=random, loss=0.2, duplicate=0.2)
        assert SeatState.SILENT not in group.states(), group.seats(name).why
    group.down = set()
    for name in "abc":
        group.restart(name, copy_of(group, name))
    group.run(MARK_TIMEOUT)
    assert group.states()[:3] == [SeatState.SERVING] * 3
    name = random.choice("abc")
    old = copy_of(group, name)
    change(group, name)
    assert restart(group, name, old) is SeatState.SILENT


def test_a_forged_mark_silences_no_seat() -> None:
    """H156, H174: a peer with the key tells other slots a later mark of a seat, or tells the seat that it is behind. Without the code that
    only that journal can make, both cost a counter; an old copy is found out all the same."""
    group = served()
    change(group, "a")
    old = copy_of(group, "a")
    change(group, "a")
    seats = group.seats("a")
    forged = SeatHello(9, 0, "a#1", 10**6, "f" * WORD_CHARS, "")
    group.seats("b").on_message(NodeId("a", 1), forged)
    seats.on_message(NodeId("c", 1), SeatHere(seats.marks.serial, 2, met=True, behind=True, later=10**6, later_word="f" * WORD_CHARS))
    seats.on_message(NodeId("c", 1), SeatHere(seats.marks.serial, 2, met=True))
    for _ in range(3):
        change(group, "a")
    assert group.states()[:3] == [SeatState.SERVING] * 3
    assert seats.counts["unproven"] >= 2
    assert restart(group, "a", copy_of(group, "a")) is SeatState.SERVING
    assert restart(group, "a", old) is SeatState.SILENT
