"""Mail on fake hosts: at most once per life, in order, with an answer in time.  Spec: foundation F3, F15, F17; docs/mail.md."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events import Decided, Left, Suspected
from holdfast.features.mail.protocol import inbox, mail
from holdfast.features.mail.protocol.inbox import FORGET_AFTER, PAYLOAD_BYTES_MAX, WINDOW
from holdfast.features.mail.protocol.mail import (
    LETTERS_TO_ONE_MAX,
    RESEND_FIRST,
    RESEND_MAX,
    SEQ_MAX,
    SWEEP_PERIOD,
    TIMEOUT_MAX,
    Mail,
)
from holdfast.features.mail.protocol.messages import Letter, Outcome, Receipt
from holdfast.features.mail.protocol.posted import BACK_FROM_BYTES
from holdfast.host import Address, Host, Machine, Member, Message, NodeId
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers, member
from tests.support.mesh import Mesh

A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
B2 = NodeId("b", 2)


class Stand:
    """One Mail on a fake host, what it delivered and what became of its letters."""

    def __init__(self) -> None:
        self.host = FakeHost("a")
        self.members = FakeMembers(A, B, C)
        self.delivered: list[tuple[NodeId, bytes]] = []
        self.answer = Outcome.QUEUED
        self.outcomes: list[Outcome] = []
        self.mail = Mail(self.host, self.members, self._deliver)
        self.mail.start()

    def _deliver(self, sender: NodeId, payload: bytes) -> Outcome:
        if self.answer is Outcome.QUEUED:
            self.delivered.append((sender, payload))
        return self.answer

    def send(self, to: NodeId = B, payload: bytes = b"x", timeout: float = 10.0) -> None:
        self.mail.send(to, payload, timeout, self.outcomes.append)

    def hear(self, message: Message, source: NodeId = B) -> None:
        self.mail.on_message(source, message)

    def letters(self) -> list[tuple[int, int]]:
        """Number and predecessor of what was sent since the last look."""
        return [(letter.seq, letter.after) for _, letter in self.host.take(Letter)]


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_a_letter_goes_to_the_life_and_ends_with_its_receipt(stand: Stand) -> None:
    """docs/mail.md: done when the other agent has queued it."""
    stand.send(payload=b"hello")
    assert stand.host.take(Letter) == [(B, Letter(1, 0, b"hello"))]
    assert stand.host.met[B] == Address("b", 1)
    stand.hear(Receipt(1, Outcome.QUEUED))
    assert stand.outcomes == [Outcome.QUEUED]
    assert stand.mail.under_way == 0
    stand.host.pass_time(20)
    assert stand.letters() == []


def test_is_sent_again_until_the_receipt(stand: Stand) -> None:
    """docs/mail.md: a lost letter, or a lost receipt, costs a resend; the interval doubles up to its limit."""
    stand.send(timeout=100.0)
    sent_at = []
    for _ in range(3000):
        sent_at += [stand.host.clock - 1000.0] * len(stand.letters())
        stand.host.pass_time(0.001)
    assert sent_at == pytest.approx([0.0, 0.2, 0.6, 1.4, 2.4], abs=0.002)
    assert sent_at[1] == pytest.approx(RESEND_FIRST, abs=0.002)
    assert sent_at[4] - sent_at[3] == pytest.approx(RESEND_MAX, abs=0.002)


def test_silence_ends_in_time(stand: Stand) -> None:
    """docs/mail.md: TIMEOUT exactly then, and nothing is sent after it."""
    stand.send(timeout=2.0)
    stand.host.pass_time(1.999)
    assert stand.outcomes == []
    stand.host.pass_time(0.002)
    assert stand.outcomes == [Outcome.TIMEOUT]
    stand.letters()
    stand.host.pass_time(10)
    assert stand.letters() == []


def test_no_timeout_is_longer_than_the_receiver_remembers(stand: Stand) -> None:
    """docs/mail.md: a receiver forgets a silent sender after twice the longest timeout."""
    stand.send(timeout=1e6)
    stand.host.pass_time(TIMEOUT_MAX + 0.01)
    assert stand.outcomes == [Outcome.TIMEOUT]
    assert 2 * TIMEOUT_MAX <= FORGET_AFTER


@pytest.mark.parametrize("outcome", [Outcome.NOBODY, Outcome.TOO_LARGE])
def test_a_refusal_ends_it_at_once(stand: Stand, outcome: Outcome) -> None:
    """docs/mail.md: no client, or too large: waiting would not help."""
    stand.send()
    stand.hear(Receipt(1, outcome))
    assert stand.outcomes == [outcome]


def test_a_full_queue_is_tried_again(stand: Stand) -> None:
    """docs/mail.md: FULL is retried within the sender's time, and is the outcome when there is none left."""
    stand.send(timeout=1.0)
    stand.send(timeout=5.0)
    stand.letters()
    stand.hear(Receipt(1, Outcome.FULL))
    assert stand.outcomes == []
    stand.host.pass_time(RESEND_FIRST)
    assert (1, 0) in stand.letters()
    stand.host.pass_time(1.0)
    assert stand.outcomes == [Outcome.FULL]
    stand.hear(Receipt(2, Outcome.QUEUED))
    assert stand.outcomes == [Outcome.FULL, Outcome.QUEUED]


