"""What `ring` measures in this process, in the lab: messages in calm, the time of an event, what checkers add, what a view needs."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable
from pathlib import PurePath
from time import process_time
from typing import Any

from holdfast.features.ring.lab.rings import PAPER_LINK, PAPER_RULES, Rings, paper_config
from holdfast.features.ring.lab.scenarios.ring import RingScenario
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import RingId, position_of
from holdfast.features.ring.protocol.memberlist import Listed, key_of, read, write
from holdfast.host import Address, NodeId
from holdfast.kit.exchange import RowsPage
from holdfast.kit.rows import Row, pages
from holdfast.lab.accounting import total
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World
from holdfast.wire import Codec

LEASES = ("LeaseRequest", "LeaseAck")
COUNTED = 10  # T_l that are counted against Equation 2 (ring 8, E6)
LIFE_SECONDS = 20.0  # per round: one member crashes, is declared, comes back and joins
DOWN_SECONDS = 8.0  # declared after at most 4.5 T_l
SEEDS = 3
TAG = {"tag": b"eu-1"}  # what a member publishes, in the view whose memory is taken
LARGEST_FILES = 6  # of which the share of a view's memory is shown


def names_of(count: int) -> list[str]:
    return [f"n{i}" for i in range(count)]


def messages_sent(seed: int, n: int, k: int) -> dict[str, Any]:
    """What a ring of the default configuration sends in calm, beside 2 * 2k / T_l per member and second (Equation 2)."""
    config = RingConfig(k=k)
    rings = Rings(seed, config)
    rings.form(names_of(n))
    world = rings.world
    world.run(config.lease)
    before = total(world)
    world.run((1 + COUNTED) * config.lease)
    sent = {kind: each.messages - (before[kind].messages if kind in before else 0) for kind, each in total(world).items()}
    leases = sum(sent[kind] for kind in LEASES)
    others = {kind: count for kind, count in sent.items() if kind not in LEASES and count}
    expected = n * 2 * min(2 * k, n - 1) * COUNTED
    return {"leases_of_equation_2": round(leases / expected, 5), "others_of_leases": round(sum(others.values()) / leases, 5), **others}


def calm_world(seed: int, members: int) -> World:
    """A large ring in which nothing happens, with the paper's flags."""
    rings = Rings(seed, paper_config(), rules=PAPER_RULES)
    rings.form(names_of(members))
    return rings.world


def per_event(world: World, seconds: float) -> float:
    """CPU seconds per event in the next few seconds."""
    before, began = world.events, process_time()
    world.run(world.now + seconds)
    return (process_time() - began) / (world.events - before)


class Watched:
    """A ring in which one member after the other crashes and comes back; with the checkers that sweeps have, or without."""

    def __init__(self, seed: int, members: int, *, watched: bool) -> None:
        names = names_of(members)
        checkers = RingScenario().checkers(Setup(tuple(names), 0.0, 0.0, link=PAPER_LINK)) if watched else ()
        self._rings = Rings(seed, RingConfig(), seeds=names[:SEEDS], checkers=checkers)
        self._rings.form(names)
        self._turn = SEEDS

    def per_event(self) -> float:
        world = self._rings.world
        victim = f"n{self._turn % len(world.nodes)}"
        self._turn += 1
        world.crash(victim)
        world.revive_after(DOWN_SECONDS, victim)
        return per_event(world, LIFE_SECONDS)

    @property
    def result(self) -> tuple[int, int]:
        """Equal, or the checkers took part."""
        return self._rings.world.events, self._rings.size


def view_bytes(members: int) -> dict[str, Any]:
    """What one member's memory grows by when it learns of all others, by pages of the anti-entropy as a peer sends them."""
    rings = Rings(1, RingConfig(found=True))
    ring = rings.start("n0")
    rows = [Row(key_of(each), write(_listed(i)), 0.0) for i, each in enumerate(_ids(members - 1))]
    peer = NodeId("n1", 1)
    codec = Codec([RowsPage])
    payloads = [codec.encode(peer, 1, b"", RowsPage(ring.list.topic, page, final=True)) for page in pages(rows)]
    wire = sum(len(payload) for payload in payloads)
    del rows
    read.cache_clear()  # What another ring of this process has read would be there already, and free.
    tracemalloc.start()
    gc.collect()
    before = tracemalloc.take_snapshot()
    for payload in payloads:
        ring.exchange.on_message(peer, codec.decode(payload).message)
    listed, told = len(ring.members()), len(ring.broadcast.peers(ring.list.topic))
    gc.collect()
    growth = tracemalloc.take_snapshot().compare_to(before, "filename")
    tracemalloc.stop()
    assert (listed, told) == (members, members - 1)
    memory = sum(each.size_diff for each in growth)
    largest = {PurePath(each.traceback[0].filename).stem: round(each.size_diff / members) for each in growth[:LARGEST_FILES]}
    return {"memory_bytes": memory, "bytes_per_member": round(memory / members), "wire_bytes": wire, "bytes_per_member_by_file": largest}


def _ids(count: int) -> Iterable[RingId]:
    return (RingId(position_of(f"web-{i}"), position_of(f"life {i}")) for i in range(count))


def _listed(index: int) -> Listed:
    address = Address(f"10.0.{index // 256}.{index % 256}", 7946)
    return Listed(NodeId(f"web-{index}", 1_700_000_000_000 + index), address, 1_700_000_000.0 + index, 1, TAG)
