"""What must hold of mail at every step.  Spec: foundation F3 (one life); docs/mail.md (at most once, in order, what outcomes say)."""

from __future__ import annotations

from holdfast.events import Event, Internal
from holdfast.features.mail.protocol.messages import Outcome
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

CALM = b"calm"  # how letters begin that are posted when nothing goes wrong


class LetterPosted(Internal, frozen=True):
    """A client of this node hands over a letter; no two have the same payload."""

    to: NodeId
    payload: bytes
    timeout: float


class LetterDelivered(Internal, frozen=True):
    """A client of this node has a letter."""

    sender: NodeId
    payload: bytes


class LetterEnded(Internal, frozen=True):
    """The client who handed it over was told what became of it."""

    payload: bytes
    outcome: Outcome


class RightLife(Checker):
    """F3: what is delivered was posted like this, by that life, and to this life."""

    name = "F3 right-life"

    def __init__(self) -> None:
        self._posted: dict[bytes, tuple[NodeId, NodeId]] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, LetterPosted):
            self._posted[event.payload] = host.me, event.to
        elif isinstance(event, LetterDelivered) and self._posted.get(event.payload) != (event.sender, host.me):
            self.fail(f"{host.me} got {event.payload[:20]!r} from {event.sender}; posted was {self._posted.get(event.payload)}")


class AtMostOnce(Checker):
    """No letter is delivered twice."""

    name = "at-most-once"

    def __init__(self) -> None:
        self._delivered: set[bytes] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, LetterDelivered):
            if event.payload in self._delivered:
                self.fail(f"{host.me} got {event.payload[:20]!r} twice")
            self._delivered.add(event.payload)


class InOrder(Checker):
    """From one life to another, letters are delivered in the order in which they were posted."""

    name = "in-order"

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}
        self._last: dict[tuple[NodeId, NodeId], int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, LetterPosted):
            self._number[event.payload] = len(self._number)
        elif isinstance(event, LetterDelivered):
            pair, number = (event.sender, host.me), self._number[event.payload]
            if number < self._last.get(pair, -1):
                self.fail(f"{host.me} got {event.payload[:20]!r} of {event.sender} after a later one")
            self._last[pair] = number


class OutcomesAreTrue(Checker):
    """QUEUED was delivered; what certainly did not arrive never does; every letter has one outcome."""

    name = "outcomes-are-true"

    def __init__(self) -> None:
        self._delivered: set[bytes] = set()
        self._ended: dict[bytes, Outcome] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, LetterDelivered):
            self._delivered.add(event.payload)
            outcome = self._ended.get(event.payload)
            if outcome is not None and not outcome.may_have_arrived:
                self.fail(f"{host.me} got {event.payload[:20]!r}, whose sender was told {outcome.name}")
        elif isinstance(event, LetterEnded):
            self._on_ended(host, event)

    def _on_ended(self, host: LabHost, event: LetterEnded) -> None:
        if event.payload in self._ended:
            self.fail(f"{host.me} was told twice what became of {event.payload[:20]!r}")
        self._ended[event.payload] = event.outcome
        delivered = event.payload in self._delivered
        if event.outcome is Outcome.QUEUED and not delivered:
            self.fail(f"{host.me} was told QUEUED of {event.payload[:20]!r}, which nobody got")
        if delivered and not event.outcome.may_have_arrived:
            self.fail(f"{host.me} was told {event.outcome.name} of {event.payload[:20]!r}, which was delivered")


class AnsweredInTime(Checker):
    """Every letter ends within its time; of a sender that is stopped itself, ``slack`` later."""

    name = "answered-in-time"

    def __init__(self, slack: float) -> None:
        self._slack = slack
        self._open: dict[NodeId, dict[bytes, float]] = {}  # life -> letter -> when it must have ended, on its own clock

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, LetterPosted):
            self._open.setdefault(host.me, {})[event.payload] = host.now + event.timeout + self._slack
        elif isinstance(event, LetterEnded):
            del self._open[host.me][event.payload]

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or not host.running:
            return
        for payload, end in self._open.get(host.me, {}).items():
            if host.now > end:
                self.fail(f"{host.me} waits for {payload[:20]!r}, {host.now - end + self._slack:g} s after its time")
            break  # The first was posted first; a later one with a shorter time is found when it is the first.


class CalmLetters(Checker):
    """What is posted in calm, and says so, is queued."""

    name = "calm-letters"

    def __init__(self) -> None:
        self.posted: dict[bytes, Outcome | None] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, LetterPosted) and event.payload.startswith(CALM):
            self.posted[event.payload] = None
        elif isinstance(event, LetterEnded) and event.payload in self.posted:
            self.posted[event.payload] = event.outcome
            if event.outcome is not Outcome.QUEUED:
                self.fail(f"{host.me} was told {event.outcome.name} of {event.payload!r}, posted in calm")

    def missing(self) -> str:
        open_letters = [payload.decode() for payload, outcome in self.posted.items() if outcome is None]
        return f"nothing became of {open_letters[0]!r}" if open_letters else ""
