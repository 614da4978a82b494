"""What the parts of one member share: the host, the numbers, the table, who is told of events.  Spec: gossip 2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from holdfast.events import Event, MembershipEvent
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.table import Entry, Table
from holdfast.host import Address, Host, Member, Message, NodeId
from holdfast.kit.outbox import Outbox


class Core:
    """The state that several parts read. Each part changes its own; the table is changed by ``merge`` alone."""

    def __init__(self, host: Host, config: GossipConfig, rules: Rules, table: Table) -> None:
        self.host, self.config, self.rules, self.table = host, config, rules, table
        self.me = host.me
        self.name = host.me.name
        self.lhm = 0  # Lifeguard's local health multiplier; 0 is healthy
        self.sick_since: float | None = None  # above half of its limit
        self.is_member = False
        self.turns = 0  # how often that changed
        self.is_leaving = False
        self.active = False  # joining, or a member: it probes, gossips and merges
        self.outbox = Outbox(host)
        self.subscribers: list[Callable[[MembershipEvent], None]] = []
        self.heard: dict[str, float] = {}  # last_direct: by name, the last datagram of its present life; the oldest first
        self.accusers: dict[str, tuple[str, ...]] = {}  # of those who are SUSPECT or DEAD: whose probes failed
        self.counts: Counter[str] = Counter()  # what happened, by name
        self.sent: Counter[type[Message]] = Counter()
        self.received: Counter[type[Message]] = Counter()

    @property
    def n(self) -> int:
        """Members that are listed, this one included."""
        return self.table.n

    @property
    def stretch(self) -> int:
        """What the period and the timeout of a probe are multiplied by."""
        return self.lhm + 1

    def set_member(self, is_member: bool) -> None:
        """Begin, or end, the list that users see."""
        self.turns += is_member != self.is_member
        self.is_member = is_member

    def worsen(self, by: int) -> None:
        """Change lhm by so much: this process looks sicker (``by`` > 0), or less so."""
        self.lhm = min(self.config.lhm_max, max(0, self.lhm + by))
        if not self.sick:
            self.sick_since = None
        elif self.sick_since is None:
            self.sick_since = self.host.now

    @property
    def sick(self) -> bool:
        return self.lhm > self.config.lhm_max / 2

    def is_other(self, each: Entry) -> bool:
        return each.member.id.name != self.name

    def meet(self, member: Member) -> None:
        """The host is told of an address when its member is first written to, not for the whole list (gossip D22)."""
        self.outbox.meet(member)

    def send(self, to: Member, message: Message) -> None:
        """Send to a member of the list, at once."""
        self.outbox.meet(to)
        self.count_out(message)
        self.host.send(to.id, message)

    def answer(self, to: NodeId | Address, message: Message) -> None:
        """Send to a peer that has just been heard, or to a place that is not a member's."""
        self.count_out(message)
        self.host.send(to, message)

    def put(self, to: Member, message: Message) -> None:
        """Send in a callback of its own, where many are written to at once (gossip D23)."""
        self.count_out(message)
        self.outbox.put_member(to, message)

    def count_out(self, message: Message) -> None:
        self.sent[type(message)] += 1

    def announce(self, event: MembershipEvent) -> None:
        """Tell users and machines on this membership of a change of the list; the list has changed before."""
        self.host.emit(event)
        self.tell(event)

    def tell(self, event: MembershipEvent) -> None:
        for subscriber in tuple(self.subscribers):
            subscriber(event)

    def emit(self, fact: Event) -> None:
        self.host.emit(fact)
