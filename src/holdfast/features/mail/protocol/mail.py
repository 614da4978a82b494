"""Mail: a message to one life of one member, at most once, in order.  Spec: foundation F3, F15, F17; docs/mail.md says what is promised.

A letter is sent again until its receipt comes or its time is over. Letters from one life to another are delivered in the order in which
they were handed over: up to ``WINDOW`` travel at a time, and each names the one that must be dealt with before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice

from holdfast.events import Failed, Joined, Left, MembershipEvent
from holdfast.features.mail.protocol.inbox import PAYLOAD_BYTES_MAX, WINDOW, Deliver, Inbox
from holdfast.features.mail.protocol.messages import Letter, Outcome, Receipt
from holdfast.host import Host, Membership, Message, NodeId, Timer, only

SEQ_MAX = 1 << 53  # exact in every language; at a million per second that is 285 years
RESEND_FIRST = 0.2  # seconds; longer than most round trips, so that calm sends everything once
RESEND_MAX = 1.0  # seconds; it doubles up to here
TIMEOUT_MAX = 300.0  # seconds; receivers remember a silent sender for twice as long
LETTERS_MAX = 4096  # under way or waiting, to all receivers
LETTERS_TO_ONE_MAX = 256  # under way or waiting, to one life: one dead receiver must not keep mail from the others
BYTES_MAX = 32 << 20  # of payload, to all receivers: a thousand of the largest
BACK_FROM_BYTES = 512  # payloads from here on may travel by stream, whatever sealing and names add to them
SWEEP_PERIOD = 60.0
ANSWERS = {Outcome.QUEUED, Outcome.NOBODY, Outcome.TOO_LARGE}  # receipts that end a letter

Done = Callable[[Outcome], None]


class Posted:
    """A letter of ours that nothing has become of yet."""

    __slots__ = ("deadline", "done", "early", "payload", "refused", "seq", "timer", "to", "tries")

    def __init__(self, seq: int, to: NodeId, payload: bytes, deadline: float, done: Done) -> None:
        self.seq, self.to, self.payload, self.deadline, self.done = seq, to, payload, deadline, done
        self.tries = 0
        self.early = False  # the receiver misses one before it: send again as soon as that one is dealt with
        self.refused = False  # the last word was FULL
        self.timer: Timer | None = None


class Mail:
    """Sends and receives letters. ``deliver(sender, payload)`` answers QUEUED, NOBODY, FULL or TOO_LARGE."""

    handles = (Letter, Receipt)
    fingerprint = b""

    def __init__(self, host: Host, membership: Membership, deliver: Deliver) -> None:
        self._host, self._membership, self._deliver = host, membership, deliver
        self.counts: Counter[str] = Counter()  # sent, resent, received, duplicate, early, late, malformed, busy, table_full, and outcomes
        self._inbox = Inbox(host, membership, deliver, self.counts)
        self._last_seq = 0
        self._posted: dict[NodeId, dict[int, Posted]] = {}  # by receiver, in the order in which they were handed over
        self._letters = 0
        self._bytes = 0
        self._sweep: Timer | None = None
        membership.subscribe(only(self._on_membership, Joined, Failed, Left))

    @property
    def under_way(self) -> int:
        """Letters of ours that nothing has become of yet."""
        return self._letters

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
        self._posted.setdefault(to, {})[letter.seq] = letter
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
        for letter in [letter for queue in self._posted.values() for letter in queue.values()]:
            self._take_out(letter)
            self._end(letter, Outcome.TIMEOUT)

    def _at_once(self, to: NodeId, payload: bytes) -> Outcome | None:
        """What needs no network: a refusal, and what is for ourselves."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            return Outcome.TOO_LARGE
        if to == self._host.me:
            return self._deliver(to, payload)
        member = self._membership.get(to.name)
        if member is None or member.id.boot < to.boot:
            return Outcome.NOT_A_MEMBER
        if member.id != to:
            return Outcome.GONE
        full = self._letters >= LETTERS_MAX or self._bytes + len(payload) > BYTES_MAX
        if full or len(self._posted.get(to, ())) >= LETTERS_TO_ONE_MAX:
            return Outcome.BUSY
        self._host.meet(to, member.address)
        return None

    def _advance(self, to: NodeId) -> None:
        """Send what may travel now and does not, or came too early."""
        after = 0
        for letter in list(islice(self._posted.get(to, {}).values(), WINDOW)):
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
        back = self._host.address if len(letter.payload) >= BACK_FROM_BYTES else None
        self._host.send(letter.to, Letter(letter.seq, after, letter.payload, back))

    def _before(self, letter: Posted) -> int:
        before = 0
        for seq in self._posted[letter.to]:
            if seq == letter.seq:
                break
            before = seq
        return before

    def _on_timer(self, letter: Posted) -> None:
        letter.timer = None
        if self._host.now < letter.deadline:
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
        if outcome is not None:
            self._host.send(source, Receipt(message.seq, outcome))

    def _on_receipt(self, source: NodeId, message: Receipt) -> None:
        letter = self._posted.get(source, {}).get(message.seq)
        if letter is None or letter.tries == 0:
            self.counts["late"] += 1
        elif message.outcome in ANSWERS:
            self._finish(letter, Outcome(message.outcome))
        elif message.outcome == Outcome.FULL:
            letter.refused = True
        elif message.outcome == Outcome.EARLY:
            letter.early = True
        else:
            self.counts["malformed"] += 1

    def _on_membership(self, event: MembershipEvent) -> None:
        """A removal ends what is under way, a successor too; a suspicion does not (F15)."""
        life = event.member.id
        if isinstance(event, Failed | Left):
            member = self._membership.get(life.name)
            if member is None or member.id != life:  # else another membership of the same life goes on
                self._give_up(life, Outcome.NOT_A_MEMBER)
        elif isinstance(event, Joined):
            for former in [each for each in self._posted if each.name == life.name and each.boot < life.boot]:
                self._give_up(former, Outcome.GONE)

    def _give_up(self, to: NodeId, outcome: Outcome) -> None:
        letters = list(self._posted.get(to, {}).values())
        for letter in letters:
            self._take_out(letter)
        for letter in letters:
            self._end(letter, outcome)

    def _finish(self, letter: Posted, outcome: Outcome) -> None:
        self._take_out(letter)
        self._advance(letter.to)
        self._end(letter, outcome)

    def _take_out(self, letter: Posted) -> None:
        queue = self._posted[letter.to]
        del queue[letter.seq]
        if not queue:
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
