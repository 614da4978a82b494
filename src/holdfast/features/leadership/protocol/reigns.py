"""What one node believes about each name: who leads it, and who is expected to lead it next.  Spec: fast-detection 2, 5, D16, D17b.

Hints from heartbeats, START and the board. Higher rounds replace lower ones; at equal rounds the first that was heard stays, but a life
that leads has the seats' word. Nothing here grants anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from holdfast.features.leadership.protocol.config import NAMES_MAX, LeadershipConfig
from holdfast.host import NodeId
from holdfast.kit.deadline import Clock

UNHEARD_MAX = 16  # lives of one name that were named and not heard; the oldest is forgotten


class Hope:
    """The candidate that a member expects to lead a round without a known leader."""

    __slots__ = ("heard", "life", "number", "seen_at", "since")

    def __init__(self, number: int, life: NodeId, now: float, *, heard: bool) -> None:
        self.number, self.life = number, life
        self.since = self.seen_at = now
        self.heard = heard  # it speaks for itself

    def is_fresh(self, now: float, config: LeadershipConfig) -> bool:
        """Who was told to ask has Delta_c to begin; who asks is heard with every heartbeat."""
        return now < (self.seen_at + config.t_itv if self.heard else self.since) + config.delta_c


class Reign:
    """One name."""

    __slots__ = ("doubted", "hope", "life", "number", "over", "spent", "unheard")

    def __init__(self) -> None:
        self.number = 0  # of the last reign that is known
        self.life: NodeId | None = None
        self.over = True  # its leader said so itself
        self.doubted = False  # another member says that it is over
        self.hope: Hope | None = None
        self.spent = 0  # the highest round that a candidate asked for in vain
        self.unheard: dict[NodeId, None] = {}  # who was named since the last reign, and said nothing before another one was (H144)

    @property
    def highest(self) -> int:
        """The highest round heard of."""
        return max(self.number, self.spent, 0 if self.hope is None else self.hope.number)


class Reigns:
    """All names. ``changed`` hears of each name of which something is different."""

    def __init__(self, clock: Clock, changed: Callable[[str], None]) -> None:
        self._clock, self._changed = clock, changed
        self._reigns: dict[str, Reign] = {}
        self._of: dict[NodeId, dict[str, None]] = {}  # names that a life leads, or is expected to lead
        self.counts: Counter[str] = Counter()  # names_full, two_leaders

    def __iter__(self) -> Iterator[str]:
        return iter(self._reigns)

    def get(self, name: str) -> Reign | None:
        return self._reigns.get(name)

    def hope(self, name: str) -> Hope | None:
        reign = self._reigns.get(name)
        return None if reign is None else reign.hope

    def highest(self, name: str) -> int:
        reign = self._reigns.get(name)
        return 0 if reign is None else reign.highest

    def exceed(self, name: str, number: int) -> None:
        """No round of it up to that number will be asked for."""
        reign = self._known(name)
        if reign is not None and number > reign.highest:
            reign.spent = number

    def unheard(self, name: str) -> Collection[NodeId]:
        """Who was named as the next one, and was not heard in its time."""
        reign = self._reigns.get(name)
        if reign is None:
            return ()
        return reign.unheard if reign.hope is None or reign.hope.heard else {**reign.unheard, reign.hope.life: None}

    def names_of(self, life: NodeId) -> tuple[str, ...]:
        """What it leads, or is expected to lead."""
        return tuple(self._of.get(life, ()))

    def lives(self) -> tuple[NodeId, ...]:
        return tuple(self._of)

    def led(self, name: str, number: int, life: NodeId) -> bool:
        """That life leads: it said so, or the board does. False if it is known that this is not the latest."""
        reign = self._known(name)
        if reign is None or number < reign.number:
            return False
        if number == reign.number and (reign.over or reign.life != life):
            self.counts["two_leaders"] += reign.life != life
            return False
        news = number > reign.number or reign.doubted
        reign.number, reign.life, reign.over, reign.doubted = number, life, False, False
        if reign.hope is not None and reign.hope.number <= number:
            reign.hope = None
        reign.unheard.clear()
        if news:
            self._note(name, reign)
        return True

    def asks(self, name: str, number: int, life: NodeId) -> None:
        """That life asks the seats for this round."""
        reign = self._known(name)
        if reign is None:
            return
        hope = reign.hope
        reign.unheard.pop(life, None)
        if hope is not None and (hope.number, hope.life) == (number, life):
            hope.seen_at, hope.heard = self._clock.now, True
        elif number > reign.highest:
            reign.hope = Hope(number, life, self._clock.now, heard=True)
            self._note(name, reign)

    def expect(self, name: str, number: int, life: NodeId) -> bool:
        """START: the reign before this round is over, as its sender sees it. False if that is no news."""
        reign = self._known(name)
        if reign is None or number <= reign.highest:
            return False
        if reign.hope is not None and not reign.hope.heard:
            reign.unheard.pop(reign.hope.life, None)
            reign.unheard[reign.hope.life] = None
            if len(reign.unheard) > UNHEARD_MAX:
                del reign.unheard[next(iter(reign.unheard))]
        reign.hope = Hope(number, life, self._clock.now, heard=False)
        reign.doubted = True
        self._note(name, reign)
        return True

    def over(self, name: str, number: int) -> None:
        """The leader of that round said that it leads no more."""
        reign = self._known(name)
        if reign is not None and number >= reign.number and not (number == reign.number and reign.over):
            if number > reign.number:
                reign.number, reign.life = number, None
            reign.over = True
            self._note(name, reign)

    def resigned(self, name: str, number: int, life: NodeId) -> None:
        """RESIGN: that life leads, or asks, under this round no more."""
        reign = self._reigns.get(name)
        if reign is None:
            return
        hope = reign.hope
        if (reign.number, reign.life) == (number, life):
            self.over(name, number)
        elif hope is not None and hope.number <= number and hope.life == life:
            reign.hope, reign.spent = None, max(reign.spent, number)
            self._note(name, reign)

    def doubt(self, life: NodeId) -> None:
        """That life is believed dead."""
        for name in self.names_of(life):
            reign = self._reigns[name]
            if reign.life == life and not reign.over and not reign.doubted:
                reign.doubted = True
                self._changed(name)

    def _known(self, name: str) -> Reign | None:
        reign = self._reigns.get(name)
        if reign is None:
            if len(self._reigns) >= NAMES_MAX:
                self.counts["names_full"] += 1
                return None
            reign = self._reigns[name] = Reign()
        return reign

    def _note(self, name: str, reign: Reign) -> None:
        """Keep the index by life, then tell."""
        lives = [reign.life if not reign.over else None, reign.hope.life if reign.hope is not None else None]
        for former in [life for life, names in self._of.items() if name in names and life not in lives]:
            del self._of[former][name]
            if not self._of[former]:
                del self._of[former]
        for life in lives:
            if life is not None:
                self._of.setdefault(life, {})[name] = None
        self._changed(name)
