"""A group of 10,000 that gossips: each of its tables takes all of them, and as many tombstones.  Spec: gossip 4 (members_max), D22; H343.

What the host, the kit, names, mail and the wire keep of each member is in ``tests/spine/test_ten_thousand.py``.
"""

from __future__ import annotations

import pytest

from holdfast.bounds import MEMBERS_MAX
from holdfast.events import Joined
from holdfast.features.gossip.protocol.messages import ALL_BUCKETS, PAGE_BYTES_MAX, PAGES_MAX, Gossip, Rumour, Sync
from holdfast.features.gossip.protocol.pages import messages
from holdfast.host import Address, NodeId
from tests.features.gossip.stand import ALIVE, DEAD, SUSPECT, Stand

COUNT = 10_000
NAMES = [f"web-{number:05}" for number in range(COUNT)]
FORMER = [f"old-{number:05}" for number in range(COUNT)]
ROWS = {"gossip:settled": b"1", "tag:zone": b"eu-1", "topic:u:news": b""}


def life(name: str) -> NodeId:
    return NodeId(name, 1_800_000_000_000)


def said(name: str, inc: int = 1, status: int = ALIVE, *accusers: str, rows: bool = True) -> Rumour:
    place = Address(f"10.{int(name[4:]) >> 8}.{int(name[4:]) & 255}.1", 7946)
    return Rumour(life(name), place, inc, status, accusers, 1, ROWS if rows and status == ALIVE else None, 1 if status == DEAD else 0)  # type: ignore[arg-type]


def shown(stand: Stand, pages: list[Sync]) -> None:
    for page in pages:
        stand.node.on_message(life(NAMES[0]), page)


@pytest.fixture
def large() -> Stand:
    """A member whose first table is that of the whole group."""
    stand = Stand(members_max=MEMBERS_MAX).without_probes()
    stand.node.syncs.stop()
    stand.node.contact.stop()
    entries = [*map(said, NAMES), *(said(name, 1, DEAD) for name in FORMER)]
    cut = [tuple(entries[at : at + 1000]) for at in range(0, len(entries), 1000)]
    shown(stand, [Sync(0, at, len(cut), page, (), False, ALL_BUCKETS) for at, page in enumerate(cut)])
    return stand


def test_a_list_of_all(large: Stand) -> None:
    """Gossip 4: the list, its events, the keys' hint and the rumours of all of them; none is refused and no tombstone is given up."""
    node = large.node
    assert (node.table.n, node.table.size, len(node.table.tombstones)) == (COUNT + 1, 2 * COUNT + 1, COUNT)
    assert [each.name for each in node.members()] == sorted(["a", *NAMES])
    assert len(large.host.events(Joined)) == COUNT
    assert len(node.members("u:news")) == COUNT
    assert node.owner("cart:42") is not None
    assert len(node.queue) == COUNT + 1  # Tombstones of a table are no news (H320).
    assert node.counts == {}


def test_all_are_heard_of_suspected_and_cleared(large: Stand) -> None:
    """Gossip 5.4: what is kept of a member that needs it has room for all at once."""
    node = large.node
    for name in NAMES:
        node.on_message(life(name), Gossip((said(name, 1, SUSPECT, NAMES[0]),)))
    assert (len(node.core.heard), len(node.suspicions), len(node.core.accusers)) == (COUNT, COUNT, COUNT)
    for name in NAMES:
        node.on_message(life(name), Gossip((said(name, 2, rows=False),)))
    assert len(node.suspicions) == len(node.core.accusers) == 0
    assert +node.counts == {"suspicions": COUNT, "suspicions_cleared": COUNT}


def test_all_come_back(large: Stand) -> None:
    """Gossip 5.11, D4: every other member was held to be dead here, and each of them is told."""
    node = large.node
    large.bury(*NAMES)
    assert node.table.n == 1
    node.on_message(life(NAMES[0]), Gossip(tuple(said(name, 2, rows=False) for name in NAMES)))
    assert (node.table.n, len(node.reports)) == (COUNT + 1, COUNT)
    assert +node.counts == {"buried": COUNT, "false_positives": COUNT}


def test_a_table_of_all_in_pages(large: Stand) -> None:
    """Gossip 3 (SYNC), D19: a joiner that is shown it has the same, and the two find no difference."""
    other = Stand(members_max=MEMBERS_MAX, join=False)
    other.node.core.active = True
    pages = messages(large.node.core, 1, (), want=False, buckets=ALL_BUCKETS)
    assert len(pages) < PAGES_MAX
    assert max(sum(len(each.address.host) for each in page.entries) for page in pages) < PAGE_BYTES_MAX
    shown(other, [Sync(1, page.page, page.of, page.entries[page.page == 0 :], (), False, ALL_BUCKETS) for page in pages])
    assert (other.node.table.n, len(other.node.table.tombstones)) == (COUNT + 1, COUNT)
    assert other.node.counts == {}
    assert len(other.node.queue) == 0  # A joiner tells no member what all of them know (H325).
    mine = {each.id: (each.rank, each.rows_at) for each in large.node.table.entries() if each.id.name != "a"}
    assert {each.id: (each.rank, each.rows_at) for each in other.node.table.entries() if each.id.name != "a"} == mine


def test_one_more_than_there_may_be() -> None:
    """Gossip 2, 4: with the table full of listed members a newcomer is counted and not listed; no member goes for it."""
    stand = Stand(members_max=4).without_probes()
    for name in NAMES[:4]:
        stand.node.on_message(life(NAMES[0]), Gossip((said(name),)))
    assert (stand.node.table.n, stand.node.counts) == (4, {"table_full": 1})
