"""The ring over HTTP: this agent's own part of it, its metrics, the ids in its facts.  docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from holdfast.agent.membership import HttpSide, Leases
from holdfast.agent.observe.http_views import hex_of, turn_of
from holdfast.agent.observe.metrics import Metric, counter, gauge, labelled, word
from holdfast.agent.observe.openapi import Route
from holdfast.features.ring.protocol.ids import RingId, position_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from holdfast.features.ring.protocol.pair import Pair
    from holdfast.features.ring.protocol.ring import RingNode
    from holdfast.host import NodeId

DEPARTED = "departed: "  # how the ring begins the names of these counts

# The texts are for operators who write alerts.
RING_GAUGES = {
    "member": "1 while this agent is a member of a ring.",
    "members": "Members in the list.",
    "tombstones": "Memberships that are over and still remembered.",
    "pairs_dormant": "Pairs that are being opened.",
    "pairs_half": "Pairs in which this agent is obliged, not entitled.",
    "pairs_active": "Pairs in which this agent is obliged and entitled.",
    "pairs_suspected": "Pairs whose lease ran out.",
    "upgrades_pending": "Arbitrator groups that are proposed, not confirmed.",
    "group_size_max": "Members of the largest arbitrator group.",
    "links_relayed": "Peers that are reached only through others now.",
    "links_broken": "Peers that have been reached only through others for long.",
    "lease_rtt_max": "Longest round trip of the last sessions, seconds.",
    "safe_for": "Seconds for which no member treats this agent as gone; missing while it is alone, or no member.",
    "safe_for_least": "The least of these that was ever seen.",
    "arbitration_seconds_last": "Seconds that the last arbitration took.",
    "unmet": "Neighbours without a pair.",
    "generation": "Fencing generation.",
}
RING_SECONDS = {"lease_rtt_max": "lease_rtt_seconds_max", "safe_for": "safe_for_seconds", "safe_for_least": "safe_for_seconds_least"}
RING_COUNTERS = {
    "lists_compared": "Tables compared with a peer's: the member list, and what features share.",
    "lists_differed": "Of these, tables that differed.",
    "suspicions": "Leases on peers that ran out.",
    "arbitrations": "Arbitrations that this agent asked for.",
    "arb_addressed": "Arbitrators that were asked, all arbitrations together.",
    "wins": "Arbitrations that it won.",
    "losses": "Arbitrations that it lost.",
    "lease_retries": "Lease requests that were sent again.",
    "relays_asked": "Lease requests sent through other members.",
    "relays_needed": "Sessions that were kept only through others.",
    "links_reported": "Links that were reported as broken.",
    "upgrades": "Arbitrator groups that this agent proposed.",
    "malformed": "Messages of members that contradict themselves.",
}


class Place(Struct, frozen=True):
    """A position on the ring, and who sits there; the name is None where the id is not known."""

    name: str | None
    position: str
    turn: float


class PairAnswer(Struct, frozen=True):
    """This agent's side of one pair: its lease on a peer."""

    peer: str
    position: str
    turn: float
    state: Literal["dormant", "half", "active"]  # neither obliged nor entitled; obliged; both
    opener: bool
    closing: bool
    epoch: int
    session: int  # grows by one per lease period
    acked: bool  # in this session
    age: float  # seconds since the nominal start of the last session that was acked
    rtt: float | None
    relayed: int  # sessions in a row that only reached it through others
    suspected: float | None  # for so many seconds
    group: tuple[str, ...]  # the arbitrators of this pair, by name
    group_version: int
    group_pending: bool  # another group is proposed


class Condemned(Struct, frozen=True):
    """A peer against which the arbitrators decided, until it is declared out."""

    peer: str
    seconds: float  # since acking stopped
    declared_in: float  # seconds until it is declared


class Timing(Struct, frozen=True):
    """The numbers of the ring, in seconds."""

    lease: float
    arbitration: float
    wait: float  # from the end of acking to the declaration
    bound: float  # from a crash until it is out and every monitor knows: T_a + 4 T_l
    neighbours: int  # per side


class RingAnswer(Struct, frozen=True):
    """This agent's own part of the ring."""

    status: Literal["new", "joining", "member", "left"]
    ring: str
    id: str
    position: str
    turn: float
    generation: int
    settled: bool
    safe_for: float | None  # seconds for which no member treats this agent as gone; None: no limit, or no member
    neighbours: tuple[Place, ...]
    pairs: tuple[PairAnswer, ...]
    condemned: tuple[Condemned, ...]
    timing: Timing


ROUTES = (Route("GET", "/v1/ring", "ring", "This agent's own part of the ring: neighbours, leases, suspicions.", RingAnswer),)


