"""The c that lists really had: by how many a live member was not listed, at some time within one bucket.  Spec: gossip 5.11, G12."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from holdfast.events import Decided, Event, Joined
from holdfast.features.gossip.lab.groups import GossipGroup
from holdfast.host import NodeId
from holdfast.lab.host import LabHost


class TrueC:
    """Hears every member of a formed group say whom it lists, and looks once at the beginning. No member comes or goes for good.

    Buckets begin where those of the member begin that is missing, on its own clock.
    """

    def __init__(self, group: GossipGroup, bucket: float) -> None:
        self._group, self.bucket = group, bucket
        self._missing: dict[NodeId, dict[str, float]] = {}  # by subject: who lacks it, since when
        self._spans: dict[NodeId, list[tuple[str, float, float]]] = {}  # such times that are over
        self._names = {group.host(name).me for name in group.alive}
        self._ahead = {group.host(name).me: group.host(name).now - group.world.now for name in group.alive}
        for name in group.alive:
            for life in self._names:
                if not group.node(name).table.lists(life):
                    self._missing.setdefault(life, {})[name] = group.world.now
        group.world.listeners.append(self._on_event)

    def windowed(self, since: float, until: float) -> int:
        """The largest number for any member and any bucket of that time."""
        return max((self._of(life, since, until) for life in self._names), default=0)

    def now(self) -> int:
        """At this instant."""
        return max((len(lacking) for lacking in self._missing.values()), default=0)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if not isinstance(event, Joined | Decided):
            return
        life, name, now = event.member.id, host.me.name, self._group.world.now
        if isinstance(event, Decided):
            self._missing.setdefault(life, {}).setdefault(name, now)
        else:
            since = self._missing.get(life, {}).pop(name, None)
            if since is not None:
                self._spans.setdefault(life, []).append((name, since, now))

    def _of(self, life: NodeId, since: float, until: float) -> int:
        buckets: dict[int, set[str]] = {}
        ahead = self._ahead[life]
        for name, begin, end in self._lacking(life, until):
            if end < since or begin > until:
                continue
            for number in range(floor((max(begin, since) + ahead) / self.bucket), floor((min(end, until) + ahead) / self.bucket) + 1):
                buckets.setdefault(number, set()).add(name)
        return max(map(len, buckets.values()), default=0)

    def _lacking(self, life: NodeId, until: float) -> Iterator[tuple[str, float, float]]:
        yield from self._spans.get(life, ())
        yield from ((name, since, until) for name, since in self._missing.get(life, {}).items())
