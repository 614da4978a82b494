"""Gossip over HTTP: what this agent's member believes, and its metrics.  Spec: gossip 9, 10; docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from holdfast.agent.membership import HttpSide
from holdfast.agent.observe.metrics import Metric, counter, gauge, histogram, labelled, word
from holdfast.agent.observe.openapi import Route
from holdfast.features.gossip.protocol.messages import Status
from holdfast.kit.positions import position_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from holdfast.features.gossip.protocol.node import GossipNode
    from holdfast.host import Member

SHOWN_MAX = 64  # members with news in one answer; there may be thousands without

# The texts are for operators who write alerts.
GAUGES = {
    "members": "Members in the list, this one included.",
    "suspects": "Of these, members that are suspected.",
    "tombstones": "Dead members and members that left that are still remembered.",
    "lhm": "Lifeguard's local health multiplier: 0 is healthy; probes are so many times slower, plus one.",
    "rumours": "Rumours that are still sent.",
    "c_measured": "So many lists missed a live member at some time within one bucket of the window.",
    "turbulent": "1 if a live member was missed in the last bucket.",
    "settled": "1 while all others are held to list this member.",
    "rtt_p99": "One in a hundred probes was answered after so many seconds, or later.",
}
NAMED = {"rumours": "rumours_queued", "rtt_p99": "probe_rtt_seconds_p99"}
COUNTERS = {
    "probes_direct": "Probes that the member answered before helpers were asked.",
    "probes_indirect": "Probes that were answered after helpers were asked.",
    "probes_failed": "Probes that were not answered.",
    "suspicions": "Suspicions that began, by own probes and by rumours.",
    "suspicions_cleared": "Suspicions that were refuted.",
    "buried": "Suspicions that ended with a death, by the own timer.",
    "false_positives": "Members held to be dead that were not.",
    "refutations": "Accusations of this member that it refuted.",
    "last_calls": "Last calls to suspected members.",
    "last_calls_answered": "Last calls that were answered.",
    "syncs": "Tables compared.",
    "syncs_equal": "Comparisons of tables that found them equal.",
    "syncs_differing": "Comparisons of tables that found a difference.",
    "syncs_failed": "Comparisons of tables that had no answer.",
}


class Suspected(Struct, frozen=True):
    """A member that is suspected, or was buried lately."""

    name: str
    status: Literal["suspect", "dead"]
    accusers: tuple[str, ...]  # whose probes failed
    confirmed: int  # accusers beside the first
    seconds: float  # since it was suspected, or found dead
    ends_in: float | None  # until it is buried unless it is heard of; None: it was


class MemberHealth(Struct, frozen=True):
    """A member about which there is something to say."""

    name: str
    unhealthy: float  # suspicions of late, decayed; a false death counts twice
    heard: float | None  # seconds since this agent heard from it directly


class Compared(Struct, frozen=True):
    """What the last comparison with a member found."""

    name: str
    equal: bool
    seconds: float  # since then


class GossipTiming(Struct, frozen=True):
    """The numbers that this agent counts with, in seconds."""

    probe: float
    probe_timeout: float
    suspicion_min: float
    suspicion_max: float


class GossipAnswer(Struct, frozen=True):
    """This agent's member in a group that gossips."""

    status: Literal["joining", "member", "left"]
    name: str
    boot: int
    inc: int  # how often it has spoken for itself
    members: int
    tombstones: int
    lhm: int
    settled: bool
    c: int
    turbulent: bool
    observed_for: float
    rtt_p99: float
    suspected: tuple[Suspected, ...]  # at most 64
    unhealthy: tuple[MemberHealth, ...]  # the worst 64
    compared: tuple[Compared, ...]  # at most 64, the latest first
    counters: dict[str, int]
    timing: GossipTiming


ROUTES = (Route("GET", "/v1/gossip", "gossip", "What this agent's member of a group that gossips believes.", GossipAnswer),)


