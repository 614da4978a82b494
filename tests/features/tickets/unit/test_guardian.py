"""Guardian: one handler for each question, and the journal.  Spec: tickets 5.1, 5.2; D13, D14, D18, D20; foundation F13."""

from __future__ import annotations

from math import inf

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.bounds import NUMBER_MAX
from holdfast.errors import StorageDamaged
from holdfast.events import RecordUnusable
from holdfast.features.tickets.protocol.cells import Cell
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.guardian import SWEEP_PERIOD, Guardian
from holdfast.features.tickets.protocol.messages import (
    Accept,
    Accepted,
    Alive,
    Forget,
    Info,
    Prepare,
    Promised,
    Query,
    Refusal,
    Refuse,
    Renew,
    Renewal,
    Renewals,
    Renewed,
)
from holdfast.features.tickets.protocol.values import ANCHOR, NO_BALLOT, NOBODY, Ballot, Key, LeaseId, Ptr, Status, Val, Who, seat
from holdfast.host import Address, Message, NodeId
from holdfast.kit.keeper import Keeper
from tests.support.fake_host import FakeHost, FakeStorage

CONFIG = TicketConfig(lease=2.0, period=0.5, rho=0.0)
KEY = Key("gpu", "a#1/1", 0)
P, Q = LeaseId(NodeId("p", 1), 1), LeaseId(NodeId("q", 1), 1)
VAL = Val(0, P, 5, 5, 0, 4, Ptr(ANCHOR, 0, (seat(0),), NOBODY), Status.LIVE, None, 4, Address("p", 1))
LOW, MIDDLE, HIGH = Ballot(1, P), Ballot(2, Q), Ballot(3, Q)


class Desk:
    """Asks one guardian and keeps its answers."""

    def __init__(self, host: FakeHost | None = None, *, keeper: Keeper | None = None) -> None:
        self.host = host or FakeHost()
        self.keeper = keeper
        self.guardian = Guardian(self.host, CONFIG, keeper)
        self.answers: list[Message] = []

    def ask(self, message: Message) -> Message | None:
        before = len(self.answers)
        self.guardian.on_message(message, self.answers.append)
        return self.answers[-1] if len(self.answers) > before else None

    def accept(self, val: Val = VAL, ballot: Ballot = LOW, *, grant: bool = True, key: Key = KEY) -> Message | None:
        return self.ask(Accept(1, key, ballot, val, grant))

    def prepare(self, ballot: Ballot, who: Who | None = None, key: Key = KEY) -> Message | None:
        return self.ask(Prepare(1, key, ballot, who))

    def renew(self, ballot: Ballot = LOW, who: Who = VAL.who, seq: int = 0, stamp: float = 7.0) -> Alive:
        answer = self.ask(Renew(KEY, who, ballot, seq, stamp))
        assert isinstance(answer, Alive)
        return answer

    @property
    def cell(self) -> Cell:
        return self.guardian.cells[KEY]


def seated(host: FakeHost, *, fresh: bool = False, longest: float = CONFIG.lease) -> Keeper:
    """The keeper of a seat whose journal says that it has granted for so long."""
    keeper = Keeper(host, host.storage.part("keeper"), rho=0.0, margin=0.0, length_max=longest)
    keeper.open(fresh=fresh)
    return keeper


def test_renewal_is_echoed_and_grants() -> None:
    """5.1 RENEW: the stamp comes back, and nobody else gets a promise for D."""
    desk = Desk()
    desk.accept(grant=False)
    alive = desk.renew(stamp=7.5)
    assert (alive.ok, alive.stamp, alive.stale) == (True, 7.5, False)
    assert desk.cell.grant_until == desk.host.now + CONFIG.lease


@pytest.mark.parametrize("who", [Who(Q, 5), Who(P, 6), Who(None, 5)], ids=["lease", "token", "nobody"])
def test_renewal_of_another_ownership_is_refused(who: Who) -> None:
    """5.1 RENEW, D12: identity is (lease, token)."""
    desk = Desk()
    desk.accept(grant=False)
    alive = desk.renew(who=who)
    assert not alive.ok
    assert desk.cell.grant_until == -inf


def test_renewal_below_a_promise_is_refused_with_it() -> None:
    """5.1 RENEW, D14: the holder learns which ballot it has to go beyond."""
    desk = Desk()
    desk.accept(grant=False)
    desk.prepare(HIGH)
    alive = desk.renew()
    assert (alive.ok, alive.promised, alive.stale) == (False, HIGH, False)
    assert desk.cell.grant_until == -inf


