"""What mail says: a letter, its receipt, and what can become of it.  Spec: foundation F3 (one life), views D30; docs/mail.md."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from holdfast.bounds import Number, Payload, Small
from holdfast.host import Address, Message


class Outcome(IntEnum):
    """What became of a letter. Only the first is success; ``may_have_arrived`` says what is certain about the others."""

    QUEUED = 1  # the receiver's agent has it, for a client that listens
    NOBODY = 2  # no client listens there
    FULL = 3  # the client's queue was full, as long as there was time
    TOO_LARGE = 4
    EARLY = 5  # between agents only: a letter before this one is missing
    TIMEOUT = 6  # no answer in time
    GONE = 7  # that life is over: its successor is a member, and gets nothing that was meant for it (F3)
    NOT_A_MEMBER = 8  # it is not in the member list, or was taken out of it meanwhile; never said on mere suspicion
    BUSY = 9  # this agent has too much mail under way; nothing was sent
    TRIPPED = 10  # it is not in the member list, and the view that had it gave it up meanwhile

    @property
    def may_have_arrived(self) -> bool:
        """The answer may have been lost where the letter was not."""
        return self not in {Outcome.NOBODY, Outcome.TOO_LARGE, Outcome.EARLY, Outcome.BUSY}


class Letter(Message, frozen=True, tag=256):
    """A payload for one life."""

    seq: Number  # grows with every letter of the sender's life, to any receiver; from 1
    after: Number  # the letter to the same receiver that must be dealt with before this one; 0: none is under way
    payload: Payload
    back: Address | None = None  # where receipts go: a stream's far port says nothing, so what may travel by stream says it itself


class Receipt(Message, frozen=True, tag=257):
    """What the receiver did with a letter."""

    seq: Number
    outcome: Small  # QUEUED, NOBODY, FULL, TOO_LARGE or EARLY


class CarriedLetter(Letter, frozen=True, tag=258):
    """The same letter under the same number, by the overlay: it is answered there. A type of its own, because a letter that goes directly
    stays as it was, to the byte."""

    carried: ClassVar[bool] = True


class CarriedReceipt(Receipt, frozen=True, tag=259):
    """The receipt of a letter that came by the overlay. It says nothing of the direct way."""

    carried: ClassVar[bool] = True
