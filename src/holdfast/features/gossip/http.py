"""Gossip over HTTP: what this agent's member believes, and its metrics.  Spec: gossip 9, 10; docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from holdfast.agent.membership import HttpSide
from holdfast.agent.observe.metrics import Metric, counter, gauge, histogram, labelled, word
from holdfast.agent.observe.openapi import Parameter, Route
from holdfast.agent.observe.sse import Lists
from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import ConfigError, shown
from holdfast.features.gossip.closeup import GossipMemberAnswer, closeup
from holdfast.features.gossip.field import Field, FieldAnswer
from holdfast.features.gossip.past import Past, PastAnswer
from holdfast.features.gossip.protocol.messages import Status
from holdfast.kit.positions import position_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from holdfast.features.gossip.protocol.node import GossipNode
    from holdfast.host import NodeId

SHOWN_MAX = 64  # members with news in one answer; there may be thousands without
UNHEALTHY_LEAST = 0.05  # what is left of one suspicion after 20 minutes; below it a member has no news
NAME_CHARS_MAX = 255

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
    suspects: int  # of these
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


NAME = Parameter("name", "query", "Name of a member.", {"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX}, required=True)
START = Parameter("start", "query", "From this place on.", {"type": "integer", "minimum": 0, "maximum": MEMBERS_MAX, "default": 0})
LIMIT = Parameter(
    "limit", "query", "At most so many.", {"type": "integer", "minimum": 1, "maximum": MEMBERS_MAX, "default": MEMBERS_MAX}
)  # fmt: skip
ROUTES = (
    Route("GET", "/v1/gossip", "gossip", "What this agent's member of a group that gossips believes.", GossipAnswer),
    Route(
        "GET", "/v1/gossip/field", "gossip_field", "All that this agent remembers, members and those that are gone, by their places.",
        FieldAnswer, parameters=(START, LIMIT), errors=(400,),
    ),
    Route(
        "GET", "/v1/gossip/member", "gossip_member", "One member, as this agent believes it to be.", GossipMemberAnswer,
        parameters=(NAME,), errors=(400, 404),
    ),
    Route("GET", "/v1/gossip/past", "gossip_past", "c, turbulence and suspicions over the last ten minutes.", PastAnswer),
)  # fmt: skip


class GossipHttp(HttpSide):
    """Everything here only looks."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, node: GossipNode) -> None:
        self._web, self._node = web, node
        field, past = self._field, self._past = Field(node), Past(node)
        self.lists = (
            Lists(lambda: field.version, lambda: range(node.table.size), lambda: field.answer(0, MEMBERS_MAX), event="gossip/field"),
            Lists(lambda: past.version, lambda: range(len(past)), past.answer, event="gossip/past"),
        )

    async def gossip(self, request: Request) -> Response:
        return self._web.again("gossip", self.part)  # type: ignore[no-any-return]

    async def gossip_field(self, request: Request) -> Response:
        start, limit = (_number(request, each) for each in (START, LIMIT))
        return self._web.again(f"gossip field {start} {limit}", lambda: self._field.answer(start, limit))  # type: ignore[no-any-return]

    async def gossip_member(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        if not 0 < len(name) <= NAME_CHARS_MAX:
            raise ConfigError(f"name: {len(name)} characters; accepted are 1 to {NAME_CHARS_MAX}")
        return self._web.json(closeup(self._node, name, self._field.place(name)))  # type: ignore[no-any-return]

    async def gossip_past(self, request: Request) -> Response:
        return self._web.again("gossip past", self._past.answer)  # type: ignore[no-any-return]

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
            suspects=len(node.suspicions),
            tombstones=len(node.table.tombstones),
            lhm=node.lhm,
            settled=node.settled(me),
            c=node.c_measured(),
            turbulent=node.turbulent(),
            observed_for=node.observed_for(),
            rtt_p99=node.rtt_p99(),
            suspected=tuple(islice(self._suspected(), SHOWN_MAX)),
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

    def _suspected(self) -> Iterator[Suspected]:
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

        def of(life: NodeId) -> MemberHealth:
            heard = node.core.heard.get(life.name)
            return MemberHealth(life.name, node.unhealthy(life), None if heard is None else now - heard)

        listed = [life for life in node.health.lives() if node.table.lists(life)]
        found = [of(life) for life in listed if node.unhealthy(life) >= UNHEALTHY_LEAST]
        return sorted(found, key=lambda each: (-each.unhealthy, each.name))[:SHOWN_MAX]

    def _compared(self) -> list[Compared]:
        now = self._node.core.host.now
        found = [Compared(name, not look.differing, now - look.at) for name, look in self._node.compared.items()]
        return sorted(found, key=lambda each: each.seconds)[:SHOWN_MAX]


def _number(request: Request, parameter: Parameter) -> int:
    """A parameter that is an integer. Raises ``ConfigError``."""
    schema = parameter.schema
    text = request.query_params.get(parameter.name, str(schema["default"]))
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not schema["minimum"] <= int(text) <= schema["maximum"]:
        raise ConfigError(f"{parameter.name}: {shown(text)}; accepted are {schema['minimum']} to {schema['maximum']}")
    return int(text)


REFUSED = "refused_"  # how the protocol begins the names of these counts