def test_renewal_raises_the_promise() -> None:
    """5.1 RENEW: promised := ballot, so that an older PREPARE comes too late."""
    desk = Desk()
    desk.accept(grant=False)
    assert desk.renew(ballot=HIGH).ok
    answer = desk.prepare(MIDDLE)
    assert isinstance(answer, Refuse)
    assert answer.promised == HIGH


def test_renewal_tells_what_is_missing() -> None:
    """5.1 RENEW: an older version, and a cell that never got a value, ask for the present one; a forgotten cell does not."""
    desk = Desk()
    assert desk.renew().stale
    desk.accept()
    assert desk.renew(seq=1).stale
    desk.ask(Forget(1, KEY))
    assert desk.renew(seq=1) == replace(desk.renew(seq=1), ok=False, stale=False)


def test_promise_returns_what_was_accepted() -> None:
    """5.1 PREPARE: an unknown cell is created empty; afterwards the accepted value comes along."""
    desk = Desk()
    assert desk.prepare(LOW) == Promised(1, NO_BALLOT, None, 0)
    desk.accept(ballot=MIDDLE, grant=False)
    assert desk.prepare(HIGH) == Promised(1, MIDDLE, VAL, 0)


def test_promise_is_repeated() -> None:
    """5.1 PREPARE, D18: the same ballot again gets the same promise, also while a grant runs."""
    desk = Desk()
    desk.accept(ballot=MIDDLE)
    assert desk.prepare(MIDDLE) == Promised(1, MIDDLE, VAL, 0)


def test_running_grant_refuses_without_promising() -> None:
    """5.1 PREPARE, D6: the holder lives, and its next renewal is not disturbed."""
    desk = Desk()
    desk.accept()
    answer = desk.prepare(HIGH)
    assert answer == Refuse(1, LOW, VAL, CONFIG.lease, gone=False, era=0)
    assert desk.renew().ok


def test_holder_may_raise_its_ballot_under_its_grant() -> None:
    """5.1 PREPARE, D14: who matches."""
    desk = Desk()
    desk.accept()
    assert isinstance(desk.prepare(HIGH, VAL.who), Promised)


def test_grant_ends_on_the_guardians_clock() -> None:
    """D3: a promise is given when the grant has run out, to the instant."""
    desk = Desk()
    desk.accept()
    desk.host.clock += CONFIG.lease - 1e-6
    assert isinstance(desk.prepare(HIGH), Refuse)
    desk.host.clock += 2e-6
    assert isinstance(desk.prepare(HIGH), Promised)


def test_accept_below_a_promise_is_refused() -> None:
    """5.1 ACCEPT."""
    desk = Desk()
    desk.prepare(HIGH)
    assert isinstance(desk.accept(ballot=MIDDLE), Refuse)
    assert desk.cell.val is None


def test_accept_repeats_without_effect() -> None:
    """5.1 ACCEPT, D18: a repeat and an older version of the same ballot are answered and change nothing."""
    desk = Desk()
    newer = replace(VAL, seq=1, length=2)
    desk.accept()
    desk.accept(newer)
    assert desk.accept() == Accepted(1, 0)
    assert desk.cell.val == newer


def test_higher_ballot_wins_over_higher_version() -> None:
    """5.1 ACCEPT: (ballot, seq), in this order."""
    desk = Desk()
    desk.accept(replace(VAL, seq=9))
    desk.accept(replace(VAL, seq=3), HIGH)
    assert desk.cell.val is not None
    assert desk.cell.val.seq == 3


def test_another_owner_ends_the_grant_of_the_last() -> None:
    """5.1 ACCEPT: whoever writes another ownership knows that the last one is over."""
    desk = Desk()
    desk.accept()
    free = replace(VAL, seq=1, holder=None, status=Status.FREE)
    desk.accept(free, grant=False)
    assert desk.cell.grant_until == -inf
    assert isinstance(desk.prepare(HIGH), Promised)


def test_accept_is_a_grant_too() -> None:
    """D13: so nobody prepares between a takeover and its first renewal."""
    desk = Desk()
    desk.accept()
    assert isinstance(desk.prepare(HIGH), Refuse)


def test_old_accept_grants_nothing_to_a_former_owner() -> None:
    """5.1 ACCEPT: the grant is for the ownership that is in the cell."""
    desk = Desk()
    handed = replace(VAL, seq=1, holder=Q, token=6, fence=6)
    desk.accept(handed, grant=False)
    desk.accept(VAL, grant=True)
    assert desk.cell.grant_until == -inf


