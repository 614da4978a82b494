"""Letters of ours that nothing has become of yet, by receiver.  Spec: views D31; docs/mail.md (order)."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.mail.protocol.messages import Outcome
from holdfast.host import NodeId, Timer

BACK_FROM_BYTES = 512  # payloads from here on may travel by stream, whatever sealing and names add to them

Done = Callable[[Outcome], None]


class Posted:
    """One letter."""

    __slots__ = ("carrying", "deadline", "done", "early", "payload", "refused", "seq", "timer", "to", "tried_at", "tries", "unanswered")

    def __init__(self, seq: int, to: NodeId, payload: bytes, deadline: float, done: Done) -> None:
        self.seq, self.to, self.payload, self.deadline, self.done = seq, to, payload, deadline, done
        self.tries = 0
        self.tried_at = 0.0  # the last of them
        self.unanswered = 0  # tries since it last got a receipt on the direct way
        self.carrying = 0  # names the copy of it that the overlay carries; 0: none
        self.early = False  # the receiver misses one before it: send again as soon as that one is dealt with
        self.refused = False  # the last word was FULL
        self.timer: Timer | None = None

    @property
    def may_be_streamed(self) -> bool:
        """The direct way of such a letter is another one: a stream may be stuck where datagrams pass (views D13)."""
        return len(self.payload) >= BACK_FROM_BYTES


class Receiver:
    """One life, while letters for it are under way."""

    __slots__ = ("in_view", "left", "letters")

    def __init__(self) -> None:
        self.letters: dict[int, Posted] = {}  # in the order in which they were handed over
        self.in_view = False  # the view had it, at some time since then
        self.left = False  # it said goodbye to the group
