"""Keys of a living group: changed everywhere while messages travel, and what somebody with another key can do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest

import holdfast.sync
from holdfast.wire.keys import generate, parse_key
from tests.e2e.looking_on import Onlooker, drops, typed
from tests.support.agents import AgentProcess, Fleet, until

LEASE = 1.5  # seconds: nobody shall be put out because the machine under test is busy
GOINGS = {"Suspected", "Decided", "Failed", "Left", "Expelled"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("fleet"), group="keys", lease=LEASE) as fleet:
        yield fleet


class Traffic:
    """Messages from one member to another, one after the other, while the block lasts."""

    def __init__(self, sender: AgentProcess, receiver: AgentProcess) -> None:
        self._from, self._to = sender, receiver
        self._stop = Flag()
        self._thread = Thread(target=self._send)
        self.sent = 0
        self.received: list[bytes] = []
        self._group = holdfast.sync.join(agent=receiver.socket)
        self._messages = self._group.messages()
        self._reader = Thread(target=self._receive)

    def __enter__(self) -> Traffic:
        self._reader.start()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        until(lambda: len(self.received) >= self.sent, f"all of {self.sent} messages arrive; {len(self.received)} did")
        self._group.leave()
        self._reader.join()

    def more(self) -> None:
        """Some more messages have got through since now."""
        before = len(self.received)
        until(lambda: len(self.received) >= before + 5, "messages still get through")

    def _send(self) -> None:
        with holdfast.sync.join(agent=self._from.socket) as group:
            while not self._stop.is_set():
                group.send(self._to.name, str(self.sent).encode(), timeout=30.0)
                self.sent += 1

    def _receive(self) -> None:
        for message in self._messages:
            self.received.append(message.data)


def test_rotation_under_traffic_without_a_departure(fleet: Fleet, tmp_path: Path) -> None:
    """docs/keys.md: install, use, remove, while messages travel. Nobody is even suspected, no message is lost, and afterwards the old
    key opens nothing: whoever has only that one stays outside."""
    agents = fleet.group(4)
    old, new = fleet.settings["key"], generate()
    key = tmp_path / "new"
    key.write_text(new)
    key.chmod(0o600)
    ids = {"old": parse_key(old).id.hex(), "new": parse_key(new).id.hex()}
    with Onlooker(agents[0]) as onlooker, Traffic(agents[1], agents[2]) as traffic:
        for step, word in (("install", str(key)), ("use", ids["new"]), ("remove", ids["old"])):
            report = typed("keys", step, word, "--json", agent=agents[0]).json
            assert {each["name"]: each["done"] for each in report["members"]} == {agent.name: True for agent in agents}, report
            traffic.more()
        members = typed("keys", "list", "--json", agent=agents[3]).json["members"]
        assert {tuple(each["keys"]) for each in members} == {(ids["new"],)}
        assert not GOINGS & onlooker.names()
    assert traffic.received == [str(number).encode() for number in range(traffic.sent)]
    for agent in agents:
        assert old not in agent.stderr
        assert new not in agent.stderr
    _stays_outside(fleet, agents, key=old, why="wrong_key")
    late = fleet.start(name="late", seeds=[agents[0].address], key=new)
    until(lambda: agents[0].said("Joined", member=late.id), "with the new key one may join")


def _stays_outside(fleet: Fleet, agents: list[AgentProcess], *, key: str, why: str) -> None:
    before = drops(agents[0]).get(why, 0)
    stranger = fleet.start(name="stranger", seeds=[agents[0].address], key=key)
    until(lambda: drops(agents[0]).get(why, 0) > before, f"the drops are counted as {why}")
    assert typed("members", "--json", agent=stranger, code=None).json["members"] == []
    assert agents[0].said("Joined", member=stranger.id) is None
    stranger.kill()


def test_a_step_that_would_split_the_group_is_refused(fleet: Fleet) -> None:
    """A key that not everybody holds is not used, the one in use is not removed; the command says so and does not end with 0."""
    agents = [agent for agent in fleet.agents if agent.process.poll() is None] or fleet.group(3)
    unknown = parse_key(generate()).id.hex()
    for step, word in (("use", unknown), ("remove", typed("keys", "list", "--json", agent=agents[0]).json["members"][0]["keys"][0])):
        refused = typed("keys", step, word, agent=agents[0], code=None)
        assert refused.code in (1, 2), refused
        assert refused.out or refused.err
    assert not any(agent.said("Departed") for agent in agents)