def test_too_large_is_refused_before_it_travels(stand: Stand) -> None:
    """docs/mail.md: 32 KiB."""
    stand.send(payload=bytes(PAYLOAD_BYTES_MAX + 1))
    assert stand.outcomes == [Outcome.TOO_LARGE]
    stand.send(payload=bytes(PAYLOAD_BYTES_MAX))
    assert len(stand.host.take(Letter)) == 1


def test_large_letters_say_where_receipts_go(stand: Stand) -> None:
    """Foundation 3: what comes by stream comes from a port where nobody listens."""
    stand.send(payload=bytes(BACK_FROM_BYTES - 1))
    stand.send(payload=bytes(BACK_FROM_BYTES))
    assert [letter.back for _, letter in stand.host.take(Letter)] == [None, stand.host.address]
    stand.hear(Letter(1, 0, bytes(BACK_FROM_BYTES), Address("elsewhere", 7)))
    assert stand.host.met[B] == Address("elsewhere", 7)


def test_only_members_are_written_to(stand: Stand) -> None:
    """F3: to whoever is not listed, to a life that the list does not know yet, and to one whose successor is listed."""
    stand.members.join(B2)
    stand.send(NodeId("z", 1))
    stand.send(NodeId("b", 3))
    stand.send(B)
    assert stand.outcomes == [Outcome.NOT_A_MEMBER, Outcome.NOT_A_MEMBER, Outcome.GONE]
    assert stand.letters() == []


def test_to_ourselves_it_needs_no_network(stand: Stand) -> None:
    """docs/mail.md: a member may write to itself."""
    stand.send(A, b"note")
    assert stand.delivered == [(A, b"note")]
    assert stand.outcomes == [Outcome.QUEUED]
    assert stand.host.sent == []


def test_removal_ends_it_early_and_suspicion_does_not(stand: Stand) -> None:
    """F15: word of absence is no answer, a removal is one."""
    stand.send()
    stand.members.say(Suspected(member(B)))
    stand.members.say(Decided(member(B)))
    assert stand.outcomes == []
    stand.members.fail(B)
    assert stand.outcomes == [Outcome.NOT_A_MEMBER]


def test_leaving_is_a_removal(stand: Stand) -> None:
    """F15: its own word."""
    stand.send()
    stand.send(C)
    stand.members.keep([A, C])
    stand.members.say(Left(member(B)))
    assert stand.outcomes == [Outcome.NOT_A_MEMBER]


def test_a_former_membership_of_the_same_life_is_no_removal(stand: Stand) -> None:
    """F2: on the ring one life may be listed again before its former membership is removed."""
    stand.send()
    stand.members.say(Left(member(B)))  # and B is still listed
    assert stand.outcomes == []


def test_a_successor_gets_nothing_that_was_meant_for_its_former_life(stand: Stand) -> None:
    """F3: GONE, and no letter to the next life."""
    stand.send()
    stand.letters()
    stand.members.join(B2)
    assert stand.outcomes == [Outcome.GONE]
    stand.host.pass_time(10)
    assert stand.host.take(Letter) == []


def test_letters_name_the_one_before_them(stand: Stand) -> None:
    """docs/mail.md, order: numbers are of the sender's life, predecessors of the pair."""
    for to in (B, B, C, B):
        stand.send(to)
    assert stand.letters() == [(1, 0), (2, 1), (3, 0), (4, 2)]


def test_a_window_of_letters_travels(stand: Stand) -> None:
    """docs/mail.md: 16 at a time; the next leaves when one is dealt with."""
    for _ in range(WINDOW + 2):
        stand.send()
    assert [seq for seq, _ in stand.letters()] == list(range(1, WINDOW + 1))
    stand.hear(Receipt(1, Outcome.QUEUED))
    assert stand.letters() == [(WINDOW + 1, WINDOW)]


def test_who_came_too_early_goes_again_when_its_turn_comes(stand: Stand) -> None:
    """docs/mail.md, order: one lost letter holds the others back for one round trip, not for a resend each."""
    for _ in range(3):
        stand.send()
    stand.letters()
    stand.hear(Receipt(2, Outcome.EARLY))
    stand.hear(Receipt(3, Outcome.EARLY))
    assert stand.letters() == []
    stand.hear(Receipt(1, Outcome.QUEUED))
    assert stand.letters() == [(2, 0), (3, 2)]