class RingHttp(HttpSide):
    """Everything here only looks."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, ring: RingNode) -> None:
        self._web, self._ring = web, ring

    async def ring(self, request: Request) -> Response:
        return self._web.again("ring", self.part)  # type: ignore[no-any-return]

    def beat(self) -> Mapping[str, RingAnswer]:
        return {"ring": self.part()}

    def since(self) -> Mapping[NodeId, float]:
        """A member that was only heard of by a neighbour has told no other member yet when it came."""
        entries = self._ring.list.entries.values()
        return {entry.node: entry.since for entry in entries if entry.since > 0 and isfinite(entry.since)}

    def position_of(self, key: str) -> int:
        return position_of(key)

    def part(self) -> RingAnswer:
        ring, config = self._ring, self._ring.config
        return RingAnswer(
            status=ring.status.name.lower(),  # type: ignore[arg-type]
            ring=hex_of(ring.ring),
            id=str(ring.id),
            position=hex_of(ring.id.pos),
            turn=turn_of(ring.id.pos),
            generation=ring.fencing.gen,
            settled=ring.is_member and ring.settled,
            safe_for=self._safe_for(),
            neighbours=tuple(self._place(each) for each in ring.nbrs),
            pairs=tuple(self._pair(pair) for _, pair in sorted(ring.pairs.items())),
            condemned=tuple(self._condemned(peer, stop) for peer, stop in sorted(ring.condemned.items())),
            timing=Timing(config.lease, config.t_a, config.wait, config.t_a + 4 * config.lease, config.k),
        )

    def leases(self) -> Leases:
        ring = self._ring
        return Leases(
            max((pair.rtt for pair in ring.pairs.values() if pair.rtt), default=None),
            self._safe_for(),
            ring.config.t_arb,
            ring.config.lease,
        )

    def plain(self, value: Any) -> Any:
        return self._place_fields(value) if isinstance(value, RingId) else None

    def metrics(self) -> Iterable[Metric]:
        ring = self._ring
        numbers = ring.metrics()
        endless = {"safe_for": not isfinite(ring.safe_until), "safe_for_least": not isfinite(ring.safe_for_least)}
        for name, text in RING_GAUGES.items():
            if name in numbers and not endless.get(name, False):
                yield gauge(f"ring_{RING_SECONDS.get(name, name)}", text, numbers[name])
        counts = {**dict.fromkeys(RING_COUNTERS, 0.0), **{name: float(count) for name, count in ring.counts.items()}}
        counts.update({name: numbers[name] for name in ("lists_compared", "lists_differed") if name in numbers})
        departures = {name.removeprefix(DEPARTED): count for name, count in counts.items() if name.startswith(DEPARTED)}
        for name in sorted(counts.keys() - {DEPARTED + reason for reason in departures}):
            text = RING_COUNTERS.get(name, f"What the ring counts as {name!r}.")
            yield counter(f"ring_{word(name)}_total", text, counts[name])
        yield labelled("ring_departures_total", "counter", "Memberships of this agent that ended, by reason.", "reason", departures)

    def _safe_for(self) -> float | None:
        safe_for = self._ring.safe_until - self._ring.raw.now
        return safe_for if isfinite(safe_for) else None

    def _name_of(self, ring_id: RingId) -> str | None:
        if ring_id == self._ring.id:
            return self._ring.raw.me.name
        peer = self._ring.list.peer(ring_id)
        return None if peer is None else peer.node.name

    def _place(self, ring_id: RingId) -> Place:
        return Place(self._name_of(ring_id), hex_of(ring_id.pos), turn_of(ring_id.pos))

    def _place_fields(self, ring_id: RingId) -> dict[str, Any]:
        return {"name": self._name_of(ring_id), "position": hex_of(ring_id.pos), "turn": turn_of(ring_id.pos)}

    def _pair(self, pair: Pair) -> PairAnswer:
        now = self._ring.raw.now
        return PairAnswer(
            peer=pair.peer.node.name,
            position=hex_of(pair.peer.id.pos),
            turn=turn_of(pair.peer.id.pos),
            state=pair.state.name.lower(),  # type: ignore[arg-type]
            opener=pair.opener,
            closing=pair.closing,
            epoch=pair.epoch,
            session=pair.n,
            acked=pair.acked,
            age=max(0.0, now - pair.est),
            rtt=pair.rtt or None,
            relayed=pair.relayed,
            suspected=None if pair.susp is None else max(0.0, now - pair.susp),
            group=self._names(pair.cfg),
            group_version=pair.ver,
            group_pending=pair.next is not None,
        )

    def _names(self, ids: Iterable[RingId]) -> tuple[str, ...]:
        return tuple(sorted(self._name_of(each) or str(each) for each in ids))

    def _condemned(self, peer: RingId, stop: float) -> Condemned:
        seconds = max(0.0, self._ring.raw.now - stop)
        return Condemned(self._name_of(peer) or str(peer), seconds, max(0.0, self._ring.config.wait - seconds))
