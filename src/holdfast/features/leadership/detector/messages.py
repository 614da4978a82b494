"""What detectors and candidates say to each other.  Spec: fast-detection 3."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.bounds import Bits32, Growing, Index, Label, Name, Number, Ratio, Seconds, Small
from holdfast.host import Message

Some = Meta(max_length=256)  # more do not fit a datagram; 64 is what leadership takes


# Fast detection and leadership (Figures 1, 2 and 4). The life of a sender is in the envelope. Most are greetings, because seats and
# fixed voters are reached at their addresses, whether or not their life is known.


class Lead(Message, frozen=True):
    """One leadership that a heartbeat speaks for. Over agreed views there is exactly one, with the name ""."""

    name: Label
    view: Number  # 0 with seats (D17b)
    round: Growing
    leading: bool  # holds it, or is only its candidate
    length: Seconds  # L: the promise that is asked for, in seconds


class WatchedOk(Message, frozen=True, tag=52):
    """WATCHED-OK: heartbeat m_i of the watched to its monitors. Many names are spread over pages of one seq and one stamp."""

    greeting: ClassVar[bool] = True
    seq: Number  # i: the interval of the watched's clock in which it left
    stamp: Number  # grows with every heartbeat, repeats included; it comes back in MONITOR-OK, and names a send time
    leads: Annotated[tuple[Lead, ...], Some]
    among: Annotated[tuple[Name, ...], Some]  # K: the monitors the watched believes alive, never itself; on page 0 only
    common: Ratio  # c: the common-cause loss as the watched measured it
    after: Seconds = 0.0  # seconds between sigma_i and its leaving: a repeat, or the first of a term, is off the grid
    page: Small = 0
    pages: Small = 1


class Granted(Message, frozen=True):
    """What one voter says to one leadership of a heartbeat."""

    name: Label
    view: Number
    round: Growing  # as asked
    grant: bool
    wait: Seconds = 0.0  # refused: seconds until the promise to another life ends; 0: time will not help
    number: Growing = 0  # the recorded round: who is refused learns what to go beyond
    era: Number = 0  # of the seat that answers


class MonitorOk(Message, frozen=True, tag=53):
    """MONITOR-OK: answers one page of a heartbeat; also said at a missed freshness point, so that the watched keeps us in K."""

    seq: Index  # of the heartbeat that is answered, or that was missed
    stamp: Index  # echoed; -1 at a missed freshness point
    answers: Annotated[tuple[Granted, ...], Some]
    missed: Bits32  # bit j set: heartbeat seq - 1 - j never arrived here (D10); 32 of them


class StartRound(Message, frozen=True, tag=54):
    """START: this round has begun, or you are behind."""

    greeting: ClassVar[bool] = True
    name: Label
    view: Number
    round: Growing
    watched: Name = ""  # whom its sender expects to lead it; "": it follows from the round
    boot: Growing = 0  # the life that is expected; 0: any


class DidYouMissToo(Message, frozen=True, tag=55):
    """DID-YOU-MISS-TOO: have you missed this heartbeat (D4: it has an index), or, slow, do you miss the watched now (D21)?"""

    greeting: ClassVar[bool] = True
    watched: Name
    boot: Growing  # the life that is missed; 0: its asker never heard one
    name: Label
    view: Number
    round: Growing
    seq: Index  # -1: its asker never heard one
    nonce: Number  # names one ballot of one life of its asker
    slow: bool = False


class VoteKind(IntEnum):
    """What a monitor knows of one heartbeat."""

    MISSED = 0  # I-MISSED-TOO
    HAVE = 1  # I-DIDNOT-MISS
    UNHEARD = 2  # in this term, but the watched was never heard (silent in the paper)


class Vote(Message, frozen=True, tag=56):
    """The answer to DID-YOU-MISS-TOO. All but the last three are its own words."""

    watched: Name
    view: Number
    round: Growing
    seq: Index
    nonce: Number
    kind: VoteKind
    p: Ratio  # the voter's own upper limit of the loss on its link from the watched (D8)
    last: Index = -1  # the newest index it holds


class Resign(Message, frozen=True, tag=57):
    """RESIGN: the sender gives this leadership up; the promise to it may end now."""

    greeting: ClassVar[bool] = True
    name: Label
    view: Number
    round: Growing
