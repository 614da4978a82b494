"""200 clients of one agent while the whole fleet restarts.  H342; docs/client.md (Costs and limits)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.aio import group as aio
from holdfast.client.aio.group import Group
from holdfast.client.conversation import Conversation
from holdfast.events import EventsLost, Failed, Joined, Updated
from holdfast.host import Address, Member, NodeId
from holdfast.local import calls
from tests.agent.live import Live
from tests.support.agents import DEADLINE, Fleet, until
from tests.support.static_membership import StaticMembership, plugged_in

CLIENTS = 200
AT_ONCE = 25  # members that fail, or come back, within one turn
MARK_INTERVAL = 0.5  # seconds
# Of each membership: no member is put out because the machine under test is busy. With gossip the shortest suspicion is 2.5 T.
PATIENT: dict[str, dict[str, float]] = {"ring": {"lease": 1.5}, "gossip": {"probe": 1.0}}


class Crowd:
    """The member list of an agent, as a test says it is."""

    def __init__(self, live: Live, count: int) -> None:
        standing = live.agent.membership
        assert isinstance(standing, StaticMembership)
        self._live, self._standing = live, standing
        (self._me,) = standing.members()
        self._others = {name: Member(NodeId(name, 1), Address("10.0.0.5", 7946), {"tag:zone": b"eu"}) for name in _names(count)}
        standing.members = lambda topic=None: tuple(sorted((self._me, *self._others.values()), key=lambda member: member.id))  # type: ignore[method-assign]
        live.turn(lambda: self._changed([]))

    def restart(self) -> None:
        """Some at once fail, and come back as new lives, until all did."""
        names = list(self._others)
        for at in range(0, len(names), AT_ONCE):
            some = names[at : at + AT_ONCE]
            self._live.turn(lambda: self._changed([Failed(self._others.pop(name), certain=True) for name in some]))  # noqa: B023 - called here
            self._live.turn(lambda: self._changed([self._back(name) for name in some]))  # noqa: B023 - called here
        self.mark()

    def mark(self) -> None:
        """An event behind all others. It may be among those that a client loses, so it is told again."""
        self._live.turn(lambda: self._changed([Updated(self._me)]))

    def _back(self, name: str) -> Joined:
        self._others[name] = Member(NodeId(name, 2), Address("10.0.0.5", 7946), {"tag:zone": b"us"})
        return Joined(self._others[name])

    def _changed(self, events: list[Any]) -> None:
        self._standing._changes += 1
        for event in events:
            self._live.agent.host.emit(event)


def _names(count: int) -> list[str]:
    return [f"web-{number:04}" for number in range(count)]


@asynccontextmanager
async def attached(path: str, group: str, **options: Any) -> AsyncIterator[list[Group]]:
    """So many programs of one machine, each with a connection of its own."""
    groups = [await aio.join(group, agent=path, **options) for _ in range(CLIENTS)]
    try:
        yield groups
    finally:
        await asyncio.gather(*(each.leave() for each in groups))


async def all_hold(groups: list[Group], holds: Callable[[Group], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not all(holds(each) for each in groups):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("members", [100, pytest.param(1000, marks=pytest.mark.nightly)])
def test_200_clients_hear_a_fleet_restart(members: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H342: each of 200 clients hears every death and every return, or how many events it lost, and then has the list; none is sent
    away, and none asks for the list while it keeps up."""
    plugged_in(monkeypatch, {"solo": Address("127.0.0.1", 1)})
    with Live(tmp_path, name="solo", bind="127.0.0.1:0", seeds=["127.0.0.1:1"], state_dir=str(tmp_path / "state")) as live:
        until(lambda: live.call(lambda: live.agent.view().state) == "member", "it is a member")
        crowd = Crowd(live, members)
        asyncio.run(_heard(live, crowd, members, asked_by(monkeypatch)))


def asked_by(monkeypatch: pytest.MonkeyPatch) -> Counter[type[calls.Call]]:
    """How often clients of this process asked what."""
    begin, asked = Conversation.begin, Counter[type[calls.Call]]()

    def noted(self: Conversation, kind: type[calls.Call], *rest: Any, **options: Any) -> bytes:
        asked[kind] += 1
        return begin(self, kind, *rest, **options)

    monkeypatch.setattr(Conversation, "begin", noted)
    return asked


async def _heard(live: Live, crowd: Crowd, members: int, asked: Counter[type[calls.Call]]) -> None:
    async with attached(live.path, "live") as groups:
        before = Counter(asked)
        counting = [asyncio.create_task(_counted(each)) for each in groups]
        await asyncio.sleep(0)
        await asyncio.to_thread(crowd.restart)
        async with asyncio.timeout(DEADLINE):
            while (await asyncio.wait(counting, timeout=MARK_INTERVAL))[1]:
                await asyncio.to_thread(crowd.mark)
        counts = [each.result() for each in counting]
        listed = [(member.name, member.id.boot) for member in groups[0].members if member.name != "solo"]
        assert listed == [(name, 2) for name in _names(members)]
        assert all(each.members == groups[0].members for each in groups)
        assert all(came == 2 * members if not lost else came + lost >= 2 * members for came, lost in counts), counts
        assert live.call(lambda: live.server.clients) == CLIENTS
        assert live.call(lambda: live.agent.events.lost) or asked == before, asked - before


async def _counted(group: Group) -> tuple[int, int]:
    """Deaths and returns that were heard of, and events that were lost, until the event that comes last."""
    came = lost = 0
    async for event in group.watch():
        if isinstance(event, Updated):
            break
        came += isinstance(event, Failed | Joined)
        lost += event.count if isinstance(event, EventsLost) else 0
    return came, lost


@pytest.mark.parametrize("membership", PATIENT)
def test_200_clients_come_back_after_a_fleet_restart(membership: str, tmp_path: Path) -> None:
    """H342, H193, issue 17, 4: all agents are killed and started again; every client attaches to the new life of its agent and lists all
    new lives."""
    with Fleet(tmp_path, group="test", membership=membership, log_level="warning", **PATIENT[membership]) as fleet:
        former = fleet.start(name="a0", socket=str(tmp_path / "s"))
        old = [former, *(fleet.start(name=f"a{number}", seeds=[former.address]) for number in (1, 2))]
        asyncio.run(_came_back(fleet, old))


async def _came_back(fleet: Fleet, old: list[Any]) -> None:
    async with attached(old[0].socket, "test", reconnect=True) as groups:
        await all_hold(groups, lambda group: len(group.members) == len(old))
        for agent in old:
            agent.kill()
        await all_hold(groups, lambda group: group.state == "lost")
        first = await asyncio.to_thread(lambda: fleet.start(name="a0", socket=old[0].socket, bind=old[0].address))
        rest = [
            await asyncio.to_thread(lambda: fleet.start(name=each.name, bind=each.address, seeds=[first.address]))  # noqa: B023 - awaited here
            for each in old[1:]
        ]
        lives = {agent.id for agent in (first, *rest)}
        await all_hold(groups, lambda group: {str(member.id) for member in group.members} == lives)
        assert {group.state for group in groups} == {"member"}
