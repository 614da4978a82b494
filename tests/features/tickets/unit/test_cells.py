"""For how many cells a guardian has room, and what it says to the others.  Spec: tickets 5.1, 5.2; D11, D18; docs/decisions.md H133."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from holdfast.features.tickets.protocol import cells as module
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.guardian import SWEEP_PERIOD, SWEEP_SAVES_MAX, Guardian
from holdfast.features.tickets.protocol.messages import Accept, Accepted, Alive, Forget, Info, Prepare, Promised, Query, Refuse, Renew
from holdfast.features.tickets.protocol.values import ANCHOR, NO_BALLOT, NOBODY, Ballot, Key, LeaseId, Ptr, Status, Val, seat
from holdfast.host import Address, Message, NodeId
from holdfast.kit.keeper import Keeper
from tests.support.fake_host import FakeHost, FakeStorage

CONFIG = TicketConfig(lease=2.0, period=0.5, rho=0.0)
P = LeaseId(NodeId("p", 1), 1)
VAL = Val(0, P, 5, 5, 0, 4, Ptr(ANCHOR, 0, (seat(0),), NOBODY), Status.LIVE, None, 4, Address("p", 1))
LOW, HIGH = Ballot(1, P), Ballot(9, P)
NO_ROOM = Refuse(1, NO_BALLOT, None, 0.0, gone=False, era=0, full=True)


def child(number: int) -> Key:
    return Key("gpu", f"p#1/{number}", 0)


def anchor(number: int) -> Key:
    return Key(f"pool{number}", ANCHOR, 0)


class Desk:
    """Asks one guardian, a seat if it has a keeper."""

    def __init__(self, host: FakeHost | None = None, *, seated: bool = False) -> None:
        self.host = host or FakeHost()
        keeper = Keeper(self.host, self.host.storage.part("keeper"), rho=0.0, margin=0.0, length_max=2.0) if seated else None
        if keeper is not None:
            keeper.open(fresh=False)
        self.guardian = Guardian(self.host, CONFIG, keeper)
        self.table = self.guardian.table

    def ask(self, message: Message) -> Message:
        answers: list[Message] = []
        self.guardian.on_message(message, answers.append)
        (answer,) = answers
        return answer

    def split(self, number: int) -> Message:
        return self.ask(Accept(1, child(number), LOW, VAL, grant=True))

    def forget(self, number: int) -> Message:
        return self.ask(Forget(1, child(number)))

    def found(self, number: int) -> Message:
        return self.ask(Prepare(1, anchor(number), LOW, None))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for two pools, three other cells, four tombstones, and one more of each that is not new."""
    for name, value in (("ANCHORS_MAX", 2), ("CELLS_MAX", 3), ("TOMBSTONES_MAX", 4), ("RESERVE", 1)):
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("few")
def test_no_room_is_said() -> None:
    """H133: a cell that nobody has yet is refused, not met with silence; nothing of it stays, and cells that are there go on."""
    desk = Desk()
    assert [desk.split(number) for number in range(3)] == [Accepted(1, 0)] * 3
    assert desk.split(3) == NO_ROOM
    assert desk.guardian.counts["table_full"] == 1
    assert desk.table.get(child(3)) is None
    alive = desk.ask(Renew(child(0), VAL.who, LOW, 0, 7.0))
    assert isinstance(alive, Alive)
    assert alive.ok
    assert desk.ask(Accept(1, child(0), LOW, replace(VAL, seq=1), grant=True)) == Accepted(1, 0)


@pytest.mark.usefixtures("few")
def test_pools_have_room_of_their_own() -> None:
    """H133, D21: anchors stay for ever, so they must not take the room of others, nor others theirs."""
    desk = Desk()
    assert [type(desk.found(number)) for number in range(2)] == [Promised, Promised]
    assert desk.found(2) == NO_ROOM
    assert desk.ask(Accept(1, anchor(2), LOW, VAL, grant=True)) == NO_ROOM
    assert [desk.split(number) for number in range(3)] == [Accepted(1, 0)] * 3
    assert (desk.table.anchors, desk.table.others) == (2, 3)
    assert desk.ask(Prepare(1, anchor(0), HIGH, None)) == Promised(1, NO_BALLOT, None, 0)


