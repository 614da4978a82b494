"""Promises and their keeper: one rule, saved before it is said, waited out after a restart.  Foundation 4, F13, F15, F16."""

from __future__ import annotations

from math import inf

import msgspec
import pytest

from holdfast.bounds import NUMBER_MAX
from holdfast.errors import StorageDamaged
from holdfast.host import NodeId
from holdfast.kit import promise
from holdfast.kit.deadline import wait_length
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Answer, HolderId, Promises
from tests.support.fake_host import FakeHost, FakeStorage

RHO, MARGIN, LENGTH = 0.01, 0.5, 10.0
A, B = HolderId(NodeId("a", 1), 0), HolderId(NodeId("b", 1), 0)


class Seat:
    """Promises over a fake host, and every answer they gave."""

    def __init__(self, *, auto: bool = True, durable: dict[str, bytes] | None = None, opened: bool = True) -> None:
        self.host = FakeHost(storage=FakeStorage(durable, auto=auto))
        self.keeper = Keeper(self.host, self.host.storage.part("keeper"), rho=RHO, margin=MARGIN)
        self.promises = Promises(self.host, self.host.storage.part("promises"), self.keeper)
        if opened:
            self.keeper.open(fresh=False)
        self.answers: list[tuple[HolderId, Answer]] = []

    def ask(self, holder: HolderId, number: int, length: float = LENGTH, *, key: str = "k") -> Answer | None:
        """The answer, None if there is none yet."""
        before = len(self.answers)
        self.promises.ask(key, holder, number, length, lambda answer: self.answers.append((holder, answer)))
        return self.answers[-1][1] if len(self.answers) > before else None

    def granted(self, holder: HolderId, number: int, length: float = LENGTH, *, key: str = "k") -> bool:
        answer = self.ask(holder, number, length, key=key)
        return answer is not None and answer.granted

    def restarted(self) -> Seat:
        return Seat(durable=self.host.disk.durable)


def test_a_promise_binds_while_it_runs() -> None:
    """Foundation 4: refused while another holder's ``until`` runs; the answer says how many seconds are left."""
    seat = Seat()
    assert seat.granted(A, 1)
    seat.host.clock += 4
    assert seat.ask(B, 2) == Answer(granted=False, number=1, wait=6.0, era=0)
    seat.host.clock += 6
    assert seat.granted(B, 2)


def test_a_renewal_extends_and_never_shortens() -> None:
    """Foundation 4: renewals touch only ``until``; a short one does not cut a long one."""
    seat = Seat()
    assert seat.granted(A, 1)
    seat.host.clock += 5
    assert seat.granted(A, 1)
    assert seat.granted(A, 1, 1.0)
    record = seat.promises.get("k")
    assert record is not None
    assert record.until == seat.host.now + LENGTH


def test_renewals_are_not_saved() -> None:
    """Foundation 4: only a new pair or a longer length costs a write."""
    seat = Seat(auto=False)
    seat.ask(A, 1)
    seat.host.disk.complete()
    assert [answer.granted for _, answer in seat.answers] == [True]
    assert seat.granted(A, 1)
    assert not seat.host.disk.pending
    assert seat.ask(A, 1, LENGTH + 1) is None
    assert [key for key, _, _ in seat.host.disk.pending] == ["keeper/longest"]


def test_numbers_do_not_go_back() -> None:
    """Foundation 4: refused if below the recorded number, also when nothing runs; the answer names it."""
    seat = Seat()
    assert seat.granted(A, 5)
    seat.host.clock += 2 * LENGTH
    assert seat.ask(B, 4) == Answer(granted=False, number=5, wait=0.0, era=0)
    assert seat.ask(A, 4) == Answer(granted=False, number=5, wait=0.0, era=0)


def test_one_number_has_one_holder() -> None:
    """Foundation 4, bold: refused if it equals the recorded number and the holder differs, also when nothing runs."""
    seat = Seat()
    assert seat.granted(A, 5)
    seat.host.clock += 2 * LENGTH
    assert not seat.granted(B, 5)
    assert not seat.granted(HolderId(A.life, 1), 5)
    assert not seat.granted(HolderId(NodeId("a", 2), 0), 5)
    assert seat.granted(A, 5)


