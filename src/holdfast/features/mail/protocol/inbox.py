"""The receiving side of mail: each letter at most once, in the order of its sender.  docs/mail.md has the argument.

One number per sender's life is enough. A letter is dealt with if its number is above all that were dealt with, and if no letter is missing
that the sender still wants delivered before it. So whatever is late, doubled or overtaken is either the next one or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from holdfast.bounds import MEMBERS_MAX
from holdfast.features.mail.protocol.messages import Letter, Outcome
from holdfast.host import Host, Membership, NodeId
from holdfast.kit.overlay import Overlay

PAYLOAD_BYTES_MAX = 32 * 1024
WINDOW = 16  # letters to one receiver under way: 16 x 32 KiB fills a stream, and no receiver must remember more receipts
SENDERS_MAX = MEMBERS_MAX  # lives remembered; a full table refuses, it never forgets a life that may write again
# Seconds of silence of a sender that is in neither list nor view. No copy of a letter is under way so long after another one came: it is
# sent for 300 s at most, and a copy that the overlay carries takes up to 155 s more, at the slowest heartbeat (docs/mail.md).
FORGET_AFTER = 600.0
LATE_MAX = 1.0  # seconds; a sweep that comes later was stopped, and what waited for us may not be read yet (F10)

Deliver = Callable[[NodeId, bytes], Outcome]


class Sender:
    """What is remembered of one life that wrote to us."""

    __slots__ = ("done", "heard_at", "recent")

    def __init__(self) -> None:
        self.done = 0  # the highest number that was dealt with
        self.recent: dict[int, Outcome] = {}  # receipts of the last ones: theirs may be lost, and asked for again
        self.heard_at = 0.0


class Inbox:
    """The senders of one node, and what was done with their letters."""

    def __init__(self, host: Host, membership: Membership, deliver: Deliver, counts: Counter[str], overlay: Overlay) -> None:
        self._host, self._membership, self._deliver, self._counts, self._overlay = host, membership, deliver, counts, overlay
        self._senders: dict[NodeId, Sender] = {}

    def __len__(self) -> int:
        return len(self._senders)

    def take(self, source: NodeId, letter: Letter) -> Outcome | None:
        """What the receipt says; None: the sender does not wait for one, or cannot be remembered."""
        sender = self._senders.get(source)
        if sender is None:
            if len(self._senders) >= SENDERS_MAX:
                self._counts["table_full"] += 1
                return None
            sender = self._senders[source] = Sender()
        sender.heard_at = self._host.now
        if letter.seq <= sender.done:
            self._counts["duplicate"] += 1
            return sender.recent.get(letter.seq)
        if letter.after > sender.done:
            self._counts["early"] += 1
            return Outcome.EARLY
        outcome = Outcome.TOO_LARGE if len(letter.payload) > PAYLOAD_BYTES_MAX else self._deliver(source, letter.payload)
        if outcome is not Outcome.FULL:  # That is a "not yet": the sender comes again while it has time.
            self._deal_with(sender, letter.seq, outcome)
        return outcome

    def sweep(self) -> None:
        """Forget lives that are not listed, not in the view and not heard."""
        if self._host.late > LATE_MAX:
            return
        listed = {member.id for member in self._membership.members()}
        oldest = self._host.now - FORGET_AFTER
        silent = [life for life, sender in self._senders.items() if sender.heard_at < oldest and life not in listed]
        for life in [life for life in silent if not self._overlay.reaches(life)]:
            del self._senders[life]

    @staticmethod
    def _deal_with(sender: Sender, seq: int, outcome: Outcome) -> None:
        sender.done = seq
        sender.recent[seq] = outcome
        if len(sender.recent) > WINDOW:
            del sender.recent[next(iter(sender.recent))]
