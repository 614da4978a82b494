"""A formed ring of real members, some alone in their process, the others many to a process; and crashes of both kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from benchmarks.ring_fleet import Fleet, Line, Settings, fleet, free_addresses, name_of, now
from holdfast.features.ring.protocol.config import RingConfig

SEEDS = 8  # members that all know; some of them are crashed too
FORMING = 120.0  # seconds in which a ring of 64 has formed
QUIET = 4  # in T_l: after a change of the ring, new pairs are active and old ones dissolved
KILLED, CLOSED = KINDS = ("kill -9", "sockets closed")


class Formed:
    """A ring that can be damaged and mended."""

    def __init__(self, it: Fleet, config: RingConfig, addresses: dict[str, str], *, solos: int, shared: int, seed: object) -> None:
        self.fleet, self.config = it, config
        self.names = tuple(addresses)
        self.alone = frozenset(self.names[:solos])
        self.random = Random(f"ring {seed}")
        self._addresses = addresses
        self._shared = shared

    def form(self) -> None:
        """The first founds, the others join in waves: as many at once as find neighbourhoods that do not overlap."""
        it, first = self.fleet, self.names[0]
        rest = [name for name in self.names if name not in self.alone]
        for number in range(min(self._shared, len(rest))):
            it.start({name: self._addresses[name] for name in rest[number :: self._shared]}, "--idle")
        for name in self.alone:
            it.start({name: self._addresses[name]}, "--idle", *(("--found", name) if name == first else ()))
        self._begin([first])
        waiting = list(self.names[1:])
        while waiting:
            size = max(1, (len(self.names) - len(waiting)) // (2 * self.config.k + 1))
            wave, waiting = waiting[:size], waiting[size:]
            self._begin(wave)
        it.until_agreed(self.names, f"{len(self.names)} members are one ring", within=FORMING)
        self.calm()

    def calm(self) -> None:
        """Time for what follows from a change."""
        self.fleet.pass_time(QUIET * self.config.lease)

    def members(self) -> list[str]:
        return [name for name in self.names if name in set(self.fleet.members())]

    def id_of(self, name: str) -> str:
        return str(self.fleet.view[name]["as"])

    def kind_of(self, name: str) -> str:
        return KILLED if name in self.alone else CLOSED

    def crash(self, names: Sequence[str]) -> dict[str, float]:
        """All at once; returns when each of them was silent, or a moment before."""
        it, asked_at = self.fleet, now()
        crashed_at = {}
        for name in names:
            if name in self.alone:
                crashed_at[name] = it.home[name].kill()
                it.view.pop(name, None)
            else:
                it.home[name].order("crash", name)
        wanted = set(names) - crashed_at.keys()

        def told() -> bool:
            crashed_at.update((name_of(line), line["at"]) for line in it.found("Crashed", since=asked_at) if name_of(line) in wanted)
            return wanted <= crashed_at.keys()

        it.until(told, f"{sorted(wanted)} crash")
        return crashed_at

    def revive(self, names: Iterable[str]) -> None:
        """The next life of each; back when all are members and all know it."""
        it = self.fleet
        wanted = list(names)
        for name in wanted:
            if name in self.alone:
                it.home[name].end()
                it.start({name: self._addresses[name]}, "--idle")
        self._begin(wanted)
        it.until_agreed(self.names, f"{len(wanted)} are back", within=FORMING)
        self.calm()

    def about(self, event: str, ring_id: str, since: float) -> list[Line]:
        """What was said about one membership."""
        return [line for line in self.fleet.found(event, since=since) if ring_id in (line.get("peer"), line.get("id"))]

    def _begin(self, names: Sequence[str]) -> None:
        for name in names:
            self.fleet.home[name].order("start", name)
        self.fleet.until(lambda: set(names) <= set(self.fleet.members()), f"{', '.join(names)} join", within=FORMING)


@contextmanager
def formed(members: int, config: RingConfig, *, solos: int, shared: int, seed: object, **settings: Any) -> Iterator[Formed]:
    """``solos`` processes with one member each, ``shared`` processes for all others."""
    assert 1 <= solos <= members
    addresses = dict(zip((f"n{i}" for i in range(members)), free_addresses(members), strict=True))
    seeds = tuple(addresses.values())[:SEEDS]
    with fleet(Settings(lease=config.lease, k=config.k, seeds=seeds, **settings)) as it:
        ring = Formed(it, config, addresses, solos=solos, shared=shared, seed=seed)
        ring.form()
        yield ring
