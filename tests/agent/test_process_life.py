"""One life of an agent inside the test's own loop: states, views, tags, keys, joining and leaving as a client asks for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.life.agent import LEFT_POLL, Agent, Ending
from holdfast.agent.life.home import Home
from holdfast.agent.observe.logs import Log
from holdfast.config import Config
from holdfast.errors import ConfigError, JoinFailed
from holdfast.features.tickets.protocol.values import ANCHOR, Key, Status
from holdfast.features.tickets.running import TicketAgent
from holdfast.host import MemberStatus
from holdfast.kit.hold import LossReason
from holdfast.wire.keys import Keyring, generate, parse_key
from tests.support.realtime import eventually, run

KEY = generate()


@asynccontextmanager
async def living(folder: Path, **settings: Any) -> AsyncIterator[Agent]:
    """An agent that was started, without a process and a local socket around it."""
    config = Config(**{"preset": "local", "bind": "127.0.0.1:0", "key": KEY, "group": "life", **settings})
    home = Home.open(config, {"HOLDFAST_RUNTIME_DIR": str(folder / "run")})
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123, ASYNC230 - a place for its log
        agent = await Agent.open(home, Log(fd=nowhere.fileno()))
        agent.start()
        try:
            yield agent
        finally:
            await agent.close()
            home.close()


def in_turn(agent: Agent, step: Callable[[], object]) -> None:
    """As clients do: through the host's turns."""

    def posted() -> None:
        step()

    agent.host.post(posted)


async def member(*agents: Agent) -> None:
    await eventually(lambda: all(len(agent.view().members) == len(agents) for agent in agents), f"{len(agents)} are a group")


async def left(agent: Agent) -> None:
    done: list[int] = []
    in_turn(agent, lambda: agent.leave(lambda: done.append(1)))
    await eventually(lambda: done, "it has left")


def test_states_and_views(tmp_path: Path) -> None:
    """joining, member, leaving, left; the view is the same object until something changes, and its version only grows."""

    async def scenario() -> None:
        async with living(tmp_path, name="a", tags={"zone": "eu"}) as agent:
            first = agent.view()
            assert (first.state, first.members, first.me.tags) == ("joining", (), {"zone": "eu"})
            assert agent.view() is first
            await member(agent)
            second = agent.view()
            assert (second.state, [each.name for each in second.members], len(second.positions)) == ("member", ["a"], 1)
            assert second.version > first.version
            assert second.me == second.members[0]
            seen: list[str] = []
            in_turn(agent, lambda: agent.leave(lambda: seen.append(agent.state)))
            in_turn(agent, lambda: seen.append(agent.state))
            await eventually(lambda: len(seen) == 2, "it has left")
            assert seen == ["leaving", "left"]
            assert agent.view().members == ()
            assert agent.view().version > second.version
            assert not agent.over.done()

    run(scenario())


def test_leave_with_end_ends_the_life(tmp_path: Path) -> None:
    """``done`` first, then the end: an answer can still be written."""

    async def scenario() -> None:
        async with living(tmp_path) as agent:
            await member(agent)
            order: list[str] = []
            in_turn(agent, lambda: agent.leave(lambda: order.append("ended" if agent.over.done() else "done"), end=True))
            assert await agent.over is Ending.LEFT
            assert order == ["done"]

    run(scenario())


def test_tickets_are_given_back_before_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tickets 9.6: an agent whose clients have stopped stays until what they held is written as free."""

    async def scenario() -> None:
        async with living(tmp_path, key="", state_dir=str(tmp_path / "state")) as agent:  # its own seat (F12)
            await member(agent)
            running = agent.features["tickets"]
            assert isinstance(running, TicketAgent)
            tickets, holder, order = running.tickets, RecordingHolder(), list[str]()
            in_turn(agent, lambda: agent.grants.kinds["ticket"].acquire("x", {"of": 1}, holder))
            await eventually(lambda: holder.token, "it holds the ticket")
            with monkeypatch.context() as deaf:
                deaf.setattr(tickets.guardian, "on_message", lambda *message: None)
                in_turn(agent, tickets.pool_table["x"].candidates[0].release)
                in_turn(agent, lambda: agent.leave(lambda: order.append(f"{len(tickets.coordinators)} left")))
                await asyncio.sleep(10 * LEFT_POLL)  # A ring of one is left within a few turns.
                assert (agent.state, order, tickets.guardian.draining) == ("leaving", [], True)
            await eventually(lambda: order, "it has left")
            assert order == ["0 left"]
            cell = tickets.guardian.cells[Key("x", ANCHOR, 0)]
            assert cell.val is not None
            assert cell.val.status is Status.FREE

    run(scenario())


class RecordingHolder:
    """Whoever asked."""

    token = 0

    def on_queued(self, position: int, why: str = "") -> None:
        """Nobody waits."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.token = token

    def on_extended(self, deadline: float) -> None:
        """As expected."""

    def on_at_risk(self) -> None:
        """Its guardian is deaf."""

    def on_lost(self, reason: LossReason) -> None:
        """It is over."""


