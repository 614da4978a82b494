"""A static arbitrator: the centralised scheme of Service Fabric, which the paper starts from.  Spec: ring 5.2 (CA), D24; Algorithm 1.

One process per slot, no member of the ring. It keeps one list for all pairs, and after a restart, when that list is empty,
rejects everything until the one that it had accepted before must have been declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import Arb, Vote
from holdfast.host import Host, Message, NodeId

LISTED_MAX = 16_384  # recently failed members; entries last for a few lease periods
NOBODY = RingId(0, 0)
K = TypeVar("K")


class CentralArbitrator:
    """Answers arbitration requests of all pairs, first come, first served."""

    handles: Sequence[type[Message]] = (Arb, Vote)  # Vote is only sent: its envelope has to carry the fingerprint, too

    def __init__(self, host: Host, config: RingConfig) -> None:
        self._host, self._config = host, config
        self._since = host.now
        self._failed: dict[tuple[int, RingId], float] = {}  # Recently-Failed, per ring
        self.counts: Counter[str] = Counter()  # requests, asked (retries left out), accepted, rejected, list_full
        self._asked: dict[tuple[NodeId, int], float] = {}  # whose question was counted

    @property
    def fingerprint(self) -> bytes:
        return self._config.fingerprint

    def start(self) -> None:
        self._since = self._host.now

    def stop(self) -> None:
        """Nothing runs here."""

    def on_away(self, seconds: float) -> None:
        """A pause changes nothing: entries age by the clock."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if not isinstance(message, Arb):
            return
        now = self._host.now
        self._trim(now)
        self.counts["requests"] += 1
        if (source, message.serial) not in self._asked and len(self._asked) < LISTED_MAX:
            self._asked[source, message.serial] = now
            self.counts["asked"] += 1
        accept = self._decide((message.ring, message.source), (message.ring, message.accused), now)
        self.counts["accepted" if accept else "rejected"] += 1
        self._host.send(source, Vote(message.ring, NOBODY, message.source.inc, message.serial, accept))

    def _decide(self, accuser: tuple[int, RingId], accused: tuple[int, RingId], now: float) -> bool:
        """Algorithm 1, line by line."""
        if len(self._failed) >= LISTED_MAX:
            self.counts["list_full"] += 1
            return False
        if now - self._since < self._config.t_arb:
            self._failed.setdefault(accuser, now)
            self._failed.setdefault(accused, now)
            return False
        if accuser in self._failed:
            return False
        self._failed.setdefault(accused, now)
        return True

    def _trim(self, now: float) -> None:
        """Entries come in the order of their times."""
        oldest = now - self._config.wait
        _drop_before(self._failed, oldest)
        _drop_before(self._asked, oldest)


def _drop_before(table: dict[K, float], oldest: float) -> None:
    while table and next(iter(table.values())) < oldest:
        del table[next(iter(table))]
