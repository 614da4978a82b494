"""The lab's disk: it keeps what it confirmed, whatever happens, and nothing else is promised.  Spec: foundation 3 (Storage)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from holdfast.errors import StorageDamaged
from holdfast.events import Event, StorageFailed
from holdfast.host import FANOUT_MAX, Host
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.violation import Violation
from holdfast.lab.world import World
from tests.lab.machines import Ping, Quiet, machine, quiet_world

SAVES = 6


class Saver(Quiet):
    """Saves 0, 1, 2, ... one after the other, and notes each confirmation; only in the first life of a disk."""

    def __init__(self, host: Host, confirmed: list[int]) -> None:
        super().__init__(host)
        self.confirmed = confirmed

    def start(self) -> None:
        if self.host.storage.fresh:
            self.host.after(0.01, lambda: self.save(0))

    def save(self, number: int) -> None:
        if number < SAVES:
            self.host.storage.save(str(number), bytes([number]), lambda: self.on_saved(number))

    def on_saved(self, number: int) -> None:
        self.confirmed.append(number)
        self.save(number + 1)


def saver(seed: int, confirmed: list[int]) -> World:
    return World(seed, lambda host: [Saver(host, confirmed)], names="a")


def kept(world: World, name: str = "a") -> list[int]:
    return sorted(int(key) for key in world.nodes[name].storage.load())


def test_a_save_completes_later_and_in_order() -> None:
    """Storage: nothing completes inside the call; completions come in call order."""
    world = quiet_world(1, "a")
    done: list[int] = []
    for number in range(20):
        world.nodes["a"].storage.save(str(number), b"x", lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == []
    world.run(1.0)
    assert done == list(range(20))


def test_many_saves_share_a_sync() -> None:
    """Storage: group commit; what is saved while the disk is busy is covered by the next sync."""
    world = quiet_world(2, "a")
    for number in range(20):
        world.nodes["a"].storage.save(str(number), b"x", lambda: None)
    world.run(1.0)
    assert world.disks["a"].syncs == 2


def test_a_crash_loses_volatile_state_and_keeps_what_was_confirmed() -> None:
    """Restart is a new life: memory is gone, the disk is not."""
    confirmed: list[int] = []
    world = saver(3, confirmed)
    world.run(1.0)
    first = machine(world, "a")
    world.crash("a")
    world.start("a")
    assert machine(world, "a") is not first
    assert kept(world) == confirmed == list(range(SAVES))
    assert not world.nodes["a"].storage.fresh


@pytest.mark.parametrize("point", range(1, SAVES + 1))
def test_crash_between_write_and_sync_at_every_write_point(point: int) -> None:
    """Storage: at the n-th write point the process dies before the sync; n-1 saves are confirmed and kept, the n-th never completes."""
    for seed in range(8):
        confirmed: list[int] = []
        world = saver(seed, confirmed)
        world.disks["a"].crash_at_save = point
        world.run(1.0)
        assert world.nodes["a"].dead
        assert confirmed == list(range(point - 1))
        world.start("a")
        # Torn or whole, both happen: what was not confirmed may be there or not.
        assert kept(world) in (list(range(point - 1)), list(range(point)))


def test_an_unconfirmed_write_is_sometimes_there_and_sometimes_not() -> None:
    """Storage: whoever relies on either is found."""
    outcomes = set()
    for seed in range(20):
        world = saver(seed, [])
        world.disks["a"].crash_at_save = 2
        world.run(1.0)
        world.start("a")
        outcomes.add(tuple(kept(world)))
    assert outcomes == {(0,), (0, 1)}


def test_what_survives_a_crash_is_a_prefix() -> None:
    """A torn log: of several unconfirmed writes the first ones survive, never a later one without an earlier."""
    for seed in range(30):
        world = quiet_world(seed, "a")
        for number in range(5):
            world.nodes["a"].storage.save(str(number), b"x", lambda: None)
        world.crash("a")
        world.start("a")
        assert kept(world) == list(range(len(kept(world))))


def failures(world: World) -> list[Event]:
    found: list[Event] = []

    def listen(host: LabHost, event: Event) -> None:
        if isinstance(event, StorageFailed):
            found.append(event)

    world.listeners.append(listen)
    return found


def test_a_full_disk_never_completes_and_says_so_once() -> None:
    """Storage: a failed disk never calls ``then``; StorageFailed is emitted once."""
    world = quiet_world(4, "a")
    told, done = failures(world), []
    world.disks["a"].full = True
    for number in range(3):
        world.nodes["a"].storage.save(str(number), b"x", lambda number=number: done.append(number))  # type: ignore[misc]
    world.run(1.0)
    assert done == []
    assert len(told) == 1


def test_a_life_that_met_a_full_disk_stays_silent() -> None:
    """Storage: a disk that refused once is not asked again in that life, even when there is room; the next life may use it."""
    world = quiet_world(5, "a")
    done: list[str] = []
    world.disks["a"].full = True
    world.nodes["a"].storage.save("refused", b"x", lambda: done.append("refused"))
    world.disks["a"].full = False
    world.nodes["a"].storage.save("after", b"x", lambda: done.append("after"))
    world.run(1.0)
    assert done == []
    world.crash("a")
    world.start("a").storage.save("next life", b"x", lambda: done.append("next life"))
    world.run(2.0)
    assert done == ["next life"]


def test_a_disk_that_fills_up_during_a_sync() -> None:
    """Storage: the write under way is not confirmed either."""
    world = quiet_world(6, "a")
    told, done = failures(world), []
    world.nodes["a"].storage.save("k", b"x", lambda: done.append("k"))
    world.disks["a"].full = True
    world.run(1.0)
    assert (done, len(told)) == ([], 1)


def test_a_damaged_disk_is_not_guessed_at() -> None:
    """Storage: ``load`` raises instead of guessing."""
    world = quiet_world(7, "a")
    world.disks["a"].damaged = True
    with pytest.raises(StorageDamaged):
        world.nodes["a"].storage.load()


def test_parts_have_their_own_keys_and_their_own_fresh() -> None:
    """Storage.part: two machines of one node do not see each other's keys."""
    world = quiet_world(8, "a")
    storage = world.nodes["a"].storage
    one, two = storage.part("one"), storage.part("two")
    one.save("k", b"1", lambda: None)
    world.run(1.0)
    assert dict(one.load()) == {"k": b"1"}
    assert dict(two.load()) == {}
    assert (one.fresh, two.fresh, storage.fresh) == (False, True, False)