def test_tags(tmp_path: Path) -> None:
    """Changed one by one, None removes; everybody sees them; what cannot be published changes nothing."""

    async def scenario() -> None:
        async with living(tmp_path, name="a", tags={"zone": "eu"}) as a, living(tmp_path, name="b", seeds=(str(a.host.address),)) as b:
            await member(a, b)
            in_turn(a, lambda: a.set_tags({"zone": None, "rack": "7"}))
            await eventually(lambda: b.view().members[0].tags == {"rack": "7"}, "b sees a's tags")
            with pytest.raises(ConfigError, match="tags: 'a b' is no name of a tag"):
                a.set_tags({"a b": "x", "rack": "8"})
            assert a.tags == {"rack": "7"}
            assert b.view().members[0].rows["holdfast:v"]
            assert b.view().members[0].status is MemberStatus.ALIVE

    run(scenario())


def test_join_as_a_client_asks(tmp_path: Path) -> None:
    """An agent that is alone can be told where the group is; one that is in a group, or leaving one, says what to do first."""

    async def scenario() -> None:
        async with living(tmp_path, name="a") as a, living(tmp_path, name="b") as b:
            await eventually(lambda: a.state == b.state == "member", "each is in a ring of its own")
            done: list[int] = []
            in_turn(b, lambda: b.join([str(a.host.address)], lambda: done.append(1)))
            await eventually(lambda: done, "b is a member")
            await member(a, b)
            with pytest.raises(JoinFailed, match="leave it first"):
                a.join([str(b.host.address)], lambda: None)
            await left(b)
            await member(a)
            with pytest.raises(ConfigError, match="seeds: none"):
                b.join([], lambda: None)
            in_turn(b, lambda: b.join([str(a.host.address)], lambda: done.append(2)))
            await member(a, b)

    run(scenario())


def test_what_the_lock_proves(tmp_path: Path) -> None:
    """F6: sole_life only in a directory that led this name before, and only when nobody of the name answered."""
    seen = []

    async def scenario() -> None:
        async with living(tmp_path, name="a", state_dir=str(tmp_path / "state")) as agent:
            seen.append(agent.membership.sole_life)
            await agent.named
            seen.append(agent.membership.sole_life)

    run(scenario())
    run(scenario())
    assert seen == [False, False, False, True]


def test_rekey_is_kept(tmp_path: Path) -> None:
    """A rotation is on disk before it is used, and the next life begins with it."""
    new = parse_key(generate())

    async def rotate() -> None:
        async with living(tmp_path, state_dir=str(tmp_path / "state")) as agent:
            assert agent.keyring is not None
            agent.rekey(Keyring(new, *agent.keyring.keys))

    async def again() -> None:
        async with living(tmp_path, state_dir=str(tmp_path / "state")) as agent:
            assert agent.keyring is not None
            assert agent.keyring.primary == new
            assert len(agent.keyring.keys) == 2
            assert KEY not in str(agent.info())

    async def plain() -> None:
        async with living(tmp_path, key="") as agent:
            assert agent.keyring is None
            with pytest.raises(ConfigError, match="key_file: this group has no key"):
                agent.rekey(Keyring(new))

    run(rotate())
    run(again())
    run(plain())


def test_seats(tmp_path: Path) -> None:
    """F12: the seats of a lone agent, of literal seeds, and the text that says what is missing."""

    async def scenario() -> None:
        async with living(tmp_path, key="") as alone:
            assert alone.seats is not None
            assert alone.seats.own == 0
        async with living(tmp_path, seeds=("127.0.0.1:9", "127.0.0.1:10")) as other:
            assert other.seats is not None
            assert (len(other.seats.slots), other.seats.own) == (1, None)
        async with living(tmp_path) as unknown:
            assert (unknown.seats, unknown.seats_missing[:27]) == (None, "seats: who are the seats? T")
        async with living(tmp_path, seeds=("seeds.example:7946",)) as named:
            assert named.seats is None
            assert "'seeds.example:7946' is no IP:PORT" in named.seats_missing

    run(scenario())


def test_a_bug_in_a_machine_ends_the_life(tmp_path: Path) -> None:
    """A handler that raises leaves nobody knows what behind: the life is over, with the exception."""

    async def scenario() -> None:
        async with living(tmp_path) as agent:
            in_turn(agent, lambda: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                await agent.over

    run(scenario())


def test_numbers(tmp_path: Path) -> None:
    """What ``info`` and ``metrics`` say is plain, and the settings in it have no secret."""

    async def scenario() -> None:
        async with living(tmp_path, name="a") as agent:
            await member(agent)
            info, metrics = agent.info(), agent.metrics()
            assert (info["name"], info["state"], info["members"], info["settings"]["key"]) == ("a", "member", 1, "(hidden)")
            assert metrics["ring_member"] == 1.0
            assert all(isinstance(value, float) for value in metrics.values())

    run(scenario())
