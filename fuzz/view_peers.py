"""The peers of one server of views, and what is true of each at any time: its link states, its numbers, its clients.

A peer keeps one key per number and lets its numbers and link states grow; which, when and why is drawn. Whatever it says of others was
true when it says so, or earlier (D24). The oracle of ``fuzz.view_server`` asks here until when something was true.
"""

from __future__ import annotations

from math import inf
from random import Random
from typing import NamedTuple

from holdfast.features.views.protocol.messages import KEY_BYTES, NEVER, Known, LinkPong, Listed, Lsa, Propose
from holdfast.host import Address, NodeId
from holdfast.kit.slots import Slot


class Heard(NamedTuple):
    """What one peer knows of another one, and since when it heard no more."""

    peer: Peer
    seq: int
    num: int
    at: float


class Peer:
    """One life of another server."""

    def __init__(self, slot: Slot, life: NodeId, now: float) -> None:
        self.slot, self.life = slot, life
        self.died_at = inf
        self.lsas: list[Lsa] = [Lsa(slot.number, life, 1, (), ())]  # in order of ``seq``, which begins at 1
        self.lsa_until: list[float] = [inf]
        self.num = 0
        self.keys: dict[int, bytes] = {}
        self.num_until: dict[int, float] = {}
        self.done = False
        self.asked: list[int] = []  # pings of the server under test that may reach this slot
        self.heard: dict[int, Heard] = {}  # by slot: what it knows of the other peers
        self.mute_pongs = self.mute_states = self.mute_proposals = False  # towards the server under test

    @property
    def alive(self) -> bool:
        return self.died_at == inf

    def die(self, now: float) -> None:
        self.died_at = now

    def publish(self, up: tuple[NodeId, ...], clients: tuple[Listed, ...], now: float) -> None:
        self.lsa_until[-1] = now
        self.lsas.append(Lsa(self.slot.number, self.life, len(self.lsas) + 1, tuple(sorted(up)), clients))
        self.lsa_until.append(inf)

    def begin(self, num: int, key: bytes, now: float) -> None:
        assert num > self.num
        if self.num in self.num_until:
            self.num_until[self.num] = now
        self.num, self.keys[num], self.num_until[num], self.done = num, key, inf, False

    def number_until(self, num: int) -> float:
        """It was at that number until then; inf: it is now, -inf: it never was."""
        return min(self.died_at, self.num_until.get(num, -inf))

    def state_until(self, seq: int) -> float:
        """That link state was its newest until then."""
        return min(self.died_at, self.lsa_until[seq - 1]) if 1 <= seq <= len(self.lsas) else -inf

    def proposal(self, dst: NodeId, num: int, ttl: int) -> Propose:
        return Propose(self.slot.number, self.life, num, self.keys[num], 1, self.done and num == self.num, ttl, dst)


class Peers:
    """All other slots, with every life that was in them."""

    def __init__(self, random: Random, slots: tuple[Slot, ...], own: int, me: NodeId, now: float) -> None:
        self._random, self._me, self._own = random, me, own
        self._boot = 1
        self.lives: dict[NodeId, Peer] = {}
        self.cuts: dict[tuple[int, int], None] = {}  # (who, of whom): hears nothing
        self.now: dict[int, Peer] = {slot.number: self._born(slot, now) for slot in slots if slot.number != own}

    def restart(self, at: int, now: float) -> Peer:
        self.now[at].die(now)
        peer = self.now[at] = self._born(self.now[at].slot, now)
        return peer

    def talk(self, now: float) -> None:
        """Peers ask each other."""
        for peer in self.now.values():
            for other in self.now.values():
                if other is not peer and (peer.slot.number, other.slot.number) not in self.cuts:
                    peer.heard[other.slot.number] = Heard(other, len(other.lsas), other.num, now)

    def toggle_cut(self) -> None:
        cut = self._random.choice(list(self.now)), self._random.choice(list(self.now))
        if cut in self.cuts:
            del self.cuts[cut]
        else:
            self.cuts[cut] = None

    def some_key(self) -> bytes:
        return self._random.randbytes(KEY_BYTES)

    def pong(self, peer: Peer, seq: int, now: float) -> LinkPong:
        """What it is, and what it may have heard of others until now."""
        own = Known(peer.slot.number, peer.life, len(peer.lsas), 0.0, peer.num, 0.0)
        heard = [self._known(each, now) if self._random.random() < 0.95 else self._heard(each.peer, now) for each in peer.heard.values()]
        if self._random.random() < 0.5:
            heard.append(Known(self._own, self._me, self._random.randint(0, 9), 0.0, self._random.randint(0, 9), 0.0))
        return LinkPong(seq, peer.slot.number, (own, *heard))

    def _known(self, heard: Heard, now: float) -> Known:
        """What it held when it heard of the other last."""
        age = now - heard.at
        return Known(heard.peer.slot.number, heard.peer.life, heard.seq, age, heard.num, age if heard.num else NEVER)

    def _heard(self, other: Peer, now: float) -> Known:
        """Anything that it may have heard by way of others."""
        random = self._random
        if random.random() < 0.05:
            other = random.choice([life for life in self.lives.values() if life.slot == other.slot])
        seq = len(other.lsas) if random.random() < 0.9 else random.randint(1, len(other.lsas))
        num = other.num if random.random() < 0.9 or not other.keys else random.choice(list(other.keys))
        age = max(0.0, now - other.state_until(seq))
        num_age = max(0.0, now - other.number_until(num)) if num else NEVER
        return Known(other.slot.number, other.life, seq, self._older(age), num, self._older(num_age))

    def _older(self, age: float) -> float:
        """An age is counted up by each server that passes it on, and may have been under way for long."""
        extra = self._random.choice((0.0, 0.0, 0.0, self._random.random() * 0.1, self._random.random() * 3.0, NEVER))
        return min(NEVER, age + extra)

    def _born(self, slot: Slot, now: float) -> Peer:
        self._boot += self._random.randint(1, 4)
        peer = Peer(slot, NodeId(slot.name, self._boot), now)
        self.lives[peer.life] = peer
        return peer


class FuzzClient:
    """A client that attaches to the server under test, or to one of its peers."""

    def __init__(self, name: str, random: Random) -> None:
        self.name, self._random = name, random
        self.boot, self.attach, self.seq, self.last_num = 1, 1, 0, 0
        self.away: int | None = None  # slot of the peer that it is attached to
        self.stamp = 0.0  # of the newest answer that it read in this attachment; 0: of none
        self.stamps: list[float] = []  # of all answers to it
        self.address = Address(name, 1)
        self.deaf = self.mute = False

    @property
    def life(self) -> NodeId:
        return NodeId(self.name, self.boot)

    @property
    def listed(self) -> Listed:
        return Listed(self.life, self.attach, self.address)

    def attach_anew(self, away: int | None) -> None:
        self.attach += 1
        self.away, self.stamp = away, 0.0

    def restart(self) -> None:
        self.boot += self._random.randint(1, 3)
        self.attach, self.seq, self.last_num = 1, 0, 0
        self.away, self.stamp = None, 0.0