def test_query_creates_nothing() -> None:
    """5.1 QUERY: anybody may look."""
    desk = Desk()
    assert desk.ask(Query(1, KEY)) == Info(1, NO_BALLOT, None, 0.0, gone=False, era=0)
    assert desk.guardian.cells == {}
    desk.accept()
    assert desk.ask(Query(1, KEY)) == Info(1, LOW, VAL, CONFIG.lease, gone=False, era=0)


def test_forgotten_cell_is_refused_for_as_long_as_messages_live() -> None:
    """5.1 FORGET, D18: a late ACCEPT or PREPARE finds a tombstone; after ``tombstone_ttl`` it is deleted."""
    desk = Desk()
    desk.guardian.start()
    desk.accept()
    assert desk.ask(Forget(3, KEY)) == Accepted(3, 0)
    for answer in (desk.accept(replace(VAL, seq=1)), desk.prepare(HIGH)):
        assert isinstance(answer, Refuse)
        assert answer.gone
    desk.host.pass_time(CONFIG.tombstone_ttl - SWEEP_PERIOD)
    assert KEY in desk.guardian.table.tombstones
    desk.host.pass_time(2 * SWEEP_PERIOD)
    assert desk.guardian.table.get(KEY) is None


def test_empty_cell_is_deleted_and_a_written_one_is_not() -> None:
    """5.1: a cell that only PREPARE knew is forgotten after ``tombstone_ttl``; a value is never forgotten by time."""
    desk = Desk()
    desk.guardian.start()
    other = KEY._replace(rid="b#1/1")
    desk.prepare(LOW)
    desk.accept(key=other)
    desk.host.pass_time(CONFIG.tombstone_ttl + 2 * SWEEP_PERIOD)
    assert list(desk.guardian.cells) == [other]


def test_anchor_is_never_forgotten() -> None:
    """D11: nobody merges the anchor, so a FORGET for it is a mistake."""
    desk = Desk()
    anchor = Key("gpu", ANCHOR, 0)
    desk.accept(key=anchor)
    assert desk.ask(Forget(1, anchor)) is None
    assert desk.guardian.cells[anchor].val == VAL
    assert desk.guardian.counts["malformed"] == 1


@pytest.mark.parametrize(
    "message",
    [
        Accept(1, KEY, LOW, replace(VAL, length=5), grant=True),
        Accept(1, KEY, LOW, replace(VAL, head=4), grant=True),
        Accept(1, KEY, LOW, replace(VAL, n=0), grant=True),
        Accept(1, KEY, LOW, replace(VAL, token=6), grant=True),
        Accept(1, KEY, LOW, replace(VAL, seq=-1), grant=True),
        Accept(1, KEY, LOW, replace(VAL, succ=VAL.succ._replace(places=())), grant=True),
        Prepare(1, KEY._replace(pool=""), LOW, None),
        Prepare(1, KEY._replace(pool="p" * 57), LOW, None),
        Prepare(1, KEY._replace(rid="r" * 129), LOW, None),
        Prepare(1, KEY._replace(cfg=-1), LOW, None),
    ],
    ids=lambda message: type(message).__name__,
)
def test_malformed_is_counted(message: Message) -> None:
    """Style: what a peer sends and cannot be costs a counter."""
    desk = Desk()
    assert desk.ask(message) is None
    assert desk.guardian.counts["malformed"] == 1
    assert desk.guardian.cells == {}


def test_draining_is_said() -> None:
    """9.6: whoever shuts down says so in ALIVE."""
    desk = Desk()
    desk.accept()
    desk.guardian.draining = True
    assert desk.renew().draining


# 5.2, the journal.


def test_nothing_is_answered_before_it_is_durable() -> None:
    """5.2: promise, value and tombstone are on disk before the answer leaves, and so is the longest grant (F13)."""
    storage = FakeStorage()
    host = FakeHost(storage=storage)
    desk = Desk(host, keeper=seated(host))
    assert desk.prepare(LOW) is None
    storage.complete()
    assert isinstance(desk.answers[-1], Promised)
    assert desk.accept() is None
    storage.complete()
    assert isinstance(desk.answers[-1], Accepted)
    assert desk.keeper is not None
    assert desk.keeper.covers(CONFIG.lease)
    assert desk.ask(Forget(9, KEY)) is None
    storage.complete()
    assert desk.answers[-1] == Accepted(9, 0)


def test_answers_wait_for_what_they_rest_on() -> None:
    """5.2: a renewal of a version that is on its way to the disk waits for it; saves of later versions hold it up no longer."""
    storage = FakeStorage()
    host = FakeHost(storage=storage)
    desk = Desk(host, keeper=seated(host))
    desk.accept()
    desk.guardian.on_message(Renew(KEY, VAL.who, LOW, 0, 7.0), desk.answers.append)
    assert desk.answers == []
    writes = len(storage.pending)
    desk.accept(replace(VAL, seq=1))
    storage.complete(writes)
    assert [type(answer) for answer in desk.answers] == [Accepted, Alive]
    storage.complete()
    assert [type(answer) for answer in desk.answers] == [Accepted, Alive, Accepted]


