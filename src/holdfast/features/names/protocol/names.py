"""Names: is there another process of our name?  Spec: foundation F1, F5, F6; docs/decisions.md H56.

A name is one process's. A starting agent asks all agents that it can greet which other lives of its name they have heard of, and where;
then it asks there. A life that answers lives, and of two one must go: the one that is still starting, or else the one with the higher boot.
They tell each other how far they are, so exactly one of them goes. A life that is silent is over, as far as can be known; if its boot was
above ours, our wall clock went back.

No agent goes on one word alone: a life that is said to have our name is asked where it listens, under a serial that was drawn, and has to
answer (H175).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from holdfast.bounds import MEMBERS_MAX, is_beyond
from holdfast.events import Joined, MembershipEvent
from holdfast.features.names.protocol.messages import Known, Sighting, WhoIs
from holdfast.host import Address, Host, Membership, Message, NodeId, Timer, fingerprint, only
from holdfast.kit.phase import Call, Questions

ASK_EVERY = 0.25  # seconds
# A question to an address takes four messages, of which each may be lost (F3: greeting, life, greeting, answer). With 5 % loss a living
# process stays silent to six questions in 5 of 100,000 starts, and such a conflict is found when the member list shows it.
TRIES = 6
# Seconds between two looks into the member list, because an event may have come while a question was open; and between two questions to
# those who never answered, because an agent that was cut off from them at its start has its name on trust.
LOOK_PERIOD = 10.0
ASKED_MAX = 32  # addresses in one inquiry; half of F17's, because a seed list and what the seeds say come together
NAMES_MAX = MEMBERS_MAX  # names remembered, as many as a node keeps addresses for
ADDRESSES_MAX = 4  # per name: a name that lived at more places lately is a name that is handed around
BOOT_MAX = 1 << 48  # wall-clock milliseconds until the year 10889
HOST_CHARS_MAX = 255
TOLD_MAX = 64  # places of other lives of our own name that are kept in mind
DRAWN_BITS = 52  # of a serial that only the asked life can know


class Sightings:
    """Where lives of each name were, as far as this process heard: from the member list, and from those who asked."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[Address, int]] = {}  # name -> address -> highest boot

    def __len__(self) -> int:
        return len(self._by_name)

    def put(self, name: str, boot: int, address: Address) -> None:
        places = self._by_name.pop(name, {})
        if len(self._by_name) >= NAMES_MAX:
            del self._by_name[next(iter(self._by_name))]
        self._by_name[name] = places
        boot = max(boot, places.pop(address, 0))
        if len(places) >= ADDRESSES_MAX:
            del places[next(iter(places))]
        places[address] = boot

    def of(self, name: str) -> tuple[Sighting, ...]:
        return tuple(Sighting(boot, address) for address, boot in self._by_name.get(name, {}).items())