def test_who_gave_up_holds_nobody_back(stand: Stand) -> None:
    """docs/mail.md, order: a letter whose time is over is no predecessor any more."""
    stand.send(timeout=0.5)
    stand.send(timeout=10.0)
    stand.host.pass_time(0.7)
    stand.letters()
    stand.host.pass_time(2.0)
    assert stand.letters()[-1] == (2, 0)


def test_receives_each_letter_once(stand: Stand) -> None:
    """docs/mail.md: at most once; the receipt is repeated, the letter is not delivered again."""
    for _ in range(3):
        stand.hear(Letter(5, 0, b"x"))
    assert stand.delivered == [(B, b"x")]
    assert stand.host.take(Receipt) == [(B, Receipt(5, Outcome.QUEUED))] * 3


def test_receives_in_order(stand: Stand) -> None:
    """docs/mail.md, order: what overtook is not taken, what is late is not taken either."""
    stand.hear(Letter(2, 1, b"two"))
    stand.hear(Letter(1, 0, b"one"))
    stand.hear(Letter(2, 1, b"two"))
    stand.hear(Letter(4, 0, b"four"))  # its sender gave up on the third
    stand.hear(Letter(3, 2, b"three"))
    assert [payload for _, payload in stand.delivered] == [b"one", b"two", b"four"]
    assert [receipt.outcome for _, receipt in stand.host.take(Receipt)] == [Outcome.EARLY, Outcome.QUEUED, Outcome.QUEUED, Outcome.QUEUED]


def test_lives_of_a_sender_are_apart(stand: Stand) -> None:
    """F3: the numbers of a life begin anew."""
    stand.hear(Letter(5, 0, b"old"), B)
    stand.hear(Letter(1, 0, b"new"), B2)
    assert stand.delivered == [(B, b"old"), (B2, b"new")]


def test_full_is_not_remembered(stand: Stand) -> None:
    """docs/mail.md: FULL is a "not yet"; those after it wait, so that order stays."""
    stand.answer = Outcome.FULL
    stand.hear(Letter(1, 0, b"one"))
    stand.hear(Letter(2, 1, b"two"))
    stand.answer = Outcome.QUEUED
    stand.hear(Letter(2, 1, b"two"))
    stand.hear(Letter(1, 0, b"one"))
    assert stand.delivered == [(B, b"one")]
    outcomes = [receipt.outcome for _, receipt in stand.host.take(Receipt)]
    assert outcomes == [Outcome.FULL, Outcome.EARLY, Outcome.EARLY, Outcome.QUEUED]


def test_nobody_is_remembered(stand: Stand) -> None:
    """docs/mail.md: who was told that nobody listens is not delivered to somebody who comes later."""
    stand.answer = Outcome.NOBODY
    stand.hear(Letter(1, 0, b"one"))
    stand.answer = Outcome.QUEUED
    stand.hear(Letter(1, 0, b"one"))
    assert stand.delivered == []
    assert [receipt.outcome for _, receipt in stand.host.take(Receipt)] == [Outcome.NOBODY] * 2


def test_a_peer_cannot_send_more_than_allowed(stand: Stand) -> None:
    """docs/mail.md: the limit is checked at both ends."""
    stand.hear(Letter(1, 0, bytes(PAYLOAD_BYTES_MAX + 1)))
    assert stand.delivered == []
    assert stand.host.take(Receipt) == [(B, Receipt(1, Outcome.TOO_LARGE))]


NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_peer_may_say_anything(seq: int, after: int, outcome: int) -> None:
    """Foundation 2: numbers of peers are bounded where they come in; nothing raises."""
    stand = Stand()
    stand.send()
    stand.hear(Letter(seq, after, b""))
    stand.hear(Receipt(seq, outcome))
    assert len(stand.delivered) == (0 <= after < seq < SEQ_MAX and after == 0)


def test_a_receipt_for_what_was_not_sent_yet_is_no_receipt(stand: Stand) -> None:
    """Foundation 2: a peer that guesses numbers ends no letter that waits for its turn, nor one to somebody else."""
    for _ in range(WINDOW + 1):
        stand.send()
    stand.hear(Receipt(WINDOW + 1, Outcome.QUEUED))
    stand.hear(Receipt(1, Outcome.QUEUED), C)
    assert stand.outcomes == []
    assert stand.mail.counts["late"] == 2