def test_plain_renewal_costs_no_write() -> None:
    """5.2: grant_until is not saved."""
    host = FakeHost()
    desk = Desk(host, keeper=seated(host))
    desk.accept()
    saved = dict(host.disk.durable)
    host.clock += 1.0
    assert desk.renew().ok
    assert host.disk.durable == saved


def restarted(desk: Desk) -> Desk:
    host = FakeHost(boot=2, storage=FakeStorage(desk.host.disk.durable, auto=True))
    host.clock = desk.host.clock
    return Desk(host, keeper=seated(host))


def test_restart_remembers_and_takes_grants_to_be_running() -> None:
    """5.2, D20: after a restart the value is there and nobody else gets a promise for D; the holder renews at once."""
    host = FakeHost()
    desk = Desk(host, keeper=seated(host))
    desk.accept(ballot=MIDDLE)
    again = restarted(desk)
    answer = again.prepare(HIGH)
    assert isinstance(answer, Refuse)
    assert answer.val == VAL
    assert answer.busy == pytest.approx(CONFIG.lease)
    assert again.renew(ballot=MIDDLE).ok
    again.host.clock += CONFIG.lease
    assert isinstance(again.prepare(HIGH), Promised)


def test_restart_remembers_promises_and_tombstones() -> None:
    """5.2: what was promised before the crash binds after it."""
    host = FakeHost()
    desk = Desk(host, keeper=seated(host))
    other = KEY._replace(rid="b#1/1")
    desk.prepare(HIGH)
    desk.accept(key=other)
    desk.ask(Forget(1, other))
    again = restarted(desk)
    again.host.clock += CONFIG.lease
    assert isinstance(again.accept(ballot=MIDDLE), Refuse)
    assert isinstance(again.accept(key=other, ballot=HIGH), Refuse)


def test_closed_seat_says_nothing() -> None:
    """F13, D20: a seat that does not know what it has promised is silent, to renewals too."""
    host = FakeHost()
    keeper = Keeper(host, host.storage.part("keeper"), rho=0.0, margin=0.0, length_max=2.0)
    desk = Desk(host, keeper=keeper)
    for message in (Renew(KEY, VAL.who, LOW, 0, 7.0), Prepare(1, KEY, LOW, None), Accept(1, KEY, LOW, VAL, grant=True), Query(1, KEY)):
        assert desk.ask(message) is None
    assert desk.guardian.counts["silent"] == 4


@pytest.mark.parametrize("key, value", [('["gpu","x",0]', b"rubbish"), ("rubbish", b"\xc0")])
def test_unreadable_journal_is_refused(key: str, value: bytes) -> None:
    """Foundation 3: nobody guesses what a damaged journal said."""
    host = FakeHost()
    host.storage.part("cells").save(key, value, lambda: None)
    with pytest.raises(StorageDamaged, match="seat's journal"):
        Guardian(host, CONFIG, seated(host))


def test_failed_disk_falls_silent_for_what_it_cannot_keep() -> None:
    """Foundation 3: a save that never completes is never answered; the other cells go on."""
    storage = FakeStorage(auto=True)
    host = FakeHost(storage=storage)
    desk = Desk(host, keeper=seated(host))
    desk.accept()
    storage.auto = False
    assert desk.accept(replace(VAL, seq=1)) is None
    host.clock += 100.0
    before = len(desk.answers)
    desk.guardian.on_message(Renew(KEY, VAL.who, LOW, 0, 7.0), desk.answers.append)
    assert len(desk.answers) == before


def renewals(*serials: int, stamp: float = 7.0) -> Renewals:
    """Of cells that are named after the serial of their holder's lease."""
    cells = tuple(Renewal(Key("gpu", f"p#1/{serial}", 0), serial, 5, 1, None, 0) for serial in serials)
    return Renewals(17, stamp, cells)


def kept(desk: Desk, *serials: int) -> None:
    for serial in serials:
        lease = LeaseId(P.life, serial)
        desk.accept(replace(VAL, holder=lease), Ballot(1, lease), grant=False, key=Key("gpu", f"p#1/{serial}", 0))


