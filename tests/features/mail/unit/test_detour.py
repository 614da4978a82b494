"""Letters while there are views: to which lives, when a copy is carried, what ends them.  Spec: views D30, D31; docs/mail.md."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.events import Failed, Joined, Left
from holdfast.features.mail.protocol import detour
from holdfast.features.mail.protocol.detour import ANSWERS_MAX, FAIR_TRIES, WAYS_MAX
from holdfast.features.mail.protocol.inbox import FORGET_AFTER, PAYLOAD_BYTES_MAX
from holdfast.features.mail.protocol.mail import RESEND_FIRST, RESEND_MAX, SWEEP_PERIOD, TIMEOUT_MAX, Mail
from holdfast.features.mail.protocol.messages import CarriedLetter, CarriedReceipt, Letter, Outcome, Receipt
from holdfast.features.mail.protocol.posted import BACK_FROM_BYTES
from holdfast.features.views.protocol.config import HEARTBEAT_MAX, SENDS_MAX, ViewsConfig
from holdfast.host import Address, Carried, Message, NodeId
from holdfast.kit.overlay import Overlay
from holdfast.kit.parcels import PARCEL_BYTES_MAX
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers, member
from tests.support.fake_views import FakeViews

A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
B2 = NodeId("b", 2)
SILENT_AFTER = RESEND_FIRST + 2 * RESEND_FIRST  # when the third try begins
HOPS = 5  # that a message crosses at most, each with all its tries (views D7)


class Stand:
    """One Mail that takes part in views, what it delivered and what became of its letters."""

    def __init__(self) -> None:
        self.host = FakeHost("a")
        self.members = FakeMembers(A, B, C)
        self.views = FakeViews(A, B, C)
        self.overlay = Overlay()
        self.overlay.views = self.views
        self.delivered: list[tuple[NodeId, bytes]] = []
        self.outcomes: list[Outcome] = []
        self.mail = Mail(self.host, self.members, self._deliver, self.overlay)
        self.mail.start()

    def _deliver(self, sender: NodeId, payload: bytes) -> Outcome:
        self.delivered.append((sender, payload))
        return Outcome.QUEUED

    def send(self, to: NodeId = B, payload: bytes = b"x", timeout: float = 10.0) -> None:
        self.mail.send(to, payload, timeout, self.outcomes.append)

    def hear(self, message: Message, source: NodeId = B) -> None:
        self.mail.on_message(source, message)

    def direct(self) -> list[tuple[int, int]]:
        """Number and predecessor of what was sent directly since the last look."""
        return [(letter.seq, letter.after) for _, letter in self.host.take(Letter)]

    def carried(self) -> list[tuple[int, int]]:
        """The same of what is on the overlay."""
        return [(letter.seq, letter.after) for _, letter in self.views.take(CarriedLetter)]

    def make_silent(self, to: NodeId = B, payload: bytes = b"x") -> None:
        """A letter is answered by the overlay alone: the direct way to ``to`` is known to be silent."""
        self.send(to, payload)
        self.host.pass_time(SILENT_AFTER + 0.01)
        ((_, letter),) = self.views.take(CarriedLetter)
        self.views.end(Carried.DELIVERED)
        self.hear(CarriedReceipt(letter.seq, Outcome.QUEUED), to)
        assert self.outcomes.pop() is Outcome.QUEUED
        self.direct()


@pytest.fixture
def stand() -> Stand:
    return Stand()


# When a copy is carried.


def test_the_direct_way_is_tried_first(stand: Stand) -> None:
    """Views 5.7, D30: two tries alone, the third with a copy of the same number; then both until a receipt comes."""
    stand.send(payload=b"hello")
    stand.host.pass_time(SILENT_AFTER - 0.01)
    assert (len(stand.direct()), stand.carried()) == (FAIR_TRIES, [])
    stand.host.pass_time(0.02)
    assert stand.direct() == [(1, 0)]
    assert stand.views.take(CarriedLetter) == [(B, CarriedLetter(1, 0, b"hello", stand.host.address))]
    stand.hear(CarriedReceipt(1, Outcome.QUEUED))
    assert stand.outcomes == [Outcome.QUEUED]
    stand.host.pass_time(10)
    assert stand.direct() == []


def test_without_views_nothing_is_carried(stand: Stand) -> None:
    """Views D31: an agent that takes part in no view, or in none that has the receiver, sends as ever."""
    for views in (None, FakeViews(), FakeViews(A, C), FakeViews(A, NodeId("b", 0))):
        stand.overlay.views = views
        stand.send(timeout=3.0)
        stand.host.pass_time(3.0)
        assert [seq - stand.mail._last_seq for seq, _ in stand.direct()] == [0] * 5
        assert stand.outcomes.pop() is Outcome.TIMEOUT
        assert views is None or views.carried == []
    assert not any(name.startswith(("carried", "overlay", "answers")) for name in stand.mail.counts)


def test_a_receiver_that_enters_the_view_later_is_carried_to(stand: Stand) -> None:
    """Views D31: as soon as the life is in the present view, at the next try."""
    stand.views.install(A)
    stand.send()
    stand.host.pass_time(3.0)
    assert stand.carried() == []
    stand.views.install(A, B)
    stand.host.pass_time(RESEND_MAX)
    assert stand.carried() == [(1, 0)]


def test_a_letter_that_was_lost_alone_is_not_carried(stand: Stand) -> None:
    """docs/mail.md: another letter got its receipt meanwhile, so the direct way works and the next try may do it."""
    stand.send()
    stand.host.pass_time(SILENT_AFTER - 0.1)
    stand.send()
    stand.hear(Receipt(2, Outcome.QUEUED))
    stand.host.pass_time(0.2)
    assert (len(stand.direct()), stand.carried()) == (4, [])
    stand.host.pass_time(1.0)
    assert stand.carried() == [(1, 0)]


def test_early_says_nothing_of_the_letter_before(stand: Stand) -> None:
    """Views D13: short letters pass and are early, the long one before them does not pass: it is carried all the same."""
    stand.send(payload=bytes(BACK_FROM_BYTES))
    for _ in range(3):
        stand.send(payload=bytes(BACK_FROM_BYTES))
    for _ in range(7):
        stand.host.pass_time(0.1)
        for seq in (2, 3, 4):
            stand.hear(Receipt(seq, Outcome.EARLY))
    assert stand.carried()[0] == (1, 0)


def test_early_and_full_are_signs_of_life_of_their_letter(stand: Stand) -> None:
    """docs/mail.md: a letter that gets answers on the direct way needs no other one."""
    stand.send()
    for _ in range(50):
        stand.hear(Receipt(1, Outcome.FULL))
        stand.host.pass_time(0.1)
    assert stand.carried() == []
    stand.send(payload=bytes(BACK_FROM_BYTES))
    for _ in range(50):
        stand.hear(Receipt(2, Outcome.EARLY))
        stand.host.pass_time(0.1)
    assert stand.carried() == [(1, 0)]


def test_the_next_letter_does_not_wait_again(stand: Stand) -> None:
    """docs/mail.md: a direct way that is silent is remembered: a copy is carried at once, and the direct way is tried all the same."""
    stand.make_silent()
    for _ in range(2):
        stand.send()
    assert stand.direct() == [(2, 0), (3, 2)]
    assert stand.carried() == [(2, 0), (3, 2)]


def test_a_direct_receipt_ends_the_silence(stand: Stand) -> None:
    """docs/mail.md: one that was carried proves nothing; a plain one proves that the direct way works."""
    stand.make_silent()
    stand.send()
    stand.hear(CarriedReceipt(2, Outcome.QUEUED))
    stand.views.end(Carried.DELIVERED)
    stand.send()
    assert stand.carried() == [(3, 0)]
    stand.views.end(Carried.DELIVERED)
    stand.hear(Receipt(3, Outcome.QUEUED))
    stand.send()
    assert stand.carried() == []
    stand.host.pass_time(SILENT_AFTER + 0.01)
    assert stand.carried() == [(4, 0)]


def test_silence_is_of_one_life_and_one_kind_of_size(stand: Stand) -> None:
    """Views D13: streams may be stuck where datagrams pass; a receipt for a short letter says nothing of long ones."""
    long = bytes(BACK_FROM_BYTES)
    stand.make_silent(payload=long)
    stand.send(C, long)
    stand.send(payload=b"short")
    assert stand.carried() == []
    stand.hear(Receipt(3, Outcome.QUEUED))
    stand.send(payload=long)
    assert stand.carried() == [(4, 0)]


def test_a_letter_is_on_the_overlay_once_at_a_time(stand: Stand) -> None:
    """Views 5.7: the overlay repeats itself; what became of the copy is awaited, then the next try may be carried again."""
    stand.send(timeout=60.0)
    stand.host.pass_time(5.0)
    assert stand.carried() == [(1, 0)]
    stand.views.end(Carried.TRIPPED)
    assert stand.outcomes == []
    stand.host.pass_time(RESEND_MAX)
    assert stand.carried() == [(1, 0)]


@pytest.mark.parametrize("became", [Carried.BUSY, Carried.NOT_IN_VIEW, Carried.TOO_LARGE])
def test_what_the_overlay_refuses_is_tried_again(stand: Stand, became: Carried) -> None:
    """Views 5.7: busy is no failure; the direct way goes on, and the next try asks the overlay again."""
    stand.views.answer = became
    stand.send(timeout=60.0)
    stand.host.pass_time(5.0)
    assert stand.outcomes == []
    assert stand.mail.counts[f"overlay_{became.name.lower()}"] == stand.mail.counts["carried"] == 5
    assert len(stand.direct()) == 7
    stand.views.answer = None
    stand.host.pass_time(RESEND_MAX)
    assert stand.carried() == [(1, 0)]


@pytest.mark.parametrize("outcome", [Outcome.EARLY, Outcome.FULL])
def test_a_copy_that_was_answered_is_under_way_no_more(stand: Stand, outcome: Outcome) -> None:
    """docs/mail.md, order: a copy that came too early goes again when its turn comes, whatever the overlay says of the former one."""
    stand.make_silent()
    for _ in range(2):
        stand.send()
    stand.hear(CarriedReceipt(3, outcome))
    stand.hear(CarriedReceipt(2, Outcome.QUEUED))
    stand.host.pass_time(RESEND_FIRST)
    assert stand.carried() == [(2, 0), (3, 2), (3, 0)]
    stand.views.carried[1][2](Carried.DELIVERED)  # of the former copy; the present one is still under way
    stand.host.pass_time(3.0)
    assert stand.carried() == [(2, 0), (3, 2), (3, 0)]


def test_early_that_comes_late_is_carried_again_at_once(stand: Stand) -> None:
    """docs/mail.md, order: the word "early" was overtaken by the receipt of the letter before, as happens on a slow overlay."""
    stand.make_silent()
    for _ in range(3):
        stand.send()
    stand.hear(CarriedReceipt(2, Outcome.QUEUED))
    stand.hear(CarriedReceipt(4, Outcome.EARLY))
    assert stand.carried() == [(2, 0), (3, 2), (4, 3)]
    stand.hear(CarriedReceipt(3, Outcome.EARLY))
    assert stand.carried() == [(2, 0), (3, 2), (4, 3), (3, 0), (4, 3)]
    stand.hear(CarriedReceipt(3, Outcome.QUEUED))
    stand.hear(CarriedReceipt(4, Outcome.EARLY))
    stand.hear(CarriedReceipt(4, Outcome.QUEUED))
    assert stand.outcomes == [Outcome.QUEUED] * 3


def test_what_ended_is_not_touched_by_its_copy(stand: Stand) -> None:
    """Views G7: the direct receipt comes first, the overlay says later what became of the copy."""
    stand.send()
    stand.host.pass_time(1.0)
    stand.hear(Receipt(1, Outcome.QUEUED))
    stand.views.end(Carried.TRIPPED)
    assert stand.outcomes == [Outcome.QUEUED]
    assert (stand.mail.under_way, stand.mail._detour._letters, stand.mail._detour._bytes) == (0, 0, 0)


def test_what_is_carried_at_a_time_is_limited(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: letters and bytes; what finds no room is tried directly, and carried when there is room."""
    stand.make_silent()
    monkeypatch.setattr(detour, "CARRIED_MAX", 2)
    for _ in range(3):
        stand.send()
    assert [seq for seq, _ in stand.carried()] == [2, 3]
    assert [seq for seq, _ in stand.direct()] == [2, 3, 4]
    assert stand.mail.counts["carried_later"] == 1
    stand.views.end(Carried.DELIVERED)
    monkeypatch.setattr(detour, "CARRIED_BYTES_MAX", 1)
    stand.host.pass_time(RESEND_FIRST)
    assert len(stand.carried()) == 1


