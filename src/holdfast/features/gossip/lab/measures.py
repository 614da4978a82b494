"""What experiments of gossip measure: who was suspected and held to be dead, when, and by how many; what was sent.  Spec: gossip 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from holdfast.events import Decided, Event, Suspected
from holdfast.features.gossip.lab.groups import GossipGroup
from holdfast.host import NodeId
from holdfast.lab.accounting import total
from holdfast.lab.host import LabHost

DIGITS = 4


class Opinions:
    """Hears what members say of others from now on."""

    def __init__(self, group: GossipGroup) -> None:
        self._group = group
        self.suspected: dict[NodeId, dict[str, float]] = {}  # by subject: who said so, and when first
        self.decided: dict[NodeId, dict[str, float]] = {}
        group.world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Suspected | Decided):
            kept = self.suspected if isinstance(event, Suspected) else self.decided
            kept.setdefault(event.member.id, {}).setdefault(host.me.name, self._group.world.now)

    def first_suspicion(self, life: NodeId) -> float | None:
        return min(self.suspected.get(life, {}).values(), default=None)

    def first_death(self, life: NodeId) -> float | None:
        return min(self.decided.get(life, {}).values(), default=None)

    def last_death(self, life: NodeId) -> float | None:
        """When the last of the members that are up said so; None while one has not."""
        said = self.decided.get(life, {})
        missing = [name for name in self._group.alive if name not in said]
        return None if missing else max(said.values(), default=None)

    def forget(self) -> None:
        self.suspected.clear()
        self.decided.clear()


def datagrams(group: GossipGroup) -> int:
    """All messages so far."""
    return sum(each.messages for each in total(group.world).values())


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def middle(values: Sequence[float | None]) -> float | None:
    """The median; None where it is a value that never came."""
    ordered = sorted(values, key=lambda value: float("inf") if value is None else value)
    if not ordered or ordered[len(ordered) // 2] is None:
        return None
    return rounded(median([value if value is not None else 1e9 for value in ordered]))


def at_most(value: float | None, limit: float) -> bool:
    return value is not None and value <= limit


def until_all_know(group: GossipGroup, opinions: Opinions, life: NodeId, seconds: float, step: float) -> None:
    """Run until all that are up hold that life to be dead, or so many seconds."""
    done: Callable[[], bool] = lambda: opinions.last_death(life) is not None  # noqa: E731
    group.until(done, seconds, step)


def note(misses: list[str], passed: bool, text: str) -> None:
    if not passed:
        misses.append(text)


Row = dict[str, Any]
