"""One member on a fake host, and what peers say to it."""

from __future__ import annotations

from holdfast.features.gossip.protocol import messages as m
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.messages import Rumour, Status
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.table import Base, entry
from holdfast.host import Address, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.fake_host import FakeHost

ALIVE, SUSPECT, DEAD, LEFT = Status


def life(name: str, boot: int = 1) -> NodeId:
    return NodeId(name, boot)


def place(name: str) -> Address:
    return Address(name, 1)


def rumour(
    name: str, inc: int = 0, status: Status = ALIVE, *accusers: str, boot: int = 1,
    rows: dict[str, bytes] | None = None, rows_at: int = 0, ago: int = 0,
) -> Rumour:  # fmt: skip
    return Rumour(life(name, boot), place(name), inc, status, accusers, rows_at, rows, ago)


class Stand:
    """A member called "a" with T = 1 s that has joined; others are in its list by the word of themselves."""

    def __init__(
        self, *others: str, config: GossipConfig | None = None, rules: Rules | None = None, host: FakeHost | None = None, join: bool = True,
        base: Base | None = None, members_max: int = 100,
    ) -> None:  # fmt: skip
        self.host = FakeHost("a") if host is None else host
        broadcast = Broadcast(self.host)
        exchange = Exchange(self.host, broadcast)
        self.node = GossipNode(
            self.host, GossipConfig() if config is None else config, broadcast, exchange,
            rules=rules, base=Base() if base is None else base, members_max=members_max,
        )  # fmt: skip
        broadcast.over(self.node)
        self.node.start()
        if join:
            self.node.join()
        for name in others:
            self.say(name, rumour(name))
        self.clear()

    def say(self, source: str, *rumours: Rumour, boot: int = 1) -> None:
        """A GOSSIP datagram."""
        self.hear(source, m.Gossip(rumours), boot=boot)

    def hear(self, source: str, message: Message, *, boot: int = 1) -> None:
        self.node.on_message(life(source, boot), message)

    def bury(self, *names: str) -> None:
        """Their suspicions end here."""
        for name in names:
            found = self.node.entry(name)
            assert found is not None
            self.node.merge.bury(found)

    def without_probes(self) -> Stand:
        """Nothing but what a test says makes a member suspicious."""
        self.node.prober.stop()
        return self

    def answer_probe(self) -> None:
        """The target of the open probe answers it."""
        probe = self.node.prober.probe
        assert probe is not None
        self.node.on_message(probe.target, m.Ack(probe.seq))

    def clear(self) -> None:
        self.host.sent.clear()
        self.host.emitted.clear()

    def rumours_to(self, name: str) -> list[Rumour]:
        """What the datagrams to this member carried, and forget them."""
        carried: list[Rumour] = []
        for to, message in self.host.sent:
            if isinstance(to, NodeId) and to.name == name and isinstance(message, m.Gossip | m.Ping | m.Ack | m.PingReq):
                carried += message.rumours
        self.host.sent = [sent for sent in self.host.sent if not (isinstance(sent.to, NodeId) and sent.to.name == name)]
        return carried

    def status(self, name: str) -> Status | None:
        found = self.node.entry(name)
        return None if found is None else found.status

    @property
    def names(self) -> list[str]:
        return [member.id.name for member in self.node.members()]

    @property
    def told(self) -> list[str]:
        """Events for users, in words: "Joined b"."""
        return [f"{type(event).__name__} {event.member.id.name}" for event in self.host.emitted if hasattr(event, "member")]


def base_of(*names: str) -> Base:
    return Base(entry(life(name), place(name)) for name in names)