def test_removing_a_key_is_a_save_too() -> None:
    """Storage: None removes; the part was used all the same."""
    world = quiet_world(9, "a")
    storage = world.nodes["a"].storage
    storage.save("k", b"1", lambda: None)
    storage.save("k", None, lambda: None)
    world.run(1.0)
    assert dict(storage.load()) == {}
    assert not storage.fresh


def test_a_save_in_flight_does_not_reach_the_next_life() -> None:
    """F3 for disks: the completion of a former life's save is nobody's."""
    world = quiet_world(10, "a")
    done: list[str] = []
    then: Callable[[], None] = lambda: done.append("former")  # noqa: E731
    world.nodes["a"].storage.save("k", b"1", then)
    world.crash("a")
    world.start("a")
    world.run(1.0)
    assert done == []


def many(saves: int, sends: int) -> World:
    """One member saves so many times at once, and sends to so many others from each confirmation."""
    names = [f"n{i}" for i in range(FANOUT_MAX + 7)]
    world = quiet_world(11, " ".join(names), checkers=[Checker()])
    host = world.nodes["n0"]
    peers = [world.nodes[name].me for name in names[1:]]

    def send(first: int) -> None:
        for peer in peers[first : first + sends]:
            host.send(peer, Ping(0))

    for number in range(saves):
        host.storage.save(str(number), b"x", partial(send, number * sends))
    return world


def test_every_confirmation_is_a_callback_of_its_own() -> None:
    """F17: many saves share a sync; what is sent from each confirmation is counted for itself, as on real hosts."""
    world = many(FANOUT_MAX + 6, 1)
    world.run(1.0)
    assert world.disks["n0"].syncs == 2
    assert sum(len(machine(world, host.me.name).heard) for host in world.alive) == FANOUT_MAX + 6


def test_one_confirmation_that_reaches_too_many_is_found() -> None:
    """F17: the limit holds in a confirmation too."""
    with pytest.raises(Violation, match="F17"):
        many(1, FANOUT_MAX + 1).run(1.0)
