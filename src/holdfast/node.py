"""One node: runs machines under one identity, routes each message to the machine that owns its type.

Spec: foundation 3 (Node), F3 (one life), F4 (fingerprints), F10 (pauses), F17 (fan-out).

What a datagram passes on its way up: is it for this life, who owns its type, do both ends count with the same
numbers. What a message passes on its way down: where is that life, is this callback reaching too many peers.
A greeting goes to an address whose life is unknown. It is never acted upon: the receiver answers ``WrongLife``
and the greeting is sent again, addressed to that life. So nothing that was recorded can be told to a later life.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, TypeVar, cast

from msgspec import Meta

from holdfast.bounds import MEMBERS_MAX, Number, Small
from holdfast.drops import Drop, Drops
from holdfast.events import ConfigMismatch, Paused
from holdfast.host import FANOUT_MAX, Address, Host, Machine, Message, NodeId

T = TypeVar("T")
Handler = Callable[[NodeId, Message], None]
Transmit = Callable[[Address, int, bytes, Message], None]  # address, to life, fingerprint, message

FINGERPRINT_BYTES = 8
PEERS_MAX = MEMBERS_MAX  # addresses kept; the oldest goes first
GREETINGS_MAX = 4  # greetings kept per address until its life is known: a caller repeats itself anyway
GREETED_MAX = 256  # addresses with kept greetings
LIFE_BYTES = 6  # of the number that stands for a life; 48 bits stay exact in every language
TELL_AGAIN = 20.0  # seconds after which a peer is told again that its numbers are others; ``doctor`` asks for the last minute
TEXT_BYTES_MAX = 512  # a fingerprint as text, on the wire

Fingerprint = Annotated[bytes, Meta(max_length=TEXT_BYTES_MAX)]


class WrongLife(Message, frozen=True, tag=1):
    """You asked for another life; the envelope says which one is here (F3)."""

    asked: Number  # the life that was addressed, 0 for a greeting


class OtherFingerprint(Message, frozen=True, tag=2):
    """You count with other numbers than I do; here are mine (F4)."""

    type_tag: Small  # of the message that was dropped
    text: Fingerprint  # the machine's whole fingerprint
    answer: bool  # True: sent because you told me yours, do not answer again


class Route(NamedTuple):
    """Where messages of one type go."""

    handle: Handler
    fingerprint: bytes  # digest; b"" if nothing must match
    machine: Machine | None  # None: the node itself


class Node:
    """The machines of one life, and the rules every message obeys before it reaches one of them."""

    def __init__(self, host: Host, transmit: Transmit) -> None:
        self.host = host
        self.me = host.me
        self.drops: Drops = Drops()
        self._transmit = transmit
        self._machines: list[Machine] = []
        self._uses: dict[type[Any], Any] = {}  # the machine that was found for each interface
        self._routes: dict[type[Message], Route] = {}
        self.digests: dict[type[Message], bytes] = {}  # what the envelope of each type carries
        self._addresses: dict[NodeId, Address] = {}
        self._lives: dict[Address, NodeId] = {}
        self._greetings: dict[Address, deque[Message]] = {}
        self._leads: dict[Address, Address | None] = {}  # where the host of an address is a DNS name: what it stands for now
        self._newest: dict[str, NodeId] = {}  # per name, the newest life we were told of
        self._mismatches: dict[tuple[NodeId, int], int] = {}  # (peer, type tag) -> messages dropped so far
        self._told_at: dict[tuple[NodeId, int], float] = {}  # when it was last told our numbers
        self._heard_of: dict[NodeId, int] = {}  # how often a peer told us its numbers
        self._reported: dict[tuple[NodeId, str], str] = {}  # (peer, field) -> its value, as last emitted
        self.reached: list[Address] = []  # by the running callback; a host clears it before each (F17)
        self._passes: list[dict[type[Message], Handler]] = []  # given out by ``admits``
        self._equals: dict[type[Message], Handler] | None = None  # the one for nodes whose machines are as ours
        self._running = False
        self._life = -1  # what ``receive`` compares with: our life while we run, that of no process otherwise
        self.changes = 0  # machines that were added or removed while it ran
        self.on_machines: Callable[[], None] = _nothing  # for the host: ``types`` and ``digests`` have changed
        self._own(WrongLife, self._on_wrong_life)
        self._own(OtherFingerprint, self._on_other_fingerprint)

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(self._machines)

    @property
    def types(self) -> tuple[type[Message], ...]:
        """Every type that a machine here handles: what a codec must know."""
        return tuple(self._routes)

    @property
    def running(self) -> bool:
        return self._running

    def add(self, machine: Machine) -> None:
        """Route its messages to it. While the node runs, the machine starts at once; that belongs into a turn of the host."""
        assert len(machine.fingerprint) <= TEXT_BYTES_MAX
        assert not any(each is machine for each in self._machines)
        digest = _digest(machine.fingerprint)
        for kind in machine.handles:
            assert kind not in self._routes, f"{kind.__name__} already has an owner"
            self._routes[kind] = Route(machine.on_message, digest, machine)
            self.digests[kind] = digest
        self._machines.append(machine)
        self._uses.clear()
        if self._running:
            self._on_changed()
            machine.start()

    def remove(self, machine: Machine) -> None:
        """Stop it, if the node runs, and forget its routes: what peers still send to it is dropped and counted. Its timers are its own
        affair: ``stop`` cancels them."""
        at = next((at for at, each in enumerate(self._machines) if each is machine), None)
        assert at is not None, "a node removes what was added to it"
        if self._running:
            machine.stop()
        del self._machines[at]
        self._uses.clear()
        for kind in machine.handles:
            del self._routes[kind], self.digests[kind]
            for handlers in self._passes:
                handlers.pop(kind, None)
        if self._running:
            self._on_changed()

    def use(self, interface: type[T]) -> T:
        """The one machine that offers this narrow interface (Membership, Broadcast, Seats ...)."""
        known = self._uses.get(interface)
        if known is None:
            found = [machine for machine in self._machines if isinstance(machine, interface)]
            assert len(found) == 1, f"{len(found)} machines offer {interface.__name__}"
            known = self._uses[interface] = found[0]
        return cast(T, known)

    def start(self) -> None:
        assert not self._running
        self._running, self._life = True, life_of(self.me)
        for machine in self.machines:  # A copy: a machine that starts may add another one.
            self.reached.clear()
            machine.start()

    def stop(self) -> None:
        self._running, self._life = False, -1
        for handlers in self._passes:
            handlers.clear()
        self._equals = None
        for machine in reversed(self.machines):
            self.reached.clear()
            machine.stop()

    def begin_turn(self) -> None:
        """A timer callback is about to run: F17 counts from here."""
        self.reached.clear()

    def on_away(self, seconds: float) -> None:
        for machine in self.machines:
            self.reached.clear()
            machine.on_away(seconds)
        self.host.emit(Paused(seconds))

    def meet(self, peer: NodeId, address: Address) -> None:
        if peer.name != self.me.name:  # Word of another life of our own name is no reason to write to it.
            self._put_down(peer, address)

    def lead_to(self, place: Address, address: Address | None) -> None:
        """``place`` has a DNS name for its host; from now on it stands for ``address`` (None: for none that is known).
        The caller knows few places (the slots of the seats), so there is no limit here."""
        self._leads[place] = address

    def send(self, to: NodeId | Address, message: Message) -> None:
        # By type, not by look-up: as tuples an Address and a NodeId may be equal, and a peer chooses its own name and boot.
        address, life = (self._addresses.get(to), life_of(to)) if isinstance(to, NodeId) else self._greeted(to, message)
        if address is None:
            self.drops[Drop.NO_ADDRESS] += 1
            return
        reached = self.reached
        reached.append(address)
        if len(reached) > FANOUT_MAX and len(set(reached)) > FANOUT_MAX:
            reached.pop()
            self.drops[Drop.FANOUT] += 1
            return
        self._transmit(address, life, self.digests.get(type(message), b""), message)

    def receive(self, source: Address | None, sender: NodeId, life: int, fingerprint: bytes, message: Message) -> None:
        """One message that could be read. ``source`` is None where it says nothing (a stream's far port)."""
        route = self._routes.get(type(message))
        if route is None or route[1] != fingerprint or life != self._life or self._addresses.get(sender) != source:
            route = self._admitted(source, sender, life, fingerprint, message)
            if route is None:
                return
        self.reached.clear()
        route[0](sender, message)

    def hand_on(self, sender: NodeId, fingerprint: bytes, message: Message) -> None:
        """A message that another machine carried here for ``sender``, which said it to this life (views D30). The rules are those of
        ``receive``; where it came from says nothing of where its sender is."""
        assert type(message).carried
        route = self._admitted(None, sender, self._life, fingerprint, message)
        if route is not None:
            route[0](sender, message)

    def admits(self, source: Address, sender: NodeId, digests: Mapping[type[Message], bytes]) -> dict[type[Message], Handler]:
        """What ``receive`` hands on at once when it is addressed to this life: for a host that need not ask again for every
        message. Empty while ``sender`` was not heard from there; emptied when this node stops."""
        if not self._running or self._addresses.get(sender) != source:
            return {}
        if digests != self.digests:
            return self._pass_for(digests)
        if self._equals is None:
            self._equals = self._pass_for(digests)
        return self._equals

    def _pass_for(self, digests: Mapping[type[Message], bytes]) -> dict[type[Message], Handler]:
        handlers = {kind: route.handle for kind, route in self._routes.items() if route.fingerprint == digests.get(kind, b"")}
        for former in self._passes:
            if former == handlers:
                return former  # All who count as we do share one table.
        self._passes.append(handlers)
        return handlers

    @property
    def mismatched(self) -> dict[str, int]:
        """By name of the peer: how many of its messages were dropped because it counts with other numbers (F4), and how often it
        said that it dropped ours."""
        found: dict[str, int] = {}
        for peer, count in self._heard_of.items():
            found[peer.name] = found.get(peer.name, 0) + count
        for (peer, _), count in self._mismatches.items():
            found[peer.name] = found.get(peer.name, 0) + count
        return found

    def life_at(self, address: Address) -> NodeId | None:
        """The life that answered a greeting there; None: none did."""
        found = self.leads_to(address)
        return None if found is None else self._lives.get(found)

    def leads_to(self, address: Address) -> Address | None:
        """What ``send`` would use: ``lead_to`` may have said that it stands for another one, or for none."""
        return self._leads.get(address, address)

    def address_of(self, peer: NodeId) -> Address | None:
        return self._addresses.get(peer)

    def _put_down(self, peer: NodeId, address: Address) -> None:
        newest = self._newest.get(peer.name)
        if newest is None or newest.boot < peer.boot:
            # Former lives go first: otherwise restarts alone would push out peers that have been there all the time.
            if newest is not None:
                self._addresses.pop(newest, None)
            _remember(self._newest, peer.name, peer)
        _remember(self._addresses, peer, address)

    def _admitted(self, source: Address | None, sender: NodeId, life: int, fingerprint: bytes, message: Message) -> Route | None:
        """What ``receive`` could not wave through: the reasons to drop a message, one by one."""
        if not self._running:
            return None
        if sender == self.me:
            self.drops[Drop.REFLECTED] += 1
            return None
        if life != self._life:
            self._on_other_life(source, sender, life, message)
            return None
        route = self._routes.get(type(message))
        if route is None:
            self.drops[Drop.NO_OWNER] += 1
            return None
        if source is not None:
            self._put_down(sender, source)  # Also one of our own name, if it speaks to this life: whose name it is must be settled (F5).
        if fingerprint != route.fingerprint:
            self._on_mismatch(sender, message)
            return None
        return route

    def _on_changed(self) -> None:
        """Passes that were given out stay right for the types in them; what else arrives goes through ``receive``."""
        self.changes += 1
        self._equals = None
        self.on_machines()

    def _own(self, kind: type[Message], handle: Handler) -> None:
        self._routes[kind] = Route(handle, b"", None)

    def _greeted(self, to: Address, message: Message) -> tuple[Address | None, int]:
        """Where a message to an address goes, and to which life; only a greeting may go to an address without a life."""
        if self._leads:
            found = self.leads_to(to)
            if found is None:
                return None, 0
            to = found
        life = self._lives.get(to)
        if message.greeting:
            if life is not None:
                self._greetings.pop(to, None)  # What was said before has arrived or is lost; a later life shall not hear it.
            self._keep_greeting(to, message)
        elif life is None:
            return None, 0
        return to, 0 if life is None else life_of(life)

    def _keep_greeting(self, to: Address, message: Message) -> None:
        kept = self._greetings.get(to)
        if kept is None:
            if len(self._greetings) >= GREETED_MAX:
                del self._greetings[next(iter(self._greetings))]
            kept = self._greetings[to] = deque(maxlen=GREETINGS_MAX)
        if message not in kept:
            kept.append(message)

    def _on_other_life(self, source: Address | None, sender: NodeId, life: int, message: Message) -> None:
        if life == 0 and not message.greeting:
            self.drops[Drop.NOT_A_GREETING] += 1
            return
        self.drops[Drop.UNBOUND if life == 0 else Drop.WRONG_LIFE] += 1
        if source is None or isinstance(message, WrongLife):
            return  # Two nodes that tell each other "wrong life" would never stop.
        self._transmit(source, life_of(sender), b"", WrongLife(life))

    def _on_wrong_life(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, WrongLife)
        address = self._addresses.get(source)
        if address is None:
            return
        known = self._lives.get(address)
        if known is not None and known.name == source.name and known.boot > source.boot and message.asked != life_of(known):
            return  # A late word of a life that is over. But one that was asked for the later life, and is not it, came after it (F5).
        _remember(self._lives, address, source)
        for greeting in self._greetings.pop(address, ()):
            self._transmit(address, life_of(source), self.digests.get(type(greeting), b""), greeting)

    def _on_mismatch(self, sender: NodeId, message: Message) -> None:
        self.drops[Drop.WRONG_FINGERPRINT] += 1
        route = self._routes[type(message)]
        if route.machine is None:
            return
        key = sender, _tag(type(message))
        count = self._mismatches.get(key, 0) + 1
        _remember(self._mismatches, key, count)
        # The first, second, fourth, ...: what we say may be lost, and must not become a flood. And while it goes on, now and then.
        if count & (count - 1) == 0 or self.host.now >= self._told_at.get(key, 0.0) + TELL_AGAIN:
            _remember(self._told_at, key, self.host.now)
            self.send(sender, OtherFingerprint(key[1], route.machine.fingerprint, answer=False))

    def _on_other_fingerprint(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, OtherFingerprint)
        _remember(self._heard_of, source, self._heard_of.get(source, 0) + 1)
        text = next((r.machine.fingerprint for k, r in self._routes.items() if _tag(k) == message.type_tag and r.machine), b"")
        ours, theirs = _fields(text), _fields(message.text[:TEXT_BYTES_MAX])
        for field in sorted(ours.keys() | theirs.keys()):
            self._report(source, field, ours.get(field, ""), theirs.get(field, ""))
        if not message.answer:
            self.send(source, OtherFingerprint(message.type_tag, text, answer=True))

    def _report(self, peer: NodeId, field: str, ours: str, theirs: str) -> None:
        if ours != theirs and self._reported.get((peer, field)) != theirs:
            _remember(self._reported, (peer, field), theirs)
            self.host.emit(ConfigMismatch(peer, field, ours, theirs))


def life_of(node: NodeId) -> int:
    """The number that an envelope to this life carries (F3): of name and boot, because two processes that started in the same
    millisecond have the same boot, and what was meant for one must not be believed by the other. Never 0, below 2^53."""
    return _LIVES[node]


class _Lives(dict[NodeId, int]):
    """Of all nodes of this process, as many as one keeps addresses for. Half the memory of an ``lru_cache``, and as quick."""

    def __missing__(self, node: NodeId) -> int:
        digest = blake2b(f"{node.name}#{node.boot}".encode(), digest_size=LIFE_BYTES, person=b"holdfast life").digest()
        if len(self) >= PEERS_MAX:
            del self[next(iter(self))]
        life = self[node] = int.from_bytes(digest, "big") or 1
        return life


_LIVES = _Lives()


def _digest(fingerprint: bytes) -> bytes:
    return blake2b(fingerprint, digest_size=FINGERPRINT_BYTES).digest() if fingerprint else b""


def _tag(kind: type[Message]) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


def _fields(text: bytes) -> dict[str, str]:
    parts = text.decode("utf-8", "replace").split(";")
    return dict(part.split("=", 1) for part in parts if "=" in part)


def _nothing() -> None:
    """The host keeps nothing that depends on the machines."""


K = TypeVar("K")
V = TypeVar("V")


def _remember(table: dict[K, V], key: K, value: V) -> None:
    """Put it last; what was put longest ago goes first."""
    table.pop(key, None)
    if len(table) >= PEERS_MAX:
        del table[next(iter(table))]
    table[key] = value
