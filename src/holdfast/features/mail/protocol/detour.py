"""The other way of a letter: when it goes by the overlay as well, and how its receipt comes back.  Spec: views D30, D31; docs/mail.md.

Each letter goes directly, and again until its receipt comes. It goes by the overlay as well, under the same number, while the direct way is
silent: that is so once ``FAIR_TRIES`` tries of a letter got no answer and no other letter has got one since. A letter that is carried is of
a type of its own. So its receiver answers on the way on which it came, and a receipt of the plain type proves that the direct way works.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import inf

from holdfast.features.mail.protocol.messages import CarriedLetter, CarriedReceipt, Outcome, Receipt
from holdfast.features.mail.protocol.posted import Posted
from holdfast.host import Carried, Host, NodeId
from holdfast.kit.overlay import Overlay

FAIR_TRIES = 2  # the third one, 0.6 s after the first, is carried as well: longer than round trips are, and than one loss takes to mend
WAYS_MAX = 1024  # direct ways remembered; one that is forgotten costs a letter 0.6 s if it is silent
CARRIED_MAX = 1024  # letters on the overlay at a time: a quarter of what views take from one agent, the rest is for other machines
CARRIED_BYTES_MAX = 8 << 20  # of payload in them, because views keep a copy: as many letters of 8 KiB
ANSWERS_MAX = 1024  # receipts on the overlay at a time: peers cause them, and shall not use up what letters of ours need

NOT_SENT = (Carried.NOT_IN_VIEW, Carried.BUSY)


class Way:
    """The direct way to one life, for letters of one kind of size."""

    __slots__ = ("heard_at", "silent")

    def __init__(self) -> None:
        self.silent = False
        self.heard_at = -inf  # the last receipt


class Detour:
    """Decides what one node sends by the overlay, and keeps count of it."""

    def __init__(self, host: Host, overlay: Overlay, counts: Counter[str]) -> None:
        self._host, self._overlay, self._counts = host, overlay, counts
        self._ways: dict[tuple[NodeId, bool], Way] = {}  # the one that was used last is the last one
        self._copies = 0
        self._letters = self._answers = self._bytes = 0  # on the overlay now

    def after_try(self, letter: Posted, after: int) -> None:
        """The letter is tried on the direct way once more, and its receiver is in the view."""
        if self._is_silent(letter) and not letter.carrying:
            self._carry(letter, after)

    def on_direct_receipt(self, letter: Posted, outcome: int) -> None:
        """``outcome`` is what the receiver says."""
        letter.unanswered = 0
        if self._overlay.view is None or outcome == Outcome.EARLY:
            return  # The letter before this one may be stuck all the same.
        way = self._way(letter)
        way.silent, way.heard_at = False, self._host.now

    def answer(self, to: NodeId, receipt: Receipt) -> None:
        """The receipt of a letter that was carried here: back by the overlay, directly where that does not reach the sender."""
        if not self._overlay.reaches(to) or self._answers >= ANSWERS_MAX:
            self._host.send(to, receipt)
            return
        self._answers += 1
        self._counts["answers_carried"] += 1
        self._overlay.carry(to, CarriedReceipt(receipt.seq, receipt.outcome), partial(self._on_answered, to, receipt))

    def forget(self, life: NodeId) -> None:
        """That life is over."""
        for may_be_streamed in (False, True):
            self._ways.pop((life, may_be_streamed), None)

    def _is_silent(self, letter: Posted) -> bool:
        way = self._way(letter)
        if letter.unanswered >= FAIR_TRIES and way.heard_at <= letter.tried_at:
            way.silent = True
        return way.silent

    def _way(self, letter: Posted) -> Way:
        key = letter.to, letter.may_be_streamed
        way = self._ways.pop(key, None) or Way()
        if len(self._ways) >= WAYS_MAX:
            del self._ways[next(iter(self._ways))]
        self._ways[key] = way
        return way

    def _carry(self, letter: Posted, after: int) -> None:
        if self._letters >= CARRIED_MAX or self._bytes + len(letter.payload) > CARRIED_BYTES_MAX:
            self._counts["carried_later"] += 1
            return
        self._letters += 1
        self._bytes += len(letter.payload)
        self._counts["carried"] += 1
        self._copies += 1
        letter.carrying = self._copies
        copy = CarriedLetter(letter.seq, after, letter.payload, self._host.address)
        self._overlay.carry(letter.to, copy, partial(self._on_carried, letter, letter.carrying))

    def _on_carried(self, letter: Posted, copy: int, became: Carried) -> None:
        """The receipt ends the letter, not this word. Until the receipt comes, the next try may be carried again."""
        self._letters -= 1
        self._bytes -= len(letter.payload)
        self._counts[f"overlay_{became.name.lower()}"] += 1
        if letter.carrying == copy:
            letter.carrying = 0

    def _on_answered(self, to: NodeId, receipt: Receipt, became: Carried) -> None:
        self._answers -= 1
        if became in NOT_SENT:
            self._host.send(to, receipt)
