"""What detectors and elections say to each other.  Spec: fast-detection 3 and "Reference reconstruction of Fig. 3"."""

from __future__ import annotations

from typing import ClassVar

from holdfast.host import Message


class Heartbeat(Message, frozen=True, tag=48):
    """I am alive; the index names the interval of my clock in which I said so."""

    greeting: ClassVar[bool] = True  # the list has names and addresses; which life is there is learned by talking
    seq: int


class Ok(Message, frozen=True, tag=49):
    """(OK, r): the candidate of round r is alive."""

    greeting: ClassVar[bool] = True
    round: int  # r


class Start(Message, frozen=True, tag=50):
    """(START, r): round r has begun, or you are behind."""

    greeting: ClassVar[bool] = True
    round: int  # r
