"""A table, or some buckets of it, as pages.  Spec: gossip 3 (SYNC), D19; H2.

A small table is a datagram, a large one several frames of a stream. The sender's own entry is in the first page,
because a stream does not say where its sender listens.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.messages import ALL_BUCKETS, ENTRIES_MAX, PAGE_BYTES_MAX, PAGES_MAX, Rumour, Status, Sync
from holdfast.features.gossip.protocol.messages import Observation as Seen
from holdfast.features.gossip.protocol.rumours import rumour_of, size_of
from holdfast.features.gossip.protocol.table import Entry, bucket_of

FRAME_BYTES = PAGE_BYTES_MAX - 1024  # of entries; the rest is for the envelope, the seal and the front


def said(core: Core, each: Entry) -> Rumour:
    """An entry of the own table, as it goes into a page: what is here, with the age of a tombstone."""
    stone = core.table.tombstones.get(each.id.name)
    return rumour_of(each, ago=0 if stone is None else max(0, int(core.host.now - stone.since)))


def entries_of(core: Core, buckets: int) -> list[Rumour]:
    """The own entry first, then those of the chosen buckets. Tombstones that are over are told to no member."""
    mine = core.table.get(core.name)
    assert mine is not None
    found = [said(core, mine)]
    reap_after = core.config.reap_after
    for each in core.table.entries():
        if each is mine or not (buckets == ALL_BUCKETS or buckets >> bucket_of(each.id) & 1):
            continue
        rumour = said(core, each)
        if rumour.status < Status.DEAD or rumour.ago < reap_after:
            found.append(rumour)
    return found


def cut(rumours: Iterable[Rumour]) -> list[tuple[Rumour, ...]]:
    pages: list[list[Rumour]] = [[]]
    room = FRAME_BYTES
    for rumour in rumours:
        size = size_of(rumour)
        if size > room or len(pages[-1]) >= ENTRIES_MAX:
            pages.append([])
            room = FRAME_BYTES
        pages[-1].append(rumour)
        room -= size
    assert len(pages) <= PAGES_MAX
    return [tuple(page) for page in pages]


def messages(core: Core, serial: int, front: tuple[Seen, ...], *, want: bool, buckets: int) -> list[Sync]:
    """What is sent to one peer."""
    pages = cut(entries_of(core, buckets))
    return [Sync(serial, at, len(pages), page, front, want, buckets) for at, page in enumerate(pages)]
