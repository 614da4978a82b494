"""One small agent whose membership is gossip, in a group of thousands that are not there.

The table, the events, the HTTP server and its stream are those of a real agent. The other members are words: rumours as a peer would bring
them. Nothing but these words makes a member suspicious, because T is half a minute: a suspicion takes longer than any test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.agent.membership import Side
from holdfast.config import Config
from holdfast.features.gossip.protocol.messages import Rumour, Status
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.settings import GossipSettings
from holdfast.features.gossip.side import GossipSide
from holdfast.host import Address, Machine, Member, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from tests.page.stub_agent import StubAgent, StubGroup, stub_group
from tests.support.agents import until

PROBE = 30.0  # T
TELLER = NodeId("teller", 1)  # the peer that brings the rumours; no list has it


class GossipStub(StubAgent):
    """An agent with a ``GossipNode``, as ``side.build`` makes it."""

    node: GossipNode

    def membership_of(self, seeds: tuple[Address, ...]) -> tuple[Side, Sequence[Machine]]:
        del seeds
        config = GossipSettings.of(self.config).gossip_config()
        broadcast = Broadcast(self.host)
        exchange = Exchange(self.host, broadcast, ae_period=config.ae_period)
        # No process is behind a name: a burial that is told is believed at once, and no member is asked (H353).
        self.node = GossipNode(self.host, config, broadcast, exchange, rules=Rules(hearsay_asks=False))
        broadcast.over(self.node)
        return GossipSide(self.node), (self.node, broadcast, exchange)

    def _position(self, member: Member) -> int:
        return self.node.positions()[member.id]


class Crowd:
    """The agent "kelp", and a group that it believes in."""

    def __init__(self, group: StubGroup, names: Sequence[str] = (), *, name: str = "kelp") -> None:
        self.group = group
        settings: dict[str, Any] = {"membership": "gossip", "probe": PROBE}
        self.agent = group.take(GossipStub, Config(group="orders", name=name, preset="local", http="127.0.0.1:0", **settings))
        self.node = self.agent.node
        group.call(self.node.join)
        until(lambda: group.call(lambda: self.node.is_member), "a group of one")
        self.incs: dict[str, int] = {}
        self.say(*((each, Status.ALIVE) for each in names))

    def say(self, *words: tuple[str, Status], accusers: tuple[str, ...] = ("reef",), rows: dict[str, bytes] | None = None) -> None:
        """Rumours about members; the word that one lives comes from itself, under a higher number. A member that is dead was suspected, and
        its suspicion is over: the word of another member alone would have it asked first (H353)."""

        def learn(name: str, status: Status) -> None:
            self.incs[name] = inc = self.incs.get(name, 0) + (status is Status.ALIVE)
            life, by = NodeId(name, 1), accusers if status is Status.SUSPECT else ()
            rumour = Rumour(life, Address("127.0.0.1", 20_000 + len(self.incs)), inc, status, by, inc if rows else 0, rows, 0)
            self.node.merge.merge(rumour, life if status is Status.ALIVE else TELLER)

        def merge() -> None:
            for name, status in words:
                learn(name, Status.SUSPECT if status is Status.DEAD else status)
                entry = self.node.entry(name)
                if status is Status.DEAD and entry is not None:
                    self.node.merge.bury(entry)

        self.group.call(merge)


@contextmanager
def crowd(names: Sequence[str] = (), *, name: str = "kelp") -> Iterator[Crowd]:
    with stub_group() as group:
        yield Crowd(group, names, name=name)
