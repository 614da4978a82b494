"""What a feature adds to a group without an edit of ``Group``: one folder and one line in the list.  docs/decisions.md H214."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast.features
from holdfast.errors import AcquireTimeout, ConfigError, HoldLost, NotAMember
from holdfast.features.mail import calls as mail_calls
from holdfast.local import calls
from holdfast.net.clock import now
from scripts import spell
from tests.client.fake_agent import FakeAgent
from tests.client.spelling import Spelling

CLIENT = '''"""A client of the feature."""

from __future__ import annotations

from holdfast.client.aio.holds import Holding
from holdfast.client.aio.link import Link
from holdfast.features.mail import calls as mail_calls
from holdfast.local import calls


class Turn(Holding):
    """Something that excludes others, for the length of an ``async with`` block."""


class Counter:
    """Made by ``group.counter``; ``await counter.read()`` says how many members there are, and what the agent says of itself."""

    def __init__(self, link: Link, name: str) -> None:
        self.name, self._link = name, link

    async def read(self) -> tuple[int, object]:
        return len(self._link.read().members), await self._link.ask(calls.Info)

    async def tell(self, data: bytes) -> None:
        await self._link.call(mail_calls.Cast, self.name, data)

    def turn(self, timeout: float | None = None) -> Turn:
        return self._link.hold(Turn, "turn", self.name, {}, timeout)


ENTRIES = {"counter": Counter}
'''


@pytest.fixture
def feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with a client for asyncio; the script spells it for threads."""
    folder = tmp_path / "toys" / "counter"
    folder.mkdir(parents=True)
    (folder / "client.py").write_text(CLIENT)
    assert spell.main([str(folder / "client.py")]) == 0
    assert "``counter.read()`` says" in (folder / "client_sync.py").read_text()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(holdfast.features, "FEATURES", (*holdfast.features.FEATURES, "toys.counter.agent:CounterFeature"))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "toys"]:
        del sys.modules[name]


@pytest.fixture
def group(client: Spelling, agent: FakeAgent) -> Iterator[Any]:
    group = client.join("orders", agent=agent.path)
    yield group
    client.run(group.leave)


@pytest.mark.usefixtures("feature")
def test_a_feature_adds_to_a_group(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """H214: it reads the view, asks, and holds, in both spellings; errors are those of every call."""
    agent.answers[calls.Info] = {"version": "1"}
    agent.answers[calls.Acquire] = lambda call: agent.push(call, calls.GrantItem("granted", 7, now() + 60.0, 0))
    counter = client.run(group.counter, "hits")
    assert client.run(counter.read) == (1, {"version": "1"})
    client.run(counter.tell, b"x")
    assert (agent.wait_for(mail_calls.Cast).topic, agent.wait_for(mail_calls.Cast).payload) == ("hits", b"x")
    turn = client.enter(client.run(counter.turn))
    assert (turn.valid, agent.wait_for(calls.Acquire).kind) == (True, "turn")
    client.exit(turn)
    with pytest.raises(HoldLost, match="turn 'hits'"):
        turn.check()
    agent.answers[calls.Acquire] = None
    with pytest.raises(AcquireTimeout):
        client.enter(client.run(counter.turn, 0.05))
    agent.answers[mail_calls.Cast] = ("ConfigError", "because")
    with pytest.raises(ConfigError, match="because"):
        client.run(counter.tell, b"x")
    client.run(group.leave)
    with pytest.raises(NotAMember):
        client.run(counter.read)


@pytest.mark.usefixtures("feature")
def test_what_no_feature_has(group: Any) -> None:
    """H214: an unknown name is an AttributeError that says so; what Python asks for by underscore is not looked for."""
    with pytest.raises(AttributeError, match="'Group' object has no attribute 'countre'; no feature has an entry of that name"):
        _ = group.countre
    assert not hasattr(group, "_counter")
    assert not hasattr(group, "__deepcopy__")
