"""What must hold of Rows at every step.  Spec: foundation 4 (Rows): a join, so nothing goes back and nothing comes from nowhere."""

from __future__ import annotations

from collections import defaultdict

from holdfast.events import Event, Internal
from holdfast.host import NodeId
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import Rows
from holdfast.kit.versioned import newest
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class RowSet(Internal, frozen=True):
    """A user of this node set a value."""

    key: str
    value: bytes


class RowChanged(Internal, frozen=True):
    """This node holds another value now."""

    key: str
    before: bytes | None
    value: bytes


class NeverBack(Checker):
    """Every change of a row is upward: the value before never beats the value now."""

    name = "never-back"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RowChanged) and event.before is not None and newest(event.before, event.value) != event.value:
            self.fail(f"{host.me} went back in {event.key!r}")


class NothingInvented(Checker):
    """Whatever a node holds, a node set."""

    name = "nothing-invented"

    def __init__(self) -> None:
        self._set: defaultdict[str, set[bytes]] = defaultdict(set)

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RowSet):
            self._set[event.key].add(event.value)
        elif isinstance(event, RowChanged) and event.value not in self._set[event.key]:
            self.fail(f"{host.me} holds {event.value!r} in {event.key!r}, which nobody set")


class DigestsTrue(Checker):
    """The incremental digest of a table equals one computed from its content: otherwise equal tables would never stop exchanging."""

    name = "digests-true"

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._contents: dict[NodeId, int] = {}

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.dead or not host.node.running:
            return
        table = host.node.use(Exchange).table(self._topic)
        if self._contents.get(host.me) == table.root:
            return
        self._contents[host.me] = table.root
        fresh = _copied(host, table)
        if fresh.hashes != table.hashes:
            self.fail(f"{host.me} has {len(table)} rows whose digest is not that of its content")


def _copied(host: LabHost, table: Rows) -> Rows:
    copy = Rows(host, table.topic, newest, lambda _, keys: None)
    copy.learn(table.read(table.keys()))
    return copy
