"""Mail: a message to one life of one member, at most once, in order.  Spec: foundation F3, F15, F17; views D30, D31; docs/mail.md.

A letter is sent again until its receipt comes or its time is over. Letters from one life to another are delivered in the order in which
they were handed over: up to ``WINDOW`` travel at a time, and each names the one that must be dealt with before it. Where there are views,
members of the view get letters as well as those of the list, and ``detour`` says which copies the overlay carries.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import islice

from holdfast.events import Failed, Joined, Left, MembershipEvent
from holdfast.features.mail.protocol.detour import Detour
from holdfast.features.mail.protocol.inbox import PAYLOAD_BYTES_MAX, WINDOW, Deliver, Inbox
from holdfast.features.mail.protocol.messages import CarriedLetter, CarriedReceipt, Letter, Outcome, Receipt
from holdfast.features.mail.protocol.posted import Done, Posted, Receiver
from holdfast.host import Address, Host, Membership, Message, NodeId, Timer, only
from holdfast.kit.overlay import Overlay

SEQ_MAX = 1 << 53  # exact in every language; at a million per second that is 285 years
RESEND_FIRST = 0.2  # seconds; longer than most round trips, so that calm sends everything once
RESEND_MAX = 1.0  # seconds; it doubles up to here
TIMEOUT_MAX = 300.0  # seconds; receivers remember a silent sender for twice as long
LETTERS_MAX = 4096  # under way or waiting, to all receivers
LETTERS_TO_ONE_MAX = 256  # under way or waiting, to one life: one dead receiver must not keep mail from the others
BYTES_MAX = 32 << 20  # of payload, to all receivers: a thousand of the largest
SWEEP_PERIOD = 60.0
ANSWERS = {Outcome.QUEUED, Outcome.NOBODY, Outcome.TOO_LARGE}  # receipts that end a letter


class Mail:
    """Sends and receives letters. ``deliver(sender, payload)`` answers QUEUED, NOBODY, FULL or TOO_LARGE."""

    handles = (Letter, Receipt, CarriedLetter, CarriedReceipt)
    fingerprint = b""

    def __init__(self, host: Host, membership: Membership, deliver: Deliver, overlay: Overlay | None = None) -> None:
        self._host, self._membership, self._deliver = host, membership, deliver
        self._overlay = Overlay() if overlay is None else overlay
        # sent, resent, received, duplicate, early, late, malformed, busy, table_full, and outcomes; and what ``detour`` counts
        self.counts: Counter[str] = Counter()
        self._inbox = Inbox(host, membership, deliver, self.counts, self._overlay)
        self._detour = Detour(host, self._overlay, self.counts)
        self._last_seq = 0
        self._posted: dict[NodeId, Receiver] = {}
        self._letters = 0
        self._bytes = 0
        self._sweep: Timer | None = None
        membership.subscribe(only(self._on_membership, Joined, Failed, Left))

    @property
    def under_way(self) -> int:
        """Letters of ours that nothing has become of yet."""
        return self._letters

    def addressee(self, name: str) -> NodeId | None:
        """The life of this name that can be written to: of the member list, of the view, or the newer one of the two."""
        lives = [found.id for found in (self._membership.get(name), self._overlay.find(name)) if found is not None]
        return max(lives, default=None)

    def send(self, to: NodeId, payload: bytes, timeout: float, done: Done) -> None:
        """``done`` runs once, also inside this call when nothing can be sent. A timeout beyond ``TIMEOUT_MAX`` is cut to it."""
        assert timeout > 0
        outcome = self._at_once(to, payload)
        if outcome is not None:
            self.counts[outcome.name.lower()] += 1
            done(outcome)
            return
        self._last_seq += 1
        letter = Posted(self._last_seq, to, payload, self._host.now + min(timeout, TIMEOUT_MAX), done)
        self._posted.setdefault(to, Receiver()).letters[letter.seq] = letter
        self._letters += 1
        self._bytes += len(payload)
        letter.timer = self._host.at(letter.deadline, partial(self._on_timer, letter))
        self._advance(to)

    def start(self) -> None:
        self._sweep = self._host.after(SWEEP_PERIOD, self._on_sweep)

    def on_away(self, seconds: float) -> None:
        """Receipts that waited are read before any timer finds that its time is over (F10)."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Receipt):
            self._on_receipt(source, message)
        else:
            assert isinstance(message, Letter)
            self._on_letter(source, message)

    def stop(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for letter in [letter for receiver in self._posted.values() for letter in receiver.letters.values()]:
            self._take_out(letter)
            self._end(letter, Outcome.TIMEOUT)

    def _at_once(self, to: NodeId, payload: bytes) -> Outcome | None:
        """What needs no network: a refusal, and what is for ourselves."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            return Outcome.TOO_LARGE
        if to == self._host.me:
            return self._deliver(to, payload)
        present = self.addressee(to.name)
        if present is None or present.boot < to.boot:
            return Outcome.NOT_A_MEMBER
        if present != to:
            return Outcome.GONE
        full = self._letters >= LETTERS_MAX or self._bytes + len(payload) > BYTES_MAX
        if full or (to in self._posted and len(self._posted[to].letters) >= LETTERS_TO_ONE_MAX):
            return Outcome.BUSY
        self._host.meet(to, self._address_of(to))
        return None

    def _address_of(self, to: NodeId) -> Address:
        member = self._membership.get(to.name)
        if member is not None and member.id == to:
            return member.address
        found = self._overlay.find(to.name)
        assert found is not None
        return found.address

    def _advance(self, to: NodeId) -> None:
        """Send what may travel now and does not, or came too early."""
        receiver = self._posted.get(to)
        if receiver is None:
            return
        after = 0
        for letter in list(islice(receiver.letters.values(), WINDOW)):
            if letter.tries == 0 or letter.early:
                self._transmit(letter, after)
            after = letter.seq

    def _transmit(self, letter: Posted, after: int) -> None:
        self.counts["resent" if letter.tries else "sent"] += 1
        interval = min(RESEND_MAX, RESEND_FIRST * 2 ** min(letter.tries, 8))
        letter.tries += 1
        letter.early = False
        if letter.timer is not None:
            letter.timer.cancel()
        letter.timer = self._host.at(min(self._host.now + interval, letter.deadline), partial(self._on_timer, letter))
        back = self._host.address if letter.may_be_streamed else None
        self._host.send(letter.to, Letter(letter.seq, after, letter.payload, back))
        if self._overlay.reaches(letter.to):
            self._posted[letter.to].in_view = True
            self._detour.after_try(letter, after)
        letter.unanswered += 1
        letter.tried_at = self._host.now

    def _before(self, letter: Posted) -> int:
        before = 0
        for seq in self._posted[letter.to].letters:
            if seq == letter.seq:
                break
            before = seq
        return before

    def _on_timer(self, letter: Posted) -> None:
        letter.timer = None
        given_up = self._verdict(letter.to)
        if given_up is not None:
            self._give_up(letter.to, given_up)
        elif self._host.now < letter.deadline:
            self._transmit(letter, self._before(letter))
        else:
            self._finish(letter, Outcome.FULL if letter.refused else Outcome.TIMEOUT)

    def _on_letter(self, source: NodeId, message: Letter) -> None:
        if not 0 <= message.after < message.seq < SEQ_MAX:
            self.counts["malformed"] += 1
            return
        if message.back is not None:
            self._host.meet(source, message.back)
        self.counts["received"] += 1
        outcome = self._inbox.take(source, message)
        if outcome is None:
            return
        if message.carried:
            self._detour.answer(source, Receipt(message.seq, outcome))
        else:
            self._host.send(source, Receipt(message.seq, outcome))

    def _on_receipt(self, source: NodeId, message: Receipt) -> None:
        receiver = self._posted.get(source)
        letter = None if receiver is None else receiver.letters.get(message.seq)
        if letter is None or letter.tries == 0:
            self.counts["late"] += 1
            return
        if message.carried:
            letter.carrying = 0  # The copy has arrived. If another one is needed, it need not wait until the overlay says so too.
        else:
            self._detour.on_direct_receipt(letter, message.outcome)
        self._on_answer(letter, message.outcome)
        if message.carried and message.outcome == Outcome.EARLY and self._before(letter) == 0:
            self._advance(source)  # The one before was dealt with while this word was under way: the next try may be a second away.

    def _on_answer(self, letter: Posted, outcome: int) -> None:
        if outcome in ANSWERS:
            self._finish(letter, Outcome(outcome))
        elif outcome == Outcome.FULL:
            letter.refused = True
        elif outcome == Outcome.EARLY:
            letter.early = True
        else:
            self.counts["malformed"] += 1

    def _on_membership(self, event: MembershipEvent) -> None:
        """A removal ends what is under way, unless the view has the receiver; a successor does too, and a suspicion does not (F15)."""
        life = event.member.id
        if isinstance(event, Failed | Left):
            self._on_removal(life, left=isinstance(event, Left))
        elif isinstance(event, Joined):
            for former in [each for each in self._posted if each.name == life.name and each.boot < life.boot]:
                self._give_up(former, Outcome.GONE)

    def _on_removal(self, life: NodeId, *, left: bool) -> None:
        receiver = self._posted.get(life)
        if receiver is None or self._is_listed(life):  # another membership of the same life goes on
            return
        receiver.left = receiver.left or left
        receiver.in_view = receiver.in_view or self._overlay.reaches(life)
        outcome = self._verdict(life) if receiver.in_view else Outcome.NOT_A_MEMBER
        if outcome is not None:
            self._give_up(life, outcome)

    def _is_listed(self, life: NodeId) -> bool:
        member = self._membership.get(life.name)
        return member is not None and member.id == life

    def _verdict(self, to: NodeId) -> Outcome | None:
        """What ends the letters to a life that the view had, now that neither list nor view has it; None: they go on.

        While this agent itself is without a view, no view says that the receiver is gone: the letters have their time (views D31)."""
        receiver, present = self._posted[to], self.addressee(to.name)
        if not receiver.in_view or present == to:
            return None
        if present is not None and present.boot > to.boot:
            return Outcome.GONE
        if self._overlay.views is None:
            return Outcome.NOT_A_MEMBER
        if self._overlay.view is None:
            return None
        return Outcome.NOT_A_MEMBER if receiver.left else Outcome.TRIPPED

    def _give_up(self, to: NodeId, outcome: Outcome) -> None:
        self._detour.forget(to)
        receiver = self._posted.get(to)
        letters = [] if receiver is None else list(receiver.letters.values())
        for letter in letters:
            self._take_out(letter)
        for letter in letters:
            self._end(letter, outcome)

    def _finish(self, letter: Posted, outcome: Outcome) -> None:
        self._take_out(letter)
        self._advance(letter.to)
        self._end(letter, outcome)

    def _take_out(self, letter: Posted) -> None:
        receiver = self._posted[letter.to]
        del receiver.letters[letter.seq]
        if not receiver.letters:
            del self._posted[letter.to]
        self._letters -= 1
        self._bytes -= len(letter.payload)
        if letter.timer is not None:
            letter.timer.cancel()

    def _end(self, letter: Posted, outcome: Outcome) -> None:
        """Last in every handler: the sender that hears of it may send the next letter at once."""
        self.counts[outcome.name.lower()] += 1
        letter.done(outcome)

    def _on_sweep(self) -> None:
        self._inbox.sweep()
        self._sweep = self._host.after(SWEEP_PERIOD, self._on_sweep)