def test_a_holder_keeps_its_time_across_its_own_numbers() -> None:
    """Detection "grant rule": a promise binds to the life, not to the term."""
    seat = Seat()
    assert seat.granted(A, 1)
    assert seat.granted(A, 2, 1.0)
    seat.host.clock += 2
    answer = seat.ask(B, 3)
    assert answer is not None
    assert answer.wait == LENGTH - 2


def test_nothing_leaves_before_it_is_durable() -> None:
    """Foundation 4: (holder, number) is saved before the first grant of that pair leaves."""
    seat = Seat(auto=False)
    assert seat.ask(A, 1) is None
    assert seat.ask(A, 1) is None  # a resend while the disk works
    assert seat.answers == []
    seat.host.disk.complete()
    assert [answer.granted for _, answer in seat.answers] == [True, True]


def test_the_longest_length_is_durable_before_the_pair() -> None:
    """F13: a crash between the two writes leaves a longer wait, never a shorter one."""
    seat = Seat(auto=False)
    seat.ask(A, 1)
    assert [key for key, _, _ in seat.host.disk.pending] == ["keeper/longest", "promises/k"]


def test_two_asks_for_one_number_while_the_disk_works() -> None:
    """Foundation 4: the second holder is refused by what is on its way to the disk, not by what is already there."""
    seat = Seat(auto=False)
    assert seat.ask(A, 1) is None
    refused = seat.ask(B, 1)
    assert refused is not None
    assert not refused.granted
    seat.host.clock += 2 * LENGTH
    refused = seat.ask(B, 1)
    assert refused is not None
    assert not refused.granted
    seat.host.disk.complete()
    assert [(holder, answer.granted) for holder, answer in seat.answers[2:]] == [(A, True)]


def test_a_save_that_took_longer_than_the_promise() -> None:
    """Foundation 4: A's save is still under way when B's turn has come; A must not be told that it holds."""
    seat = Seat(auto=False)
    seat.ask(A, 1)
    seat.host.clock += 2 * LENGTH
    seat.ask(B, 2)
    seat.host.disk.complete()
    assert [(holder, answer.granted) for holder, answer in seat.answers] == [(A, False), (B, True)]
    assert seat.answers[0][1].wait == LENGTH


def test_a_disk_that_never_answers_keeps_the_seat_silent() -> None:
    """Foundation 3 (Storage): a failed disk calls nobody; nobody else gets the number either."""
    seat = Seat(auto=False)
    assert seat.ask(A, 1) is None
    seat.host.clock += 3600
    assert not seat.granted(B, 1)
    assert seat.promises.counts["granted"] == 0


def test_a_restart_remembers_and_waits() -> None:
    """F13: no grants before wait_length of the longest length ever granted, not even to the holder; then the pair still binds."""
    seat = Seat()
    assert seat.granted(A, 7, 8.0)
    assert seat.granted(A, 7, 3.0)
    seat = seat.restarted()
    wait = wait_length(8.0, RHO, MARGIN)
    assert seat.keeper.wait == pytest.approx(wait)
    answer = seat.ask(A, 7)
    assert answer is not None
    assert not answer.granted
    assert answer.wait == pytest.approx(wait)
    seat.host.clock += wait
    assert not seat.granted(B, 7)
    assert seat.granted(A, 7)


def test_the_wait_is_that_of_the_longest_ever_granted() -> None:
    """F13: "not today's setting": shortening the length does not shorten the wait."""
    seat = Seat()
    assert seat.granted(A, 1, 20.0)
    seat = seat.restarted()
    seat.host.clock += seat.keeper.wait
    assert seat.granted(A, 2, 1.0)
    assert seat.restarted().keeper.wait == pytest.approx(wait_length(20.0, RHO, MARGIN))


def test_two_lengths_on_their_way_to_the_disk() -> None:
    """F13: the shorter of two lengths, asked later, must not overwrite the longer one."""
    seat = Seat(auto=False)
    seat.ask(A, 1, 20.0, key="x")
    seat.ask(B, 1, 5.0, key="y")
    seat.host.disk.complete()
    assert seat.restarted().keeper.wait == pytest.approx(wait_length(20.0, RHO, MARGIN))


def test_a_crash_between_save_and_answer() -> None:
    """Foundation 4: the pair that nobody was told of is spent all the same."""
    seat = Seat(auto=False)
    seat.ask(A, 3)
    seat.host.disk.complete(tell=False)
    assert seat.answers == []
    seat = seat.restarted()
    seat.host.clock += seat.keeper.wait
    assert not seat.granted(B, 3)
    assert seat.granted(B, 4)


