"""Link state: what every server says of its links and clients, and how old that is.  Spec: views 5.2, D5, D24.

Every moment here is on the own clock: the send time of a question of mine that was answered, less the age that the answerer counted up. So
no delay of any message makes anything look younger than it is (D24). What is older than ``lsa_max_age`` does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.messages import NEVER, Known, Listed, Lsa
from holdfast.host import Host, NodeId


class Held:
    """The newest LSA of one server."""

    __slots__ = ("_named", "fresh_at", "lsa")

    def __init__(self, lsa: Lsa, fresh_at: float) -> None:
        self.lsa = lsa
        self.fresh_at = fresh_at  # a moment on my clock at which it was its origin's present one; -inf: none is known
        self._named: dict[str, Listed] | None = None

    @property
    def version(self) -> tuple[int, int]:
        return self.lsa.origin.boot, self.lsa.seq

    def client(self, name: str) -> Listed | None:
        if self._named is None:
            self._named = {listed.life.name: listed for listed in self.lsa.clients}
        return self._named.get(name)


class Seen:
    """The highest number known of one server."""

    __slots__ = ("at", "life", "num")

    def __init__(self, life: NodeId, num: int, at: float) -> None:
        self.life, self.num = life, num
        self.at = at  # a moment on my clock at which it had that number, or an earlier one; -inf: none is known


class LinkState:
    """The database of one server, by slot. Its own LSA is in it."""

    def __init__(self, host: Host, config: ViewsConfig, slots: int, own: int) -> None:
        """``slots``: how many there are; what is said of others is passed over."""
        self._host, self._config, self._slots, self._own = host, config, slots, own
        self.held: dict[int, Held] = {own: Held(Lsa(own, host.me, 1, (), ()), inf)}
        self._seen: dict[int, Seen] = {}
        self.version = 0  # grows with every change of a content

    @property
    def mine(self) -> Lsa:
        return self.held[self._own].lsa

    def publish(self, up: tuple[NodeId, ...], clients: tuple[Listed, ...]) -> Lsa | None:
        """My new LSA; None: nothing has changed."""
        mine = self.mine
        if (mine.up, mine.clients) == (up, clients):
            return None
        self.held[self._own] = Held(Lsa(self._own, self._host.me, mine.seq + 1, up, clients), inf)
        self.version += 1
        return self.mine

    def known(self, num: int) -> tuple[Known, ...]:
        """For a pong: what I am and hold, ages counted to now. ``num`` is my own number."""
        mine = Known(self._own, self._host.me, self.mine.seq, 0.0, num, 0.0)
        return (mine, *(self._known(slot) for slot in sorted(self.held.keys() | self._seen.keys()) if slot != self._own))

    def take_known(self, asked_at: float, known: Iterable[Known]) -> tuple[int, ...]:
        """A pong to a question that I asked then. The slots of which it names newer LSAs than I hold."""
        wanted = []
        for entry in known:
            if not 0 <= entry.slot < self._slots or entry.slot == self._own or entry.life == self._host.me:
                continue
            if entry.num > 0:
                self._saw(entry.slot, entry.life, entry.num, asked_at - entry.num_age)
            if entry.seq > 0 and self._confirm(entry, asked_at - entry.age):
                wanted.append(entry.slot)
        return tuple(wanted)

    def take(self, lsa: Lsa) -> bool:
        """Store it if it is newer. How fresh it is says the former one (it was made after that moment), or the next pong."""
        held = self.held.get(lsa.slot)
        if held is not None and held.version >= (lsa.origin.boot, lsa.seq):
            return False
        former = -inf if held is None or held.lsa.origin != lsa.origin else held.fresh_at
        self.held[lsa.slot] = Held(lsa, former)
        self.version += 1
        return True

    def saw(self, slot: int, life: NodeId, num: int) -> None:
        """A proposal says so. It had that number after the moment at which it had the former one, so that moment stays."""
        seen = self._seen.get(slot)
        if seen is None or (seen.life.boot, seen.num) < (life.boot, num):
            self._seen[slot] = Seen(life, num, seen.at if seen is not None and seen.life == life else -inf)

    def fresh(self) -> dict[NodeId, Lsa]:
        """The LSAs that count now, by the life of their server."""
        oldest = self._host.now - self._config.lsa_max_age
        return {held.lsa.origin: held.lsa for _, held in sorted(self.held.items()) if held.fresh_at >= oldest}

    def fresh_slots(self) -> tuple[int, ...]:
        oldest = self._host.now - self._config.lsa_max_age
        return tuple(slot for slot, held in self.held.items() if held.fresh_at >= oldest)

    def is_fresh(self, slot: int, life: NodeId) -> bool:
        held = self.held.get(slot)
        return held is not None and held.lsa.origin == life and self._host.now - held.fresh_at <= self._config.lsa_max_age

    def has_number(self, life: NodeId, num: int) -> bool:
        """This server was lately known to be at that number, and at no higher one."""
        oldest = self._host.now - self._config.lsa_max_age
        return any(seen.life == life and seen.num == num and seen.at >= oldest for seen in self._seen.values())

    def newest_of(self, name: str) -> tuple[int, int]:
        """The highest (boot, attach) that another server's fresh LSA lists for a client of this name; (0, -1): none does."""
        found = (0, -1)
        for slot in self.fresh_slots():
            listed = self.held[slot].client(name) if slot != self._own else None
            if listed is not None:
                found = max(found, (listed.life.boot, listed.attach))
        return found

    def _known(self, slot: int) -> Known:
        held, seen, now = self.held.get(slot), self._seen.get(slot), self._host.now
        # A life in the answer has to be one life: of two that are known the newer one is spoken of.
        lives = [each for each in (held.lsa.origin if held else None, seen.life if seen else None) if each is not None]
        life = max(lives, key=lambda each: each.boot)
        of_lsa = held is not None and held.lsa.origin == life
        of_number = seen is not None and seen.life == life
        return Known(
            slot,
            life,
            held.lsa.seq if held is not None and of_lsa else 0,
            _age(now, held.fresh_at) if held is not None and of_lsa else NEVER,
            seen.num if seen is not None and of_number else 0,
            _age(now, seen.at) if seen is not None and of_number else NEVER,
        )

    def _confirm(self, entry: Known, at: float) -> bool:
        """True: it is newer than what I hold, and I want it."""
        held = self.held.get(entry.slot)
        if held is not None and held.version == (entry.life.boot, entry.seq):
            if entry.age < NEVER:
                held.fresh_at = max(held.fresh_at, at)
            return False
        return held is None or held.version < (entry.life.boot, entry.seq)

    def _saw(self, slot: int, life: NodeId, num: int, at: float) -> None:
        seen = self._seen.get(slot)
        if seen is None or (seen.life.boot, seen.num) < (life.boot, num):
            self._seen[slot] = Seen(life, num, at)
        elif (seen.life, seen.num) == (life, num):
            seen.at = max(seen.at, at)


def _age(now: float, at: float) -> float:
    return min(NEVER, now - at)