@pytest.mark.usefixtures("few")
def test_promised_pool_that_nobody_founded_makes_room() -> None:
    """5.1, H133: an anchor without a value is deleted after ``tombstone_ttl``, and another pool has its place."""
    desk = Desk()
    desk.guardian.start()
    desk.ask(Accept(1, anchor(0), LOW, VAL, grant=True))
    desk.found(1)
    assert desk.found(2) == NO_ROOM
    desk.host.pass_time(CONFIG.tombstone_ttl + 2 * SWEEP_PERIOD)
    assert (list(desk.guardian.cells), desk.table.anchors) == ([anchor(0)], 1)
    assert isinstance(desk.found(2), Promised)


@pytest.mark.usefixtures("few")
def test_forgotten_cells_take_no_room_of_others() -> None:
    """H133: a table full of tombstones refuses new cells, whatever is kept; what is kept can always be merged."""
    desk = Desk()
    for number in range(3):
        desk.split(number)
        desk.forget(number)
    assert (desk.table.others, len(desk.table.tombstones)) == (0, 3)
    assert [desk.split(number) for number in range(3, 6)] == [Accepted(1, 0)] * 3
    assert desk.forget(3) == Accepted(1, 0)
    assert desk.split(6) == NO_ROOM
    for number in (4, 5):
        assert desk.forget(number) == Accepted(1, 0)
    assert len(desk.table.tombstones) == 6
    for number in range(6):
        answer = desk.ask(Accept(1, child(number), HIGH, replace(VAL, seq=1), grant=True))
        assert isinstance(answer, Refuse)
        assert answer.gone


@pytest.mark.usefixtures("few")
def test_unknown_cell_needs_no_tombstone_where_there_is_no_room() -> None:
    """H133: whoever retired a cell had a majority that has it. FORGET of one that was never here is answered, and costs nothing."""
    desk = Desk()
    assert [desk.forget(number) for number in range(6)] == [Accepted(1, 0)] * 6
    assert list(desk.table.tombstones) == [child(number) for number in range(4)]
    desk = Desk()
    for number in range(3):
        desk.split(number)
    assert desk.forget(3) == Accepted(1, 0)
    assert (desk.table.others, len(desk.table.tombstones)) == (3, 0)
    assert desk.forget(2) == Accepted(1, 0)
    assert (desk.table.others, len(desk.table.tombstones)) == (2, 1)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "asked",
    [
        Prepare(1, child(3), HIGH, None),
        Accept(1, child(3), HIGH, replace(VAL, seq=1, holder=None, status=Status.RETIRED), grant=False),
        Accept(0, child(3), LOW, VAL, grant=True),
    ],
    ids=["prepare", "retire", "repair"],
)
def test_what_others_keep_has_a_reserve(asked: Prepare | Accept) -> None:
    """H133: re-ballots, merges and repairs of cells that this guardian missed go on when new ones are refused, within a bound too."""
    desk = Desk()
    for number in range(3):
        desk.split(number)
    assert isinstance(desk.ask(asked), Promised | Accepted)
    assert desk.ask(replace(asked, key=child(4))) == replace(NO_ROOM, op=asked.op)
    assert desk.table.others == 4


@pytest.mark.usefixtures("few")
def test_the_table_is_bounded_whatever_comes() -> None:
    """Style, H133: pools, cells and tombstones each stay within their bounds; a tombstone may be of any cell that was kept."""
    desk, draws = Desk(), Random(1)
    for _ in range(5000):
        key = child(draws.randrange(200)) if draws.random() < 0.9 else anchor(draws.randrange(20))
        val = replace(VAL, seq=draws.randrange(3))
        asked = draws.choice(
            [Prepare(1, key, HIGH, None), Accept(draws.randrange(2), key, HIGH, val, grant=False), Forget(1, key), Query(1, key)]
        )
        desk.guardian.on_message(asked, lambda answer: None)
        assert desk.table.anchors <= 2 + 1
        assert desk.table.others <= 3 + 1
        assert len(desk.table.tombstones) <= (4 + 1) + (3 + 1)
        assert not desk.table.kept.keys() & desk.table.tombstones.keys()
    assert len(desk.table.tombstones) > 4


