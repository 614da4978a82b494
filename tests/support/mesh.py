"""A few nodes whose fake hosts are wired together by hand: what is sent can be lost, doubled and shuffled before it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from holdfast.host import Address, Host, Machine, Member, Message, NodeId
from tests.support.fake_host import FakeHost, FakeStorage

ROUNDS_MAX = 200  # of messages that cause messages; more is a conversation that never ends


class Mesh:
    """Nodes a, b, c ..., each with its machines. Messages travel only in ``deliver``."""

    def __init__(self, names: str, build: Callable[[Host, list[Member]], Iterable[Machine]], *, rows: Sequence[str] = ()) -> None:
        self._build = build
        self.members = [Member(NodeId(name, 1), Address(name, 1), dict.fromkeys(rows, b"")) for name in names]
        self.hosts = {name: FakeHost(name, seed=number) for number, name in enumerate(names)}
        self.machines = {name: list(build(host, self.members)) for name, host in self.hosts.items()}
        self.down: set[str] = set()  # names where nobody listens
        self.lose: Callable[[Message], bool] = lambda message: False
        self.sent: list[tuple[str, str, Message]] = []  # everything that ever left: from, to, message

    def start(self) -> None:
        for machines in self.machines.values():
            for machine in machines:
                machine.start()

    def restart(self, name: str, durable: dict[str, bytes] | None) -> None:
        """The next life of a node, with what is left on its disk; None: nothing is. It starts at once."""
        former = self.hosts[name]
        host = FakeHost(name, former.me.boot + 1, storage=FakeStorage(durable, auto=True))
        host.clock = former.clock
        self.hosts[name] = host
        self.machines[name] = list(self._build(host, self.members))
        for machine in self.machines[name]:
            machine.start()

    def pass_time(self, seconds: float) -> None:
        for host in self.hosts.values():
            host.pass_time(seconds)

    def deliver(self, *, random: Random | None = None, loss: float = 0.0, duplicate: float = 0.0) -> None:
        """Until nothing is under way any more. With ``random``: in any order, some lost, some twice."""
        for _ in range(ROUNDS_MAX):
            batch = self._collect()
            if not batch:
                return
            if random is not None:
                batch = [item for item in batch for _ in range((random.random() >= loss) + (random.random() < duplicate))]
                random.shuffle(batch)
            for source, target, message in batch:
                self._receive(source, target, message)
        raise AssertionError("the conversation does not end")

    def _collect(self) -> list[tuple[str, str, Message]]:
        batch = []
        for name, host in self.hosts.items():
            host.pass_time(0)
            batch += [(name, to.name if isinstance(to, NodeId) else to.host, message) for to, message in host.sent]
            host.sent = []
        self.sent += batch
        return [item for item in batch if not self.lose(item[2])]

    def _receive(self, source: str, target: str, message: Message) -> None:
        for machine in () if target in self.down else self.machines[target]:
            if type(message) in machine.handles:
                machine.on_message(self.hosts[source].me, message)
