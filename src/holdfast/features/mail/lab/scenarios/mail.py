"""Mail under mixed faults: at most once, to the life it was meant for, in order; in calm everything arrives.

Spec: foundation F3; docs/mail.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from holdfast.features.mail.lab.checkers import (
    CALM,
    AnsweredInTime,
    AtMostOnce,
    CalmLetters,
    InOrder,
    LetterDelivered,
    LetterEnded,
    LetterPosted,
    OutcomesAreTrue,
    RightLife,
)
from holdfast.features.mail.protocol.inbox import Deliver
from holdfast.features.mail.protocol.mail import Mail
from holdfast.features.mail.protocol.messages import Outcome
from holdfast.host import Address, Host, Machine, Membership, NodeId
from holdfast.kit.overlay import Overlay
from holdfast.kit.roster import Roster, listed
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 10.0  # of faults
BURST_INTERVAL = 0.4  # mean, for the whole group
BURST_MAX = 6  # letters of one client at once: order shows only where several travel
LARGE_SHARE = 0.1  # of the letters, which travel by stream
LARGE_BYTES = 3000
TIMEOUTS = (0.3, 6.0)
REFUSED_SHARE = 0.2  # of the letters find a full queue, and as many no listener, while things go wrong
HELLO_PERIOD = 0.5
PAUSE_MAX = 4.0
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
CALM_TIMEOUT = 8.0
# Greetings bring the lives together, then every letter of the last burst has its time.
SETTLE = STRAY_SECONDS + 4 * HELLO_PERIOD + CALM_TIMEOUT + 5.0
MENU = Menu(drift=0.01, duplicate=0.3, pause_seconds=PAUSE_MAX)
SPARED_SECONDS = 1.0  # two members always come back, after so long: no letter is without a receiver


class MailScenario(Scenario):
    """Two to five members of a fixed list, whose clients write to each other in small bursts."""

    name = "mail/pairs"
    title = "Letters between members under mixed faults: at most once, in order, never to another life"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(2, 5)))
        plan = draw_plan(random, names, SECONDS, MENU).sparing(random.sample(names, 2), SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, Link(Uniform(0.001, 0.05), loss=0.05))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        addresses = {name: Address(name, PORT) for name in setup.names}
        roster = Roster(host, listed(addresses), hello_period=HELLO_PERIOD)
        return [roster, self.make(host, roster, partial(receive, host))]

    def make(self, host: Host, membership: Membership, deliver: Deliver, overlay: Overlay | None = None) -> Mail:
        return Mail(host, membership, deliver, overlay)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [RightLife(), AtMostOnce(), InOrder(), OutcomesAreTrue(), AnsweredInTime(PAUSE_MAX + 1.0), CalmLetters()]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/letters")
        at = number = 0.0
        while at < setup.seconds:
            at += random.expovariate(1 / BURST_INTERVAL)
            sender, receiver = random.sample(setup.names, 2)
            for _ in range(random.randint(1, BURST_MAX)):
                number += 1
                size = LARGE_BYTES if random.random() < LARGE_SHARE else 0
                world.at(at, partial(post, world, sender, receiver, letter(int(number), size), random.uniform(*TIMEOUTS)))

    def unsettled(self, world: World, setup: Setup) -> str:
        """When all lives know each other, a burst is sent each way; every letter of it must be queued."""
        if world.now < setup.seconds + STRAY_SECONDS + 4 * HELLO_PERIOD:
            return "the last strays are still on the road"
        calm = next(checker for checker in world.checkers if isinstance(checker, CalmLetters))
        if not calm.posted:
            for sender in world.alive:
                for receiver in world.alive:
                    if sender is not receiver:
                        for number in range(BURST_MAX):
                            payload = CALM + f" {sender.me} {receiver.me} {number}".encode()
                            post(world, sender.me.name, receiver.me.name, payload, CALM_TIMEOUT)
        return calm.missing()


def letter(number: int, size: int) -> bytes:
    return b"letter %d " % number + bytes(size)


def receive(host: Host, sender: NodeId, payload: bytes) -> Outcome:
    """A client that sometimes is full and sometimes is not there, but never in calm."""
    if not payload.startswith(CALM):
        chance = host.random.random()
        if chance < 2 * REFUSED_SHARE:
            return Outcome.FULL if chance < REFUSED_SHARE else Outcome.NOBODY
    host.emit(LetterDelivered(sender, payload))
    return Outcome.QUEUED


def post(world: World, sender: str, receiver: str | NodeId, payload: bytes, timeout: float) -> None:
    """A client of that node writes to the life it knows, or to this one, if the process runs."""
    host = world.nodes[sender]
    if not host.running:
        return
    mail = host.node.use(Mail)
    life = receiver if isinstance(receiver, NodeId) else mail.addressee(receiver)
    if life is None:
        return

    def write() -> None:
        host.emit(LetterPosted(life, payload, timeout))
        mail.send(life, payload, timeout, lambda outcome: host.emit(LetterEnded(payload, outcome)))

    world.step(host, write)


SCENARIO = MailScenario()