class GossipHttp(HttpSide):
    """Everything here only looks."""

    routes = ROUTES

    def __init__(self, web: Web, node: GossipNode) -> None:
        self._web, self._node = web, node

    async def gossip(self, request: Request) -> Response:
        return self._web.again("gossip", self.part)  # type: ignore[no-any-return]

    def beat(self) -> Mapping[str, GossipAnswer]:
        return {"gossip": self.part()}

    def position_of(self, key: str) -> int:
        return position_of(key)

    def part(self) -> GossipAnswer:
        node = self._node
        me, config = node.core.me, node.config
        return GossipAnswer(
            status="member" if node.is_member else "joining" if node.wanted else "left",
            name=me.name,
            boot=me.boot,
            inc=node.inc,
            members=node.table.n,
            tombstones=len(node.table.tombstones),
            lhm=node.lhm,
            settled=node.settled(me),
            c=node.c_measured(),
            turbulent=node.turbulent(),
            observed_for=node.observed_for(),
            rtt_p99=node.rtt_p99(),
            suspected=tuple(self._suspected())[:SHOWN_MAX],
            unhealthy=tuple(self._unhealthy()),
            compared=tuple(self._compared()),
            counters={name: int(value) for name, value in node.metrics().items() if name in COUNTERS},
            timing=GossipTiming(config.period, config.timeout, config.suspicion_min, config.suspicion_max(node.table.n)),
        )

    def metrics(self) -> Iterable[Metric]:
        numbers = self._node.metrics()
        for name, text in GAUGES.items():
            yield gauge(f"gossip_{NAMED.get(name, name)}", text, float(numbers.get(name, 0.0)))
        for name, text in COUNTERS.items():
            yield counter(f"gossip_{name}_total", text, float(numbers.get(name, 0.0)))
        yield histogram(
            "gossip_probe_rtt_seconds", "Round trips of probes that the member itself answered.", self._node.distances.histogram
        )
        core = self._node.core
        for way, counted in (("sent", core.sent), ("received", core.received)):
            values = {kind.__name__: float(count) for kind, count in counted.items()}
            yield labelled(f"gossip_messages_{way}_total", "counter", f"Messages of gossip that were {way}, by type.", "type", values)
        refused = {name.removeprefix(REFUSED): float(count) for name, count in self._node.counts.items() if name.startswith(REFUSED)}
        yield labelled(
            "gossip_refused_total", "counter", "Entries, rumours and messages of peers that were refused, by reason.", "why",
            {word(name): count for name, count in refused.items()},
        )  # fmt: skip

    def _suspected(self) -> Iterable[Suspected]:
        node, now = self._node, self._node.core.host.now
        for name, suspicion in sorted(node.suspicions.items()):
            confirmers = tuple(suspicion.confirmers)
            yield Suspected(
                name, "suspect", confirmers, max(0, len(confirmers) - 1), now - suspicion.start, max(0.0, suspicion.end_at - now)
            )
        for name, stone in sorted(node.table.tombstones.items(), key=lambda each: -each[1].since):
            entry = node.entry(name)
            if entry is not None and entry.status is Status.DEAD:
                yield Suspected(name, "dead", node.core.accusers.get(name, ()), 0, now - stone.since, None)

    def _unhealthy(self) -> list[MemberHealth]:
        node, now = self._node, self._node.core.host.now

        def of(member: Member) -> MemberHealth:
            heard = node.core.heard.get(member.id.name)
            return MemberHealth(member.id.name, node.unhealthy(member.id), None if heard is None else now - heard)

        found = [of(member) for member in node.members() if node.unhealthy(member.id) > 0]
        return sorted(found, key=lambda each: (-each.unhealthy, each.name))[:SHOWN_MAX]

    def _compared(self) -> list[Compared]:
        now = self._node.core.host.now
        found = [Compared(name, not look.differing, now - look.at) for name, look in self._node.compared.items()]
        return sorted(found, key=lambda each: each.seconds)[:SHOWN_MAX]


REFUSED = "refused_"  # how the protocol begins the names of these counts