def test_a_seat_that_never_granted_does_not_wait() -> None:
    """F13: nothing was promised, nothing has to end."""
    assert Seat().keeper.wait == 0


def test_an_empty_journal_waits_for_the_largest_length() -> None:
    """F13: who remembers nothing assumes the most."""
    seat = Seat(opened=False)
    assert seat.keeper.wait == inf
    seat.keeper.open(fresh=True)
    assert seat.keeper.wait == pytest.approx(wait_length(seat.keeper.length_max, RHO, MARGIN))


def test_a_closed_seat_says_nothing() -> None:
    """F13: a seat that lost its journal is silent; a refusal would be an answer."""
    seat = Seat(opened=False)
    assert seat.ask(A, 1) is None
    assert seat.promises.counts["silent"] == 1
    assert seat.promises.get("k") is None


def test_only_the_holder_ends_its_promise_early() -> None:
    """F15: the holder's own word, for its present number or one above it; a late word about an older number changes nothing."""
    seat = Seat()
    assert seat.granted(A, 3)
    seat.promises.release("k", B, 9)
    seat.promises.release("k", A, 2)
    seat.promises.release("unknown", A, 2)
    assert not seat.granted(B, 4)
    seat.promises.release("k", A, 3)
    assert not seat.granted(B, 3)
    assert seat.granted(B, 4)


@pytest.mark.parametrize(
    "key, number, length",
    [
        ("", 1, 1.0),
        ("x" * 200, 1, 1.0),
        ("k", 0, 1.0),
        ("k", -1, 1.0),
        ("k", NUMBER_MAX + 1, 1.0),
        ("k", 1, 0.0),
        ("k", 1, 61.0),
        ("k", 1, inf),
    ],
)
def test_what_a_peer_can_get_wrong_is_refused_and_counted(key: str, number: int, length: float) -> None:
    """F16 (below 2^53), detection (length_max = 60 s): nothing is recorded."""
    seat = Seat()
    assert not seat.granted(A, number, length, key=key)
    assert seat.promises.counts["malformed"] == 1
    assert seat.promises.get(key) is None


def test_a_length_that_is_not_a_number_is_refused() -> None:
    """A NaN compares false with everything, so it must not slip through the limits."""
    seat = Seat()
    assert not seat.granted(A, 1, float("nan"))


def test_keys_are_independent_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: the table has a limit and a counter; what is recorded is never forgotten to make room."""
    monkeypatch.setattr(promise, "KEYS_MAX", 2)
    seat = Seat()
    assert seat.granted(A, 1, key="x")
    assert seat.granted(B, 1, key="y")
    assert not seat.granted(A, 1, key="z")
    assert seat.promises.counts["table_full"] == 1
    assert seat.granted(A, 1, key="x")


def test_an_unreadable_journal_is_an_error() -> None:
    """Foundation 3: damage is reported, not guessed around."""
    with pytest.raises(StorageDamaged, match="promise 'k'"):
        Seat(durable={"promises/k": b"\x00"})
    with pytest.raises(StorageDamaged, match="longest"):
        Seat(durable={"keeper/longest": b"\xc1"})
    with pytest.raises(StorageDamaged, match="longest"):
        Seat(durable={"keeper/longest": b"\xff"})  # -1 seconds


def test_the_era_is_in_every_answer() -> None:
    """F13: a counter in every answer of a seat."""
    seat = Seat(durable={"keeper/era": b"\x03"})
    answers = [seat.ask(A, 1), seat.ask(B, 1)]
    assert [answer.era for answer in answers if answer] == [3, 3]


@pytest.mark.parametrize("number", [NUMBER_MAX, NUMBER_MAX + 1, (1 << 64) - 1])
def test_a_record_that_nobody_could_go_on_from_is_left_alone(number: int) -> None:
    """H174: the seat starts, neither grants that key nor says anything about it, keeps the record, and serves all others."""
    record = msgspec.msgpack.encode(("a", 1, 0, number))
    seat = Seat(durable={"promises/k": record, "promises/other": msgspec.msgpack.encode(("a", 1, 0, 5))})
    assert list(seat.promises.unusable) == ["k"]
    assert seat.promises.get("k") is None
    assert seat.ask(B, 7) is None
    assert seat.promises.counts["unusable"] == 1
    assert seat.granted(B, 6, key="other")
    assert seat.host.disk.durable["promises/k"] == record