def test_a_page_is_answered_cell_by_cell() -> None:
    """H166, 5.1: what is there is granted, what is not or has another owner is refused, each by its place in the page. The holder is a
    life of the sender: no agent renews for another."""
    desk = Desk()
    kept(desk, 1, 3)
    answers: list[Message] = []
    desk.guardian.on_message(renewals(1, 2, 3), answers.append, P.life)
    assert answers == [Renewed(17, (0, 2), (), (Refusal(1, NO_BALLOT, stale=True),), draining=False)]
    until = desk.host.now + CONFIG.lease
    assert [desk.guardian.cells[Key("gpu", f"p#1/{serial}", 0)].grant_until for serial in (1, 3)] == [until, until]
    answers.clear()
    desk.guardian.on_message(renewals(1, 3), answers.append, Q.life)
    (renewed,) = answers
    assert isinstance(renewed, Renewed)
    assert (renewed.ok, [each.place for each in renewed.refused]) == ((), [0, 1])


def test_a_page_waits_for_no_disk_but_its_own() -> None:
    """H166, 5.2: a cell whose last save is under way is answered when it is durable, by itself; the others at once."""
    host = FakeHost(storage=FakeStorage())
    keeper = seated(host)
    host.disk.complete()
    host.pass_time(10.0)
    desk = Desk(host, keeper=keeper)
    kept(desk, 1, 2)
    desk.guardian.on_message(renewals(1, 2), lambda answer: None, P.life)  # the first grant of its life is a save too (F13)
    host.disk.complete()
    lease = LeaseId(P.life, 2)
    desk.accept(replace(VAL, holder=lease, seq=1), Ballot(1, lease), grant=True, key=Key("gpu", "p#1/2", 0))
    answers: list[Message] = []
    desk.guardian.on_message(renewals(1, 2), answers.append, P.life)
    assert [type(answer) for answer in answers] == [Renewed]
    assert [answer.ok for answer in answers if isinstance(answer, Renewed)] == [(0,)]
    host.disk.complete()
    alive = answers[-1]
    assert isinstance(alive, Alive)
    assert (alive.key.rid, alive.ok, alive.stamp) == ("p#1/2", True, 7.0)


BEYOND = [NUMBER_MAX, NUMBER_MAX + 1, (1 << 64) - 1]


@pytest.mark.parametrize("number", BEYOND)
def test_a_number_that_cannot_be_continued_is_refused_at_the_seat(number: int) -> None:
    """H174: whoever met it in an answer could not go beyond it. Nothing is said, and nothing is written."""
    desk = Desk(FakeHost(storage=FakeStorage(auto=True)))
    desk.keeper = None
    assert desk.prepare(Ballot(number, Q)) is None
    assert desk.accept(ballot=Ballot(number, Q)) is None
    assert desk.accept(replace(VAL, seq=number)) is None
    assert desk.accept(replace(VAL, fence=number)) is None
    assert desk.guardian.counts["far_ahead"] + desk.guardian.counts["malformed"] == 4
    assert desk.guardian.cells == {}
    assert desk.prepare(HIGH) == Promised(1, NO_BALLOT, None, 0)


@pytest.mark.parametrize("number", BEYOND)
@pytest.mark.parametrize("where", ["promised", "accepted", "fence", "token"])
def test_a_journal_that_holds_one_says_so_and_goes_on(number: int, where: str) -> None:
    """H174: the seat starts, names the key, says nothing about it from then on, and keeps the record as it found it."""
    ballot, val = Ballot(number, Q), replace(VAL, **{where: number}) if where in ("fence", "token") else VAL
    record = (ballot if where == "promised" else LOW, ballot if where == "accepted" else LOW, val, False)
    text, good = msgspec.json.encode(KEY).decode(), msgspec.json.encode(Key("cpu", ANCHOR, 0)).decode()
    durable = {f"cells/{text}": msgspec.msgpack.encode(record), f"cells/{good}": msgspec.msgpack.encode((LOW, LOW, VAL, False))}
    before = dict(durable)
    host = FakeHost(storage=FakeStorage(durable, auto=True))
    desk = Desk(host, keeper=seated(host, longest=0.001))
    host.clock += 1
    desk.guardian.start()
    assert [event.key for event in host.events(RecordUnusable)] == ["gpu/a#1/1/0"]
    for message in (
        Query(1, KEY),
        Prepare(1, KEY, HIGH, None),
        Accept(1, KEY, HIGH, VAL, True),
        Renew(KEY, VAL.who, HIGH, 0, 7.0),
        Forget(1, KEY),
    ):
        assert desk.ask(message) is None
    assert desk.guardian.counts["unusable"] == 5
    assert isinstance(desk.prepare(HIGH, key=Key("cpu", ANCHOR, 0)), Promised)
    assert durable[f"cells/{text}"] == before[f"cells/{text}"]
