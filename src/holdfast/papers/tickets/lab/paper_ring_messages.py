"""What the processes of ``PaperRing`` say to each other, and the facts they tell a checker.

Spec: tickets 5.10; paper 001, Algorithms 3 to 5. Messages have the paper's names. ``serial`` names one send whose status is waited for:
"connection oriented" communication tells a sender within delta whether its message arrived.
"""

from __future__ import annotations

from holdfast.events import Internal
from holdfast.host import Message

Names = tuple[str, ...]


class Cjoin(Message, frozen=True, tag=210):
    """CJOIN: may I become a coordinator?"""


class AckCjoin(Message, frozen=True, tag=211):
    """ACKCJOIN: ticket t is yours, your successor owns j."""

    serial: int
    predecessors: Names  # R, which becomes L_p
    t: int
    j: int
    view: tuple[tuple[int, str], ...]  # Cview


class Reject(Message, frozen=True, tag=212):
    """REJECT: not here, not now."""


class Alive(Message, frozen=True, tag=213):
    """ALIVE: to the 2k + 1 closest successors, every round."""


class Update(Message, frozen=True, tag=214):
    """UPDATE: these are your 2k + 1 predecessors."""

    serial: int
    predecessors: Names  # R


class Exclude(Message, frozen=True, tag=215):
    """EXCLUDE: I want to become your predecessor."""

    serial: int


class AckExclude(Message, frozen=True, tag=216):
    """ACKEXCLUDE: here are my predecessors."""

    serial: int
    predecessors: Names  # L_q


class ReqCoord(Message, frozen=True, tag=217):
    """REQCOORD: may I coordinate what lies between my ticket i and ticket j? E_pq are those who own something there."""

    serial: int
    i: int
    j: int


class AckCoord(Message, frozen=True, tag=218):
    """ACKCOORD: I am not one of them."""

    serial: int


class Status(Message, frozen=True, tag=219):
    """STATUS is OK: your message has arrived."""

    serial: int


class PrCast(Message, frozen=True, tag=220):
    """The news that a process became a coordinator."""

    ticket: int


class Proceeded(Internal, frozen=True):
    """A round began, and enough ALIVE messages had come: the process goes on acting."""


class ArcChanged(Internal, frozen=True):
    """A process coordinates other tickets than before."""

    i: int
    j: int


class Acknowledged(Internal, frozen=True):
    """Enough have acknowledged an exclusion: the process is temporary coordinator."""

    excluded: Names  # E_pq
    successor: str  # q
    rounds: int  # TempRounds


class Disconnected(Internal, frozen=True):
    """ThinkIamDisconnected: the process has left the core."""

    why: str