def test_limits_fit_into_those_of_views() -> None:
    """F17: letters and receipts leave half of what one agent may have on the overlay; the longest letter fits into a parcel."""
    assert detour.CARRIED_MAX + ANSWERS_MAX <= SENDS_MAX / 2
    letter = CarriedLetter(1 << 52, 1 << 51, bytes(PAYLOAD_BYTES_MAX), Address("x" * 255, 65_535))
    assert len(msgspec.msgpack.encode(letter)) <= PARCEL_BYTES_MAX


def test_remembered_ways_are_limited(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: the way that was used longest ago is forgotten, and costs the next letter there a new wait."""
    monkeypatch.setattr(detour, "WAYS_MAX", 1)
    stand.make_silent(B)
    stand.make_silent(C)
    stand.send(C)
    assert len(stand.carried()) == 1
    stand.send(B)
    assert len(stand.carried()) == 1
    assert len(stand.mail._detour._ways) == 1
    assert WAYS_MAX > 1


# What is answered, and on which way.


def test_a_letter_is_answered_on_the_way_on_which_it_came(stand: Stand) -> None:
    """docs/mail.md: so the sender hears it, and learns which way works."""
    stand.hear(Letter(1, 0, b"direct"))
    stand.hear(CarriedLetter(2, 1, b"carried", Address("b", 9)))
    assert stand.host.take(Receipt) == [(B, Receipt(1, Outcome.QUEUED))]
    assert stand.views.take(CarriedReceipt) == [(B, CarriedReceipt(2, Outcome.QUEUED))]
    assert stand.delivered == [(B, b"direct"), (B, b"carried")]


def test_copies_by_both_ways_are_one_letter(stand: Stand) -> None:
    """docs/mail.md, at most once: one number, whatever way a copy takes; each copy is answered."""
    for _ in range(2):
        stand.hear(Letter(1, 0, b"x"))
        stand.hear(CarriedLetter(1, 0, b"x"))
    assert stand.delivered == [(B, b"x")]
    assert [len(stand.host.take(Receipt)), len(stand.views.take(CarriedReceipt))] == [2, 2]


def test_order_holds_over_both_ways(stand: Stand) -> None:
    """docs/mail.md, order: what overtook on the other way is early, what was overtaken is late."""
    stand.hear(CarriedLetter(2, 1, b"two"))
    stand.hear(Letter(1, 0, b"one"))
    stand.hear(CarriedLetter(2, 1, b"two"))
    stand.hear(Letter(4, 0, b"four"))
    stand.hear(CarriedLetter(3, 2, b"three"))
    assert [payload for _, payload in stand.delivered] == [b"one", b"two", b"four"]
    assert [receipt.outcome for _, receipt in stand.views.take(CarriedReceipt)] == [Outcome.EARLY, Outcome.QUEUED]


def test_a_sender_that_is_not_in_the_view_is_answered_directly(stand: Stand) -> None:
    """Views D24: two views may differ for a moment; the letter itself says where its sender listens."""
    stand.views.install(A, C)
    stand.hear(CarriedLetter(1, 0, b"x", Address("b", 9)))
    assert stand.host.met[B] == Address("b", 9)
    assert [(to, type(receipt)) for to, receipt in stand.host.take(Receipt)] == [(B, Receipt)]


def test_an_answer_that_the_overlay_does_not_take_goes_directly(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 5.7, F17: busy, or more answers than we carry at a time; if that is lost the sender asks again."""
    stand.views.answer = Carried.BUSY
    stand.hear(CarriedLetter(1, 0, b"x"))
    assert stand.host.take(Receipt) == [(B, Receipt(1, Outcome.QUEUED))]
    stand.views.answer = None
    monkeypatch.setattr(detour, "ANSWERS_MAX", 1)
    for seq in (2, 3):
        stand.hear(CarriedLetter(seq, 0, b"x"))
    assert stand.host.take(Receipt) == [(B, Receipt(3, Outcome.QUEUED))]
    stand.views.end(Carried.TRIPPED)
    stand.hear(CarriedLetter(4, 0, b"x"))
    assert stand.views.take(CarriedReceipt) == [(B, CarriedReceipt(4, Outcome.QUEUED))]
    assert stand.host.take(Receipt) == []


# Who can be written to, and what ends a letter.


def test_a_member_of_the_view_alone_is_written_to(stand: Stand) -> None:
    """Views D31: in the list or in the view; directly first, at the address that the view has."""
    stand.members.keep([A])
    stand.send()
    assert stand.outcomes == []
    assert stand.direct() == [(1, 0)]
    assert stand.host.met[B] == Address("b-in-view", 1)
    stand.members.keep([])
    stand.views.install(A)
    stand.send(NodeId("b", 1))
    assert stand.outcomes == [Outcome.NOT_A_MEMBER]


def test_the_address_in_the_list_is_used_first(stand: Stand) -> None:
    """docs/mail.md: the list is told of a move sooner than a view is agreed."""
    stand.send()
    assert stand.host.met[B] == Address("b", 1)


def test_the_newer_life_of_a_name_is_the_addressee(stand: Stand) -> None:
    """F1, F3: list and view may differ; what was meant for the older one is not sent."""
    assert [stand.mail.addressee(name) for name in ("a", "b", "z")] == [A, B, None]
    stand.views.install(A, B2)
    assert stand.mail.addressee("b") == B2
    stand.send(B)
    stand.send(NodeId("b", 3))
    assert stand.outcomes == [Outcome.GONE, Outcome.NOT_A_MEMBER]
    assert stand.direct() == []
    stand.members.join(NodeId("b", 3))
    assert stand.mail.addressee("b") == NodeId("b", 3)


@pytest.mark.parametrize("event", [Failed(member(B), certain=False), Left(member(B))])
def test_a_removal_from_the_list_ends_nothing_while_the_view_has_it(stand: Stand, event: Failed | Left) -> None:
    """Views D31: the ring empties in a 50/50 partition, mail goes on inside each side."""
    stand.send()
    stand.members.keep([A])
    stand.members.say(event)
    assert stand.outcomes == []
    stand.host.pass_time(1.0)
    assert stand.carried() == [(1, 0)]
    stand.hear(CarriedReceipt(1, Outcome.QUEUED))
    assert stand.outcomes == [Outcome.QUEUED]


def test_a_receiver_that_the_view_gave_up_too_is_told_as_such(stand: Stand) -> None:
    """Views 10: TRIPPED within the time to the next try, for all letters to it; not while the list still has it."""
    for _ in range(20):
        stand.send(timeout=60.0)
    stand.send(C, timeout=60.0)
    stand.views.install(A, C)
    stand.host.pass_time(2.0)
    assert stand.outcomes == []
    stand.members.keep([A, C])
    stand.host.pass_time(RESEND_MAX)
    assert stand.outcomes == [Outcome.TRIPPED] * 20
    assert stand.mail.under_way == 1
    assert stand.mail.counts["tripped"] == 20


def test_a_removal_after_the_view_gave_it_up_is_told_as_such(stand: Stand) -> None:
    """Views 10: the view first, then the list: at once."""
    stand.send()
    stand.views.install(A)
    stand.members.fail(B)
    assert stand.outcomes == [Outcome.TRIPPED]


def test_at_its_deadline_a_letter_says_what_is_known_then(stand: Stand) -> None:
    """Views 10: TRIPPED if neither has the receiver any more, TIMEOUT if one has."""
    stand.members.keep([A])
    stand.send(timeout=0.15)
    stand.views.install(A)
    stand.host.pass_time(0.2)
    stand.views.install(A, B)
    stand.send(timeout=0.15)
    stand.host.pass_time(0.2)
    assert stand.outcomes == [Outcome.TRIPPED, Outcome.TIMEOUT]


def test_a_tripped_copy_alone_ends_nothing(stand: Stand) -> None:
    """Views G5: another view comes; the letter has its time on the direct way, and TIMEOUT says that none answered."""
    stand.send(timeout=3.0)
    stand.host.pass_time(1.0)
    stand.views.end(Carried.TRIPPED)
    stand.views.install(A)
    stand.host.pass_time(3.0)
    assert stand.outcomes == [Outcome.TIMEOUT]


def test_an_agent_without_a_view_gives_no_receiver_up(stand: Stand) -> None:
    """Views D31: it lost its own view, which says nothing of the others; the letter has its time."""
    stand.send(timeout=5.0)
    stand.members.fail(B)
    stand.views.view = None
    stand.members.say(Left(member(B)))
    stand.host.pass_time(3.0)
    assert stand.outcomes == []
    stand.hear(Receipt(1, Outcome.QUEUED))
    assert stand.outcomes == [Outcome.QUEUED]


def test_a_receiver_that_left_is_no_member_any_more(stand: Stand) -> None:
    """docs/mail.md: it said goodbye, the view follows: that is no broken way."""
    stand.send()
    stand.members.keep([A])
    stand.members.say(Left(member(B)))
    stand.views.install(A)
    stand.host.pass_time(RESEND_MAX)
    assert stand.outcomes == [Outcome.NOT_A_MEMBER]


def test_when_views_end_the_list_decides(stand: Stand) -> None:
    """Views D31: the last client that wanted views is gone; the receiver was in the view alone."""
    stand.members.keep([A])
    stand.send()
    stand.overlay.views = None
    stand.host.pass_time(RESEND_MAX)
    assert stand.outcomes == [Outcome.NOT_A_MEMBER]


def test_a_receiver_that_was_never_in_the_view_ends_as_without_views(stand: Stand) -> None:
    """F15: its removal from the list is what was known of it."""
    stand.views.install(A)
    stand.send()
    stand.members.fail(B)
    assert stand.outcomes == [Outcome.NOT_A_MEMBER]


def test_a_receiver_that_came_into_the_view_just_before_goes_on(stand: Stand) -> None:
    """Views D31: it is the present view that counts, not that of the last try."""
    stand.views.install(A)
    stand.send()
    stand.views.install(A, B)
    stand.members.fail(B)
    assert stand.outcomes == []


def test_a_list_that_was_emptied_without_a_word_ends_nothing(stand: Stand) -> None:
    """F15: without views, and of a life that no view had, only an event of the list ends a letter."""
    for views in (None, FakeViews(A)):
        stand.overlay.views = views
        stand.send(timeout=3.0)
        stand.members.keep([A])
        stand.host.pass_time(4.0)
        assert stand.outcomes.pop() is Outcome.TIMEOUT
        stand.members.join(B)


def test_a_successor_in_the_view_ends_it(stand: Stand) -> None:
    """F3: GONE, and nothing goes to the next life; the view may know it before the list does."""
    stand.send()
    stand.direct()
    stand.views.install(A, B2)
    stand.host.pass_time(RESEND_MAX)
    assert stand.outcomes == [Outcome.GONE]
    assert (stand.direct(), stand.carried()) == ([], [])


def test_what_was_known_of_a_life_ends_with_it(stand: Stand) -> None:
    """F17: the way to a life that is over is forgotten."""
    stand.make_silent()
    stand.send()
    stand.members.say(Joined(member(B2)))
    assert stand.outcomes == [Outcome.GONE]
    assert stand.mail._detour._ways == {}


# The receiver's memory.


def test_a_sender_in_the_view_is_not_forgotten(stand: Stand) -> None:
    """docs/mail.md, at most once: neither list nor view, and ten minutes of silence."""
    stand.members.keep([A])
    stand.hear(Letter(7, 0, b"x"), B)
    stand.hear(Letter(7, 0, b"x"), NodeId("z", 1))
    stand.host.pass_time(2 * FORGET_AFTER)
    assert len(stand.mail._inbox) == 1
    stand.hear(CarriedLetter(7, 0, b"x"), B)
    assert len(stand.delivered) == 2
    stand.views.install(A)
    stand.host.pass_time(FORGET_AFTER + 2 * SWEEP_PERIOD)
    assert len(stand.mail._inbox) == 0


def test_no_copy_is_under_way_when_its_sender_is_forgotten() -> None:
    """docs/mail.md, at most once: the longest timeout, then a carry that began with it, then a copy that needs every try of every hop."""
    slowest = ViewsConfig(heartbeat=HEARTBEAT_MAX)
    on_the_overlay = slowest.ov_deadline + HOPS * slowest.hop_tries * slowest.hop_rto
    assert on_the_overlay == pytest.approx(155.0)
    assert TIMEOUT_MAX + on_the_overlay <= FORGET_AFTER