class Names:
    """Asks at the start, and whenever the member list shows another life of our name; answers all that ask.

    One of three is called: ``clear()``, the name is ours; ``conflict(life, address)``, another process has it and this one must go;
    ``behind(boot)``, start again with a higher boot than this. After ``clear`` there may still be a ``conflict`` and, when a life answers
    who was silent at the start, a ``behind``; after these two there is nothing more.
    """

    handles = (WhoIs, Known)

    def __init__(
        self,
        host: Host,
        membership: Membership,
        greeted: Sequence[Address] | None,
        *,
        clear: Callable[[], None],
        conflict: Callable[[NodeId, Address], None],
        behind: Callable[[int], None],
        kind: str = "",
    ) -> None:
        """``greeted``: whom to ask; None if that is not known yet and ``greet`` will say. ``kind`` of the membership: all agents of a
        group have the same, and those that do not are told so by the first question that they ask or answer (gossip D17)."""
        self.fingerprint = fingerprint(membership=kind) if kind else b""
        self._host, self._membership, self._greeted = host, membership, greeted
        self._say_clear, self._say_conflict, self._say_behind = clear, conflict, behind
        self.is_clear = False
        self._over = False  # conflict or behind was said, or we were stopped: nothing more is asked
        self._sightings = Sightings()
        self._questions = Questions()
        self._calls: dict[Address, Call] = {}  # open now
        self._proof, self._proving = Questions(), dict[Address, Call]()  # asked for a proof that they have our name
        self._asked: dict[Address, None] = {}  # in this inquiry
        self._told: dict[Address, int] = {}  # where other lives of our name were seen, with their boots
        self._todo: dict[Address, None] = {}  # asked in the next turn
        self._unheard: dict[Address, None] = {}  # greeted, and never answered
        self._begin: Timer | None = None  # which is then
        self._begun = False  # we know whom to ask, and asked: before that no name is clear
        self._look: Timer | None = None
        self.counts: Counter[str] = Counter()  # asked, answered, silent, malformed, too_many, others, unproved
        membership.subscribe(only(self._on_membership, Joined))

    def start(self) -> None:
        self._look = self._host.after(LOOK_PERIOD, self._on_look)
        if self._greeted is not None:
            self.greet(self._greeted)

    def greet(self, addresses: Iterable[Address]) -> None:
        """Ask these. Not inside this call: the caller may not be ready for an answer."""
        asked = dict.fromkeys(addresses)
        self._todo.update(asked)
        self._unheard.update(asked)
        if self._begin is None and not self._over:
            self._begin = self._host.after(0.0, self._on_begin)

    def on_away(self, seconds: float) -> None:
        """Answers that waited are read first (F10), and each question goes on where it stood: a pause costs one try."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, WhoIs):
            self._on_who_is(source, message)
        else:
            assert isinstance(message, Known)
            if message.me != source:
                self.counts["malformed"] += 1
            else:
                self._questions.answer(message.serial, source, message)
                self._proof.answer(message.serial, source, message)

    def stop(self) -> None:
        self._over = True
        for timer in (self._begin, self._look):
            if timer is not None:
                timer.cancel()
        for call in (*self._calls.values(), *self._proving.values()):
            call.cancel()
        self._calls.clear()
        self._proving.clear()

    # Answering.

    def _on_who_is(self, source: NodeId, message: WhoIs) -> None:
        if not _plausible(message.address):
            self.counts["malformed"] += 1
            return
        member = self._membership.get(source.name)
        if member is not None:
            self._sightings.put(source.name, member.id.boot, member.address)
        others = tuple(each for each in self._sightings.of(source.name) if each != Sighting(source.boot, message.address))
        self._host.send(source, Known(message.serial, self._host.me, self.is_clear, others))
        # For the next who asks; two that start together find each other by it.
        if self._credible(source.boot):
            self._sightings.put(source.name, source.boot, message.address)
        if source.name == self._host.me.name and not self._over:
            self._judge(source, message.address, clear=message.clear)

    # Asking.

    def _ask(self, addresses: Iterable[Address]) -> None:
        for address in addresses:
            if address in self._asked or address == self._host.address:
                continue
            if len(self._asked) >= ASKED_MAX:
                self.counts["too_many"] += 1
                continue
            self._asked[address] = None
            self.counts["asked"] += 1
            call = self._calls[address] = Call(
                self._host, self._questions, address, lambda serial: WhoIs(serial, self._host.address, self.is_clear),
                every=ASK_EVERY, tries=TRIES, done=partial(self._on_answer, address),
            )  # fmt: skip
            call.start()

    def _on_answer(self, address: Address, answer: Message | None) -> None:
        del self._calls[address]
        if answer is None:
            self.counts["silent"] += 1
        else:
            assert isinstance(answer, Known)
            self.counts["answered"] += 1
            self._unheard.pop(address, None)
            if self._credible(answer.me.boot):
                self._sightings.put(answer.me.name, answer.me.boot, address)
            self._hear(answer.others)
            if answer.me.name == self._host.me.name:
                self._judge(answer.me, address, clear=answer.clear)
        self._conclude()

    def _hear(self, others: tuple[Sighting, ...]) -> None:
        for other in others[:ADDRESSES_MAX]:
            if not (self._credible(other.boot) and _plausible(other.address)):
                self.counts["malformed"] += 1
            elif other != Sighting(self._host.me.boot, self._host.address):
                self._keep_in_mind(other.boot, other.address)
                self._ask([other.address])

    def _keep_in_mind(self, boot: int, address: Address) -> None:
        if address not in self._told and len(self._told) >= TOLD_MAX:
            self.counts["too_many"] += 1
        else:
            self._told[address] = max(boot, self._told.get(address, 0))

    def _judge(self, other: NodeId, address: Address, *, clear: bool) -> None:
        """Another process of our name lives. Both ends decide alike, whichever of them asked."""
        if self._over:
            return
        self.counts["others"] += 1
        if self._must_go(other, clear=clear):
            self._ask_for_proof(address)
        else:
            self._told.pop(address, None)  # It hears the same from us, and goes.

    def _must_go(self, other: NodeId, *, clear: bool) -> bool:
        """The one that is still starting; of two that are equally far, the one that started later."""
        return self._host.me.boot > other.boot if clear == self.is_clear else clear

    def _ask_for_proof(self, address: Address) -> None:
        """Any holder of the key can say that it has our name. A life that is there can also read what is sent there."""
        if address in self._proving or address == self._host.address:
            return
        if len(self._proving) >= ASKED_MAX:
            self.counts["too_many"] += 1
            return
        if not self._proving:
            self._proof = Questions(self._host.random.getrandbits(DRAWN_BITS))
        call = self._proving[address] = Call(
            self._host, self._proof, address, lambda serial: WhoIs(serial, self._host.address, self.is_clear),
            every=ASK_EVERY, tries=TRIES, done=partial(self._on_proof, address),
        )  # fmt: skip
        call.start()

    def _on_proof(self, address: Address, answer: Message | None) -> None:
        del self._proving[address]
        if isinstance(answer, Known) and answer.me.name == self._host.me.name:
            if self._must_go(answer.me, clear=answer.clear):
                self.stop()
                self._say_conflict(answer.me, address)
                return
        else:
            self.counts["unproved"] += 1
        self._conclude()

    def _credible(self, boot: int) -> bool:
        """A life that claims more would end all later starts of a name."""
        return 0 < boot < BOOT_MAX and not is_beyond(boot, self._host.wall)

    def _conclude(self) -> None:
        """All were asked."""
        if self._calls or self._proving:
            return
        self._asked.clear()
        if self._begun and self._begin is None and not self._over:
            self._settle()

    def _settle(self) -> None:
        # Who has its name already was not overtaken by a clone that came and went: then only a former life of its own counts.
        seen = {address: boot for address, boot in self._told.items() if not self.is_clear or address == self._host.address}
        highest = max(seen.values(), default=0)
        # The same boot elsewhere is another process that started in the same millisecond: to the network it is us.
        if highest >= self._host.me.boot:
            self.stop()
            self._say_behind(highest)
            return
        if not self.is_clear:
            self.is_clear = True
            self._say_clear()

    def _on_begin(self) -> None:
        self._begin, self._begun = None, True
        todo, self._todo = self._todo, {}
        self._ask(todo)
        self._conclude()

    # The member list.

    def _on_membership(self, event: MembershipEvent) -> None:
        member = event.member
        self._sightings.put(member.id.name, member.id.boot, member.address)
        if member.id.name == self._host.me.name:
            self._meet_other(member.id, member.address)

    def _meet_other(self, life: NodeId, address: Address) -> None:
        """At our own address it is a former life of this process: two cannot listen there."""
        if life != self._host.me and not self._over:
            self._hear((Sighting(life.boot, address),))
            self._conclude()  # Nothing is asked at our own address.

    def _on_look(self) -> None:
        self._look = self._host.after(LOOK_PERIOD, self._on_look)
        member = self._membership.get(self._host.me.name)
        if member is not None:
            self._meet_other(member.id, member.address)
        self._ask(self._unheard)


def _plausible(address: Address) -> bool:
    return 0 < address.port < 1 << 16 and 0 < len(address.host) <= HOST_CHARS_MAX and address.host.isprintable()
