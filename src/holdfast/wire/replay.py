"""Was this counter seen before?  docs/wire.md, "Replays".

A run is one start of one sender with one key. Each run that a receiver has met has two windows, one per channel: a stream
frame may wait in a queue while thousands of datagrams overtake it, and what is sealed for one channel opens on no other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from holdfast.bounds import MEMBERS_MAX

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

WINDOW_COUNTERS = 1024  # below the highest one; later than that is too late. A sender's counter runs over all its peers.
RUNS_MAX = MEMBERS_MAX // 2  # runs with windows, 0.4 to 0.8 KiB each: the members of the largest group
RETIRED_MAX = 16 * RUNS_MAX  # runs of which only the highest counters are kept, about 0.3 KiB each: 16 restarts of each of those
# Runs whose cipher is kept: 2.4 KiB each, five times their windows. A datagram of another run costs 5 microseconds more, because its
# cipher is made again; a member that hears more peers than these hears each of them seldom.
CIPHERS_MAX = 128

_MASK = (1 << WINDOW_COUNTERS) - 1


class Window:
    """The highest counter accepted, and which of those below it were."""

    __slots__ = ("_seen", "highest")

    def __init__(self, highest: int = 0) -> None:
        """With ``highest``, as if all up to it had been seen."""
        self.highest = highest
        self._seen = _MASK if highest else 0  # bit i: highest - i

    def accept(self, counter: int) -> bool:
        """True once per counter, False ever after, and False for what is too old to know."""
        ahead = counter - self.highest
        if ahead > 0:
            # The guard is not for speed: a shift by 2^63 would ask for that many bits.
            self._seen = (self._seen << ahead | 1) & _MASK if ahead < WINDOW_COUNTERS else 1
            self.highest = counter
            return True
        bit = 1 << -ahead if -ahead < WINDOW_COUNTERS else 0
        if not bit or self._seen & bit:
            return False
        self._seen |= bit
        return True


class Run:
    """One run of one sender: how to open it, and what of it was seen on each channel."""

    __slots__ = ("cipher", "windows")

    def __init__(self, highest: tuple[int, ...]) -> None:
        self.cipher: AESGCM | None = None  # None: others are kept, or its key is not in the keyring; the windows outlast both
        self.windows = tuple(Window(counter) for counter in highest)


class Runs:
    """Every run met so far, by the bytes of the header that name it, the one heard longest ago first.

    When there are too many, that one is retired: its windows shrink to their highest counters. If it speaks again, only what
    is above them is new. Were it forgotten instead, everything it ever said could be said again.
    """

    def __init__(self, channels: int, *, runs_max: int = RUNS_MAX, retired_max: int = RETIRED_MAX, ciphers_max: int = CIPHERS_MAX) -> None:
        self.active: OrderedDict[bytes, Run] = OrderedDict()
        self.retired: OrderedDict[bytes, tuple[int, ...]] = OrderedDict()
        self._unheard = (0,) * channels
        self._with_cipher: list[Run] = []
        self._draw = Random(0).randrange
        self._runs_max, self._retired_max, self._ciphers_max = runs_max, retired_max, ciphers_max

    def admit(self, name: bytes) -> Run:
        """Only for a run of which a message passed the tag check: others cost no memory."""
        assert name not in self.active
        highest = self.retired.pop(name, self._unheard)  # before another sender is retired and this name pushed out
        if len(self.active) >= self._runs_max:
            self._retire()
        run = self.active[name] = Run(highest)
        return run

    def keep(self, run: Run, cipher: AESGCM) -> None:
        """Only for a run that said something new just now: what was recorded, and is said again, pushes no cipher out.

        A drawn one goes. The oldest would be the next one to speak where members speak in turns, and no cipher would ever be found.
        """
        run.cipher = cipher
        if len(self._with_cipher) < self._ciphers_max:
            self._with_cipher.append(run)
            return
        at = self._draw(self._ciphers_max)
        self._with_cipher[at].cipher = None
        self._with_cipher[at] = run

    def drop_ciphers(self, gone: Callable[[bytes], bool]) -> None:
        """Of runs with such a name. Their windows stay."""
        for name, run in self.active.items():
            if gone(name):
                run.cipher = None
        self._with_cipher = [run for run in self._with_cipher if run.cipher is not None]

    def _retire(self) -> None:
        name, run = self.active.popitem(last=False)
        run.cipher = None  # It may stand among those that have one, and its key may be removed meanwhile.
        if len(self.retired) >= self._retired_max:
            self.retired.popitem(last=False)
        self.retired[name] = tuple(window.highest for window in run.windows)
