"""The last ten minutes of one member of a group that gossips, for the page.  Spec: gossip 5.11, 9; docs/page.md."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from holdfast.features.gossip.protocol.node import GossipNode

SAMPLE_INTERVAL = 5.0  # seconds: turbulence is counted in buckets of 30
KEPT_MAX = 121  # samples: ten minutes, the window of c


class Sample(NamedTuple):
    """How it was."""

    at: float
    c: int
    turbulent: bool
    suspected: int
    suspicions: int
    refutations: int


class PastAnswer(Struct, frozen=True):
    """A sample every five seconds, the oldest first; one line for each number. None were taken while nothing served HTTP."""

    interval: float  # seconds between two samples
    ago: tuple[float, ...]  # seconds since each was taken
    c: tuple[int, ...]  # so many lists missed a live member at some time within one bucket of the window
    turbulent: tuple[bool, ...]  # whether a live member was missed in the bucket before
    suspected: tuple[int, ...]  # members under suspicion
    suspicions: tuple[int, ...]  # that began, since this agent started
    refutations: tuple[int, ...]  # of accusations of this member


class Past:
    """Samples, from now on, for as long as this life lasts."""

    def __init__(self, node: GossipNode) -> None:
        self._node, self._host = node, node.core.host
        self.version = 0  # how many were taken
        self._samples: deque[Sample] = deque(maxlen=KEPT_MAX)
        self._on_sample()

    def __len__(self) -> int:
        return len(self._samples)

    def answer(self) -> PastAnswer:
        now = self._host.now
        at, c, turbulent, suspected, suspicions, refutations = zip(*self._samples, strict=True)
        return PastAnswer(SAMPLE_INTERVAL, tuple(round(now - each, 3) for each in at), c, turbulent, suspected, suspicions, refutations)

    def _on_sample(self) -> None:
        node = self._node
        counts = node.counts
        self._samples.append(
            Sample(
                self._host.now, node.c_measured(), node.turbulent(), len(node.suspicions), counts["suspicions"], counts["refutations"]
            )
        )  # fmt: skip
        self.version += 1
        self._host.after(SAMPLE_INTERVAL, self._on_sample)
