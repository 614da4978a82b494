"""What the baselines of fast detection say to each other: heartbeats to every peer, and Omega.  Spec: fast-detection,
"Reference reconstruction of Fig. 3".
"""

from __future__ import annotations

from typing import ClassVar

from holdfast.bounds import Growing, Number, Seconds
from holdfast.host import Message


class Heartbeat(Message, frozen=True, tag=48):
    """m_i: I am alive; the index names the interval of my clock in which I said so. Addressed to a life, never to an address alone."""

    seq: Number  # i
    after: Seconds  # seconds between sigma_i = i t_itv and its leaving: more than nothing if its sender started, or was stopped, in between


class Ok(Message, frozen=True, tag=49):
    """(OK, r), with the index that Figure 4 gives it: the candidate of round r is alive."""

    greeting: ClassVar[bool] = True  # the list has names and addresses; which life is there is learned by talking
    round: Growing  # r
    seq: Number  # counts the OKs of this round from 1, so that one that came twice is one


class Start(Message, frozen=True, tag=50):
    """(START, r): round r has begun, or you are behind."""

    greeting: ClassVar[bool] = True
    round: Growing  # r


class Hello(Message, frozen=True, tag=51):
    """I watch you; send your heartbeats to this life of me."""

    greeting: ClassVar[bool] = True