def test_late_words_find_their_tombstone_among_many() -> None:
    """D18, H133: no tombstone is dropped before its time, however many there are; whoever comes late hears that it is over."""
    desk = Desk()
    for number in range(3000):
        desk.split(number)
        desk.forget(number)
    desk.host.clock += CONFIG.tombstone_ttl - 1.0
    for number in (0, 1500, 2999):
        for asked in (Accept(1, child(number), HIGH, VAL, grant=True), Prepare(1, child(number), HIGH, None)):
            answer = desk.ask(asked)
            assert isinstance(answer, Refuse)
            assert answer.gone
        alive = desk.ask(Renew(child(number), VAL.who, LOW, 0, 7.0))
        assert isinstance(alive, Alive)
        assert (alive.ok, alive.stale) == (False, False)
        assert alive.promised > LOW  # Its holder tries a higher ballot, and hears that it is gone.
        info = desk.ask(Query(1, child(number)))
        assert isinstance(info, Info)
        assert (info.gone, info.val) == (True, None)
    assert desk.table.others == 0


def restarted(desk: Desk, *, auto: bool = True) -> Desk:
    host = FakeHost(boot=2, storage=FakeStorage(desk.host.disk.durable, auto=auto))
    host.clock = desk.host.clock
    return Desk(host, seated=True)


def test_restart_with_many_tombstones() -> None:
    """5.2, D20, H133: all of them bind after a restart, for the whole time again."""
    desk = Desk(seated=True)
    for number in range(1500):
        desk.split(number)
        desk.forget(number)
    desk.host.clock += CONFIG.tombstone_ttl - 1.0
    again = restarted(desk)
    again.guardian.start()
    assert len(again.table.tombstones) == 1500
    again.host.pass_time(CONFIG.tombstone_ttl - SWEEP_PERIOD)
    for number in range(1500):
        answer = again.ask(Accept(1, child(number), HIGH, VAL, grant=True))
        assert isinstance(answer, Refuse)
        assert answer.gone
    again.host.pass_time(2 * SWEEP_PERIOD)
    assert not again.table.tombstones
    assert not restarted(again).table.tombstones


def test_tombstones_of_one_age_are_deleted_in_portions() -> None:
    """Foundation 3, H133: a disk that is too many saves behind counts as failed, so a sweep never asks for all of them at once."""
    desk = Desk(seated=True)
    for number in range(3 * SWEEP_SAVES_MAX - 1):
        desk.forget(number)
    again = restarted(desk, auto=False)
    again.guardian.start()
    again.host.pass_time(CONFIG.tombstone_ttl + SWEEP_PERIOD)
    disk, portions = again.host.disk, []
    while disk.pending:
        portions.append(len(disk.pending))
        disk.complete(portions[-1])
    assert portions == [SWEEP_SAVES_MAX, SWEEP_SAVES_MAX, SWEEP_SAVES_MAX - 1]
    assert not again.table.tombstones
    assert not restarted(again).table.tombstones


def test_deleting_looks_again() -> None:
    """5.1, H133: a cell that got a value while its portion waited for the disk stays."""
    desk = Desk(seated=True)
    for number in range(SWEEP_SAVES_MAX):
        desk.forget(number)
    desk.ask(Prepare(1, child(9999), LOW, None))
    again = restarted(desk, auto=False)
    again.guardian.start()
    again.host.pass_time(CONFIG.tombstone_ttl + SWEEP_PERIOD)
    again.guardian.on_message(Accept(1, child(9999), LOW, VAL, grant=True), lambda answer: None)
    again.host.disk.complete()
    assert list(again.guardian.cells) == [child(9999)]
