"""The board: who stands for which name and who leads it, known to the whole group.  Spec: fast-detection D17b; foundation 4 (Rows).

One row per candidate and one per name that is or was led, in one table of ``kit.rows``; not in the rows of the membership, which hold
sixty-four. All of it is a hint: it orders candidates and tells users whom to ask, and no promise rests on it (F15).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from hashlib import blake2b

import msgspec
from msgspec import Struct

from holdfast.bounds import Growing, Label, Name, Small, highest_of, is_beyond
from holdfast.errors import ConfigError
from holdfast.features.leadership.protocol.config import NAME_BYTES_MAX, TOPIC
from holdfast.host import Host, NodeId, Timer
from holdfast.kit.exchange import Exchange
from holdfast.kit.versioned import UNREADABLE

CANDIDATE, LEADER = 0, 1
AGENT_BYTES_MAX = 64  # as on the wire
DIGEST_BYTES = 16
SWEEP_PERIOD = 30.0
# Seconds that a candidate's life may be missing from the member list before its rows are taken down: longer than lists differ. A candidate
# that was only cut off puts its row up again.
ABSENT_MAX = 120.0


class Row(Struct, frozen=True, array_like=True):
    """A candidate (``major`` boot, ``minor`` its version) or a leader (``major`` the round). ``over``: not any more."""

    kind: Small
    name: Label
    agent: Name
    boot: Growing
    major: Growing
    minor: Growing
    over: bool

    @property
    def life(self) -> NodeId:
        return NodeId(self.agent, self.boot)


class Board:
    """The table as one agent sees it."""

    def __init__(self, host: Host, exchange: Exchange, listed: Callable[[NodeId], bool], changed: Callable[[Row], None]) -> None:
        """``changed`` hears of every row that is news."""
        self._host, self._listed, self._changed = host, listed, changed
        self._rows = exchange.rows(TOPIC, _newer, gone=_over, valid=_valid, credible=self._is_credible)
        self._rows.on_change(self._on_change)
        self._standing: dict[str, dict[str, Row]] = {}  # name -> agent -> its row
        self._own: dict[str, int] = {}  # names this agent stands for, with the version of its row
        self._version = 0
        self._absent: dict[NodeId, float] = {}  # since when candidates are not listed
        self._timer: Timer | None = None
        self.counts: Counter[str] = Counter()  # misplaced, taken_down, put_up_again, table_full

    def start(self) -> None:
        self._timer = self._host.after(SWEEP_PERIOD * (1 + self._host.random.random()), self._on_sweep)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def stand(self, name: str) -> None:
        """This agent is a candidate. Raises ConfigError if the table is full."""
        me = self._host.me
        self._put(Row(CANDIDATE, name, *me, me.boot, self._version + 1, over=False))
        self._version += 1
        self._own[name] = self._version

    def withdraw(self, name: str) -> None:
        version, me = self._own.pop(name, None), self._host.me
        if version is not None:
            self._hint(Row(CANDIDATE, name, *me, me.boot, version, over=True))

    def lead(self, name: str, number: int) -> None:
        self._hint(Row(LEADER, name, *self._host.me, number, 0, over=False))

    def over(self, name: str, number: int) -> None:
        """This agent led it, and leads it no more."""
        self._hint(Row(LEADER, name, *self._host.me, number, 0, over=True))

    def candidates(self, name: str) -> tuple[NodeId, ...]:
        """All who stand for it, by hash(name, agent): names spread over the members, and all have the same order."""
        rows = self._standing.get(name, {})
        return tuple(rows[agent].life for agent in sorted(rows, key=lambda agent: (_digest(name, agent), agent)))

    def _is_credible(self, value: bytes) -> bool:
        """Of a row that a peer sent: does an honest clock come to its numbers?"""
        assert _highest is not None
        return not is_beyond(_highest(read(value)), self._host.wall)

    def _put(self, row: Row) -> None:
        self._rows.set(_key(row), msgspec.msgpack.encode(row))

    def _hint(self, row: Row) -> None:
        """A row that may be missing: heartbeats say the same to those that must know."""
        try:
            self._put(row)
        except ConfigError:
            self.counts["table_full"] += 1

    def _on_change(self, key: str, before: bytes | None, now: bytes) -> None:
        del before
        row = read(now)
        if key != _key(row):
            self.counts["misplaced"] += 1  # A peer's mistake; it is not counted for a candidate.
            return
        if row.kind == CANDIDATE:
            self._on_candidate(row)
        self._changed(row)

    def _on_candidate(self, row: Row) -> None:
        rows = self._standing.setdefault(row.name, {})
        if not row.over:
            rows[row.agent] = row
            return
        rows.pop(row.agent, None)
        if not rows:
            del self._standing[row.name]
        if row.life == self._host.me and row.minor >= self._own.get(row.name, row.minor + 1):
            self._host.after(0.0, lambda: self._put_up_again(row))  # Others took it down; we are still here.

    def _put_up_again(self, row: Row) -> None:
        if row.name in self._own and self._own[row.name] <= row.minor:
            self.counts["put_up_again"] += 1
            self._version = max(self._version, row.minor) + 1
            self._own[row.name] = self._version
            self._hint(Row(CANDIDATE, row.name, *row.life, row.life.boot, self._version, over=False))

    def _on_sweep(self) -> None:
        """The candidates of lives that are long gone are taken down, or years of restarts would fill the table."""
        self._timer = self._host.after(SWEEP_PERIOD, self._on_sweep)
        now = self._host.now
        lives = dict.fromkeys(row.life for rows in self._standing.values() for row in rows.values())
        gone = [life for life in lives if life != self._host.me and not self._listed(life)]
        self._absent = {life: self._absent.get(life, now) for life in gone}
        for life in gone:
            if now - self._absent[life] >= ABSENT_MAX:
                self._take_down(life)

    def _take_down(self, life: NodeId) -> None:
        rows = [row for rows in self._standing.values() for row in rows.values() if row.life == life]
        self.counts["taken_down"] += len(rows)
        self._rows.update((_key(row), msgspec.msgpack.encode(msgspec.structs.replace(row, over=True))) for row in rows)


def read(value: bytes) -> Row:
    """A row that ``_valid`` has passed."""
    return _DECODER.decode(value)


def _key(row: Row) -> str:
    """Names and agents together are longer than a key may be, so a candidate's key is a digest; its value says whose."""
    return f"l:{row.name}" if row.kind == LEADER else f"c:{_digest(row.name, row.agent)}"


def _digest(name: str, agent: str) -> str:
    return blake2b(f"{name}\0{agent}".encode(), digest_size=DIGEST_BYTES).hexdigest()


def _newer(a: bytes, b: bytes) -> bytes:
    """The join: a total order. Of one candidacy or reign the end is newer than the beginning."""
    return max(a, b, key=_rank)


def _rank(value: bytes) -> tuple[int, int, bool, bytes]:
    row = read(value)
    return row.major, row.minor, row.over, value


def _over(value: bytes) -> bool:
    return read(value).over


def _valid(value: bytes) -> bool:
    """A peer sent it: is it a row at all?"""
    try:
        row = _DECODER.decode(value)
    except UNREADABLE:
        return False
    return (
        row.kind in (CANDIDATE, LEADER)
        and 1 <= len(row.name.encode()) <= NAME_BYTES_MAX
        and 1 <= len(row.agent.encode()) <= AGENT_BYTES_MAX
        and (row.major == row.boot if row.kind == CANDIDATE else row.major >= 1)
    )


_highest = highest_of(Row)
_DECODER = msgspec.msgpack.Decoder(Row)
