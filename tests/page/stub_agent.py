"""Small agents in one process: a real ring on real sockets, a real event hub, and as much of an agent as the HTTP side asks for.

Whole agents are processes, and slow to start; what is tested here is what HTTP and the page make of them. All run on one event loop in a
thread of its own, so that a test can talk to them as anybody would: through a socket.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self, TypeVar

from holdfast.agent.feature import HttpPart, Running, Web
from holdfast.agent.grants.grants import Grants
from holdfast.agent.membership import Side
from holdfast.agent.observe.http import HttpServer
from holdfast.agent.observe.metrics import Metric
from holdfast.agent.socket.events import EventHub
from holdfast.config import Config, check_tags
from holdfast.events import LeaderChanged, LeaderSuspected
from holdfast.features.farewell.agent import FarewellAgent
from holdfast.features.leadership.agent import NoLeadership
from holdfast.features.leadership.http import LeadersAnswer, LeadershipHttp
from holdfast.features.leadership.leaders import Board
from holdfast.features.limits.calls import LimitsReport
from holdfast.features.limits.running import LimitsAgent
from holdfast.features.ring.agent import RingSide
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.features.tickets.missing import NoTickets
from holdfast.features.views.missing import NoViews
from holdfast.host import TAG_ROW, Address, Machine, Member, NodeId
from holdfast.kit.overlay import Overlay
from holdfast.kit.slots import OwnSlots
from holdfast.local.calls import GroupView
from holdfast.net.host import NetHost
from holdfast.wire.seal import Plain

T = TypeVar("T")
PATIENCE = 60.0


class StubLeadership:
    """As much of the machine as is looked at."""

    def candidates(self, name: str) -> tuple[NodeId, ...]:
        return NodeId("kelp", 1), NodeId("reef", 1)


class LeadershipStub(NoLeadership):
    """Missing, until a test says that there is a leader."""

    def __init__(self, agent: StubAgent) -> None:
        super().__init__(agent.seats_missing)
        self.config, self.me, self.view = agent.config, agent.me, agent.view
        self.leadership, self.leaders = StubLeadership(), Board()
        self.is_there = False

    def http(self, web: Web) -> HttpPart:
        return LeadershipHttpStub(web, self)


class LeadershipHttpStub(LeadershipHttp):
    """Shows the stub as soon as it is there; without the numbers of a machine."""

    def __init__(self, web: Web, stub: LeadershipStub) -> None:
        super().__init__(web, None, stub.why)
        self._stub = stub

    def answer(self) -> LeadersAnswer:
        self._running = self._stub if self._stub.is_there else None  # type: ignore[assignment]
        return super().answer()

    def metrics(self) -> Iterable[Metric]:
        return ()

    def _version(self) -> int:
        return self._stub.leaders.version


class ViewsStub(NoViews):
    """Missing, until a test gives it a back end by script and says how this agent uses it."""

    views: Any
    takes_part: bool
    serves: bool
    slot: Any

    def __init__(self, agent: StubAgent) -> None:
        super().__init__(SimpleNamespace(host=agent.host, slots=OwnSlots((), missing=agent.seats_missing)))  # type: ignore[arg-type]
        self._host = agent.host

    @property
    def now(self) -> float:  # type: ignore[override]
        return self._host.now


class LimitsStub(LimitsAgent):
    """Knows no limit, until a test says how its limits are."""

    report: LimitsReport | None = None

    @property
    def has_specs(self) -> bool:
        return self.report is not None

    @property
    def handlers(self) -> Any:
        return SimpleNamespace(report_of=lambda: self.report)


class StubAgent:
    """One member of a ring, and what ``HttpServer`` asks of an agent."""

    def __init__(self, config: Config, host: NetHost, seeds: tuple[Address, ...]) -> None:
        self.config, self.host, self.me = config, host, host.me
        self.side, machines = self.membership_of(seeds)
        self.membership = self.side.standing
        self.seats = None
        self.seats_missing = "seats: none are configured"
        self.ended = False
        self.grants = Grants(host)
        self.events = EventHub(lambda: self.membership.version, host.wall, asyncio.get_running_loop().call_soon)
        host.on_event = self.events.publish
        self.emitted = 0  # not counted here
        self.leadership = LeadershipStub(self)
        self.views = ViewsStub(self)
        farewell: Any = SimpleNamespace(
            host=host, membership=self.membership, life=SimpleNamespace(on_asked_to_leave=lambda: None), config=config
        )
        limits: Any = SimpleNamespace(host=host, config=config, overlay=Overlay())
        self.limits = LimitsStub(limits)
        self.features: dict[str, Running] = {
            "farewell": FarewellAgent(farewell),
            "leadership": self.leadership,
            "tickets": NoTickets(self.seats_missing, config),
            "views": self.views,
            "limits": self.limits,
        }
        for machine in machines:
            host.node.add(machine)
        for each in self.features["farewell"].machines:
            host.node.add(each)

    def membership_of(self, seeds: tuple[Address, ...]) -> tuple[Side, Sequence[Machine]]:
        """What stands for the membership, and all machines that it needs."""
        machines = standalone(self.host, RingConfig(lease=self.config.lease, k=self.config.k, seeds=seeds, found=not seeds))
        self.ring = machines.ring
        return RingSide(self.ring), machines

    @classmethod
    async def start(cls, config: Config, seeds: tuple[Address, ...]) -> Self:
        host = await NetHost.open(NodeId(config.name, 1_700_000_000_000), Address("127.0.0.1", 0), Plain(config.group))
        agent = cls(config, host, seeds)
        host.start()
        agent.set_tags(config.tags)
        agent.membership.publish("holdfast:v", b"0.1.0")
        if seeds:
            agent.membership.join()
        return agent

    @property
    def state(self) -> str:
        return "member" if self.membership.is_member else "joining"

    def view(self) -> GroupView:
        members = self.membership.members()
        positions = tuple(self._position(member) for member in members)
        return GroupView(self.membership.version, self.state, Member(self.me, self.host.address, {}), members, positions)

    def _position(self, member: Member) -> int:
        return next(ring_id.pos for ring_id, entry in self.ring.list.of_name(member.name) if entry.node == member.id)

    def leader_changed(self, name: str, leader: NodeId | None, token: int, at: float) -> None:
        """As an agent does it: the table first, then the event."""
        event = LeaderChanged(name, leader, token)
        self.leadership.is_there = True
        self.leadership.leaders.note(event, at)
        self.events.publish(event)

    def leader_suspected(self, name: str, leader: NodeId, token: int, *, cleared: bool) -> None:
        self.events.publish(LeaderSuspected(name, leader, token, cleared))

    def set_tags(self, tags: Mapping[str, str | None]) -> None:
        check_tags({name: value for name, value in tags.items() if value is not None})
        for name, value in tags.items():
            self.membership.publish(TAG_ROW + name, None if value is None else value.encode())

    def drain(self, done: Callable[[], None]) -> None:
        self.ended = True
        done()

    def info(self) -> dict[str, Any]:
        return {"name": self.me.name, "boot": self.me.boot, "version": "0.1.0", "group": self.config.group}

    def metrics(self) -> dict[str, float]:
        return {"grants_granted": 2.0, "mail_sent": 7.0, "up_seconds": 1.0}

    async def crash(self) -> None:
        """Gone without a word."""
        self.host._stop_turns()
        self.host.streams.abort()
        self.host.datagrams.close()


A = TypeVar("A", bound=StubAgent)


class StubGroup:
    """Agents of one group; the first one serves HTTP."""

    def __init__(self) -> None:
        self.agents: dict[str, StubAgent] = {}
        self.http: HttpServer | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def call(self, work: Callable[[], T]) -> T:
        async def called() -> T:
            return work()

        return self.run(called())

    def add(self, name: str, *, tags: Mapping[str, str] | None = None, lease: float = 0.4, group: str = "orders", **more: Any) -> StubAgent:
        return self.take(StubAgent, Config(group=group, name=name, tags=tags or {}, preset="local", lease=lease, **more))

    def take(self, kind: type[A], config: Config) -> A:
        """An agent of this kind, with these settings."""
        seeds = tuple(agent.host.address for agent in list(self.agents.values())[:3])
        agent = self.run(kind.start(config, seeds))
        self.agents[config.name] = agent
        if config.http:
            self.http = self.run(HttpServer.start(agent))  # type: ignore[arg-type]
        return agent

    @property
    def url(self) -> str:
        assert self.http is not None
        return self.http.url

    def crash(self, name: str) -> None:
        self.run(self.agents.pop(name).crash())

    def settled(self, count: int) -> bool:
        return self.call(lambda: all(len(agent.ring.members()) == count and agent.ring.settled for agent in self.agents.values()))

    def close(self) -> None:
        async def closed() -> None:
            closing: list[Awaitable[None]] = [agent.host.close() for agent in self.agents.values()]
            if self.http is not None:
                await self.http.close()
            await asyncio.gather(*closing)

        self.run(closed())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def stub_group() -> Iterator[StubGroup]:
    group = StubGroup()
    try:
        yield group
    finally:
        group.close()