def test_what_waits_is_limited(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: per receiver, in all, and in bytes; the overflow is refused at once and counted."""
    for _ in range(LETTERS_TO_ONE_MAX + 1):
        stand.send()
    assert stand.outcomes == [Outcome.BUSY]
    monkeypatch.setattr(mail, "LETTERS_MAX", LETTERS_TO_ONE_MAX + 1)
    stand.send(C)
    stand.send(C)
    assert stand.outcomes == [Outcome.BUSY] * 2
    monkeypatch.setattr(mail, "LETTERS_MAX", 10_000)
    monkeypatch.setattr(mail, "BYTES_MAX", stand.mail.under_way + 10)
    stand.send(C, bytes(10))
    stand.send(C)
    assert stand.outcomes == [Outcome.BUSY] * 3
    assert stand.mail.counts["busy"] == 3


def test_a_full_table_of_senders_refuses(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: it never forgets somebody who may write again."""
    monkeypatch.setattr(inbox, "SENDERS_MAX", 1)
    stand.hear(Letter(1, 0, b"b"), B)
    stand.hear(Letter(1, 0, b"c"), C)
    stand.hear(Letter(1, 0, b"b"), B)
    assert stand.delivered == [(B, b"b")]
    assert stand.mail.counts["table_full"] == 1


def test_who_is_gone_and_silent_is_forgotten(stand: Stand) -> None:
    """F17: the table shrinks again, but nobody in the list and nobody who still writes is forgotten."""
    for life in (B, C):
        stand.hear(Letter(7, 0, b"x"), life)
    stand.members.keep([A, C])
    stand.host.pass_time(FORGET_AFTER - SWEEP_PERIOD)
    stand.hear(Letter(7, 0, b"x"), B)
    stand.host.pass_time(FORGET_AFTER - 1.0)
    stand.hear(Letter(7, 0, b"x"), B)
    assert len(stand.delivered) == 2
    stand.host.pass_time(FORGET_AFTER + 2 * SWEEP_PERIOD)
    stand.hear(Letter(1, 0, b"x"), B)
    stand.hear(Letter(1, 0, b"x"), C)
    assert len(stand.delivered) == 3


def test_a_late_sweep_forgets_nobody(stand: Stand) -> None:
    """F10: whoever was stopped has not read everything that waited."""
    stand.hear(Letter(7, 0, b"x"))
    stand.members.keep([A])
    stand.host.pause(2 * FORGET_AFTER)
    stand.hear(Letter(7, 0, b"x"))
    assert len(stand.delivered) == 1


def test_stop_answers_everybody(stand: Stand) -> None:
    """Machine: whoever waits hears of it, and no timer is left."""
    stand.send()
    stand.send(C)
    stand.mail.stop()
    assert stand.outcomes == [Outcome.TIMEOUT] * 2
    assert stand.host.timers == 0


def test_whoever_hears_of_the_end_may_send_at_once(stand: Stand) -> None:
    """Machine: a callback that sends finds a mail in good order."""
    stand.mail.send(B, b"1", 10.0, lambda outcome: stand.send(B, b"2"))
    stand.hear(Receipt(1, Outcome.QUEUED))
    assert stand.letters() == [(1, 0), (2, 0)]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_what_is_certain(outcome: Outcome) -> None:
    """docs/mail.md, the table of outcomes: only three say that nothing was delivered."""
    assert outcome.may_have_arrived == (outcome not in {Outcome.NOBODY, Outcome.TOO_LARGE, Outcome.BUSY, Outcome.EARLY})


@pytest.mark.parametrize("seed", range(20))
def test_order_and_once_under_loss(seed: int) -> None:
    """docs/mail.md: half is lost, doubled, shuffled; everything is delivered once and in order, to each receiver."""
    delivered: dict[str, list[bytes]] = {"a": [], "b": [], "c": []}

    def build(host: Host, members: list[Member]) -> list[Machine]:
        def deliver(sender: NodeId, payload: bytes) -> Outcome:
            delivered[host.me.name].append(payload)
            return Outcome.QUEUED

        return [Mail(host, FakeMembers(*(each.id for each in members)), deliver)]

    mesh = Mesh("abc", build)
    mesh.start()
    random = Random(seed)
    outcomes: list[Outcome] = []
    sender = mesh.machines["a"][0]
    assert isinstance(sender, Mail)
    expected: dict[str, list[bytes]] = {"b": [], "c": []}
    for number in range(40):
        to = random.choice("bc")
        expected[to].append(b"%d" % number)
        sender.send(NodeId(to, 1), expected[to][-1], 200.0, outcomes.append)
    for _ in range(150):
        mesh.deliver(random=random, loss=0.5, duplicate=0.5)
        mesh.pass_time(RESEND_MAX)
    assert outcomes == [Outcome.QUEUED] * 40
    assert {name: delivered[name] for name in "bc"} == expected
