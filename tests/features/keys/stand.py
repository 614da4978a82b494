"""Members with keyrings on fake hosts, and one operator."""

from __future__ import annotations

from holdfast.features.keys.protocol.keys import KeyKeeper, Report
from holdfast.host import Host, Machine, Member, NodeId
from tests.features.keys.fake_keys import FakeKeys
from tests.support.fake_members import FakeMembers
from tests.support.mesh import Mesh

OLD, NEW = "00000001", "00000002"
NEW_KEY = NEW + "secret"
A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
TIMEOUT = 4.0


class Group:
    """Members with keyrings, and one operator."""

    def __init__(self, names: str = "abc", *held: str) -> None:
        self.keys = {name: FakeKeys(*(held or (OLD,))) for name in names}
        self.members: dict[str, FakeMembers] = {}
        self.mesh = Mesh(names, self._build)
        self.reports: list[tuple[Report, ...]] = []

    def _build(self, host: Host, members: list[Member]) -> list[Machine]:
        self.members[host.me.name] = FakeMembers(*(each.id for each in members))
        return [KeyKeeper(host, self.members[host.me.name], self.keys[host.me.name], sealed=True)]

    def keeper(self, name: str = "a") -> KeyKeeper:
        machine = self.mesh.machines[name][0]
        assert isinstance(machine, KeyKeeper)
        return machine

    def ask(self, action: str, key: str = "", *, force: bool = False, by: str = "a") -> None:
        self.keeper(by).ask(action, key, TIMEOUT, self.reports.append, force=force)

    def step(self, action: str, key: str = "", *, force: bool = False, by: str = "a") -> dict[str, Report]:
        """One step, played to its end."""
        self.ask(action, key, force=force, by=by)
        for _ in range(20):
            self.mesh.deliver()
            self.mesh.pass_time(0.25)
        return {report.member.name: report for report in self.reports.pop(0)}


def done(reports: dict[str, Report]) -> dict[str, bool]:
    return {name: report.done for name, report in reports.items()}


ALL, NOBODY = dict.fromkeys("abc", True), dict.fromkeys("abc", False)
