"""Members that do what a script calls: what the lab's own golden traces run."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.host import Host, Machine, NodeId
from holdfast.lab.scenario import Setup
from tests.lab.machines import Ping, Quiet, address
from tests.lab.own_scenario import OwnScenario


class Talker(Quiet):
    """Can be told what to do."""

    def __init__(self, host: Host, mood: str) -> None:
        super().__init__(host)
        self.mood = mood
        self.leader: NodeId | None = None

    def say(self, to: str, number: int) -> None:
        self.host.send(address(to), Ping(number))

    def follow(self, name: str) -> None:
        self.leader = NodeId(name, 1)

    def keep(self) -> None:
        self.host.storage.save("k", b"v", lambda: None)


class Talking(OwnScenario):
    """Members that obey the script."""

    name = "own/talking"

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return [Talker(host, str(setup.parameters["mood"]))]


SCENARIO = Talking()
