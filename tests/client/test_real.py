"""The client with real agents, as processes, on loopback: what users see when members come, change, speak, leave, die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest

from holdfast import sync
from holdfast.client import start
from holdfast.client.aio import group as aio
from holdfast.client.conversation import Conversation
from holdfast.errors import AddressUnusable, AgentLost, JoinFailed, Unavailable
from holdfast.events import Event, EventsLost, Failed, Joined, Left, Updated
from holdfast.local import calls
from holdfast.net.clock import now
from tests.client.spelling import Spelling
from tests.support.agents import AgentProcess, Fleet, until

GROUP = "test"


class Stand:
    """Two agents that are there all the time, and what others need to join them."""

    def __init__(self, fleet: Fleet, agents: list[AgentProcess]) -> None:
        self.fleet, self.agents = fleet, agents
        self.options: dict[str, Any] = {"seeds": [agents[0].address], "key": fleet.settings["key"], "preset": "local"}


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with TemporaryDirectory(prefix="hf-") as folder, Fleet(Path(folder), group=GROUP) as fleet:
        yield Stand(fleet, fleet.group(2))


@pytest.fixture
def watch(stand: Stand) -> Iterator[Callable[[Callable[[Event], bool]], Event]]:
    """Waits for an event as another member sees it."""
    with sync.join(GROUP, agent=stand.agents[1].socket) as group:
        events = group.watch()

        def find(wanted: Callable[[Event], bool]) -> Event:
            while not wanted(event := events.next(timeout=60.0)):
                pass
            return event

        yield find


def about(kind: type[Event], name: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, kind) and event.member.name == name  # type: ignore[attr-defined]


def gone(pid: int) -> bool:
    """Ended, and reaped if it was ours."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except FileNotFoundError:
        return True


def pid_of(group: Any) -> int:
    pid: int = group._link.child.pid
    return pid


# Members.


def test_members_come_change_and_leave(client: Spelling, stand: Stand, watch: Any) -> None:
    """Join with seeds starts an agent of our own; others see it come, change its tags, and leave; its process ends with the block."""
    name = f"c-{client.name}"
    group = client.join(GROUP, name=name, tags={"zone": "eu"}, **stand.options)
    pid = pid_of(group)
    assert group.me.name == name
    assert stand.options["key"] not in Path(f"/proc/{pid}/cmdline").read_text()
    until(lambda: group.members.names == ("a0", "a1", name), "three members")
    assert watch(about(Joined, name)).member.id == group.me.id
    assert watch(lambda event: isinstance(event, Updated) and event.member.tags == {"zone": "eu"}).member.id == group.me.id
    client.run(group.set_tags, zone="us", role="web")
    assert group.tags == {"zone": "us", "role": "web"}
    assert watch(lambda event: isinstance(event, Updated) and "role" in event.member.tags).member.tags["zone"] == "us"
    client.run(group.leave)
    assert watch(about(Left, name)).member.id == group.me.id
    assert gone(pid)


def test_no_event_asks_for_the_list(client: Spelling, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """H204: members change, come and go, and a client that reads of it finds it in its list without asking its agent for one."""
    begin, asked = Conversation.begin, list[tuple[Conversation, type[calls.Call]]]()

    def noted(self: Conversation, kind: type[calls.Call], *rest: Any, **options: Any) -> bytes:
        asked.append((self, kind))
        return begin(self, kind, *rest, **options)

    monkeypatch.setattr(Conversation, "begin", noted)
    group = client.join(GROUP, agent=stand.agents[0].socket)
    until(lambda: group.members.names == ("a0", "a1"), "the list is calm")
    events, before = client.run(group.watch), len(asked)
    with sync.join(GROUP, agent=stand.agents[1].socket) as other:
        for turn in ("1", "2", "3", None):
            other.set_tags(turn=turn)
            while not (isinstance(event := client.next(events), Updated) and event.member.tags.get("turn") == turn):
                pass
            assert group.get("a1").tags.get("turn") == turn
    name = f"passer-by-{client.name}"
    with sync.join(GROUP, name=name, **stand.options):
        while not about(Joined, name)(client.next(events)):
            pass
        assert group.get(name) is not None
    while not about(Left, name)(client.next(events)):
        pass
    assert group.get(name) is None
    assert [kind for conversation, kind in asked[before:] if conversation is asked[0][0]] == []
    client.run(group.leave)


def test_owner_and_owns_agree(client: Spelling, stand: Stand) -> None:
    """Exactly the member that everybody calls the owner may act, with a token and a deadline."""
    groups = [client.join(GROUP, agent=agent.socket) for agent in stand.agents]
    until(lambda: all(len(group.members) == 2 for group in groups), "the list is calm")
    for key in ("cart:1", "cart:2", "cart:3"):
        assert groups[0].owner(key) == groups[1].owner(key)

        def holders(key: str = key) -> list[Any]:
            return [group for group in groups if (grant := client.run(group.owns, key)) and grant.token > 0 and grant.deadline > now()]

        until(lambda key=key: len(holders(key)) == 1, "one may act")  # type: ignore[misc]
        assert holders()[0].me == groups[0].owner(key)
    for group in groups:
        client.run(group.leave)


def test_messages(client: Spelling, stand: Stand) -> None:
    """Send reaches the one, cast all who listen but not the sender; who does not listen is Unavailable."""
    a, b = (client.join(GROUP, agent=agent.socket) for agent in stand.agents)
    until(lambda: len(a.members) == 2, "two members")
    with pytest.raises(Unavailable, match="listens"):
        client.run(a.send, "a1", b"anybody?")
    inbox, topic, own = client.run(b.messages), client.run(b.messages, "news"), client.run(a.messages, "news")
    until(lambda: sent(client, a, "a1", b"hello"), "b listens")
    message = client.next(inbox)
    assert (message.data, message.sender, message.topic) == (b"hello", a.me.id, "")
    client.run(a.send, b.me, bytes(32 * 1024), timeout=30.0)
    assert client.next(inbox).data == bytes(32 * 1024)
    until(lambda: "topic:u:news" in a.get("a1").rows, "the topic is known")
    client.run(a.cast, b"rumour", topic="news")
    assert client.next(topic).data == b"rumour"
    client.run(b.cast, b"back", topic="news")
    assert client.next(own).data == b"back"
    for group in (a, b):
        client.run(group.leave)


def sent(client: Spelling, group: Any, peer: str, data: bytes) -> bool:
    try:
        client.run(group.send, peer, data, timeout=30.0)
    except Unavailable:
        return False
    return True


# Deaths.


def test_the_agent_is_killed(client: Spelling, stand: Stand, watch: Any) -> None:
    """Killed with -9: everything is AgentLost here, leaving is no error, and others read that it failed for certain."""
    name = f"k-{client.name}"
    group = client.join(GROUP, name=name, **stand.options)
    watch(about(Joined, name))
    mine, life, pid = client.run(group.watch), group.me.id, pid_of(group)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(AgentLost, match="join again"):
        last(client, mine)
    with pytest.raises(AgentLost):
        client.run(group.info)
    assert group.state == "lost"
    failed = watch(about(Failed, name))
    assert (failed.member.id, failed.certain) == (life, True)
    client.run(group.leave)
    assert gone(pid)


def test_another_agent_takes_its_place(client: Spelling, stand: Stand) -> None:
    """With reconnect=True another agent is started for one that was killed: another life, and those who watch read of the gap."""
    group = client.join(GROUP, name=f"r-{client.name}", reconnect=True, **stand.options)
    mine, life, pid = client.run(group.watch), group.me.id, pid_of(group)
    os.kill(pid, signal.SIGKILL)
    while client.next(mine) != EventsLost(0):
        pass
    until(lambda: group.state == "member", "it is back")
    assert (group.me.name, group.me.id.boot > life.boot) == (life.name, True)
    until(lambda: {"a0", "a1", life.name} == set(group.members.names), "and knows everybody")
    second = pid_of(group)
    client.run(group.leave)
    assert gone(pid)
    assert gone(second)


def last(client: Spelling, stream: Any) -> None:
    """Read until it ends."""
    while True:
        client.next(stream)


CHILD = """
import os, sys, time
from holdfast import sync
group = sync.join({group!r}, name={name!r}, **{options!r})
print(os.getpid(), group._link.child.pid, flush=True)
{rest}
"""


def program(rest: str, **words: Any) -> subprocess.Popen[str]:
    code = CHILD.format(rest=rest, **words)
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("rest", ["time.sleep(600)", ""], ids=["killed", "exits"])
def test_the_parent_ends_without_leaving(rest: str, stand: Stand, watch: Any) -> None:
    """Killed with -9, or at its end without leave(): the agent notices, leaves the group politely and ends. Nothing is warned about."""
    name = f"p-{'killed' if rest else 'exits'}"
    process = program(rest, group=GROUP, name=name, options=stand.options)
    assert process.stdout is not None
    pid, agent = (int(word) for word in process.stdout.readline().split())
    watch(about(Joined, name))
    if rest:
        os.kill(pid, signal.SIGKILL)
    watch(about(Left, name))
    _, stderr = process.communicate(timeout=60)
    assert stderr == ""
    until(lambda: gone(agent), "the agent ends")


FORK = """
import os, sys
from holdfast import sync, errors
with sync.join({group!r}, agent={socket!r}) as group:
    watch = group.watch()
    assert group.info()
    pid = os.fork()
    if pid == 0:
        for call in (group.info, group.watch, lambda: group.members, lambda: group.owns("k"), lambda: next(watch), group.leave):
            try:
                call()
            except errors.Forked as error:
                assert "join again in this process" in str(error)
            else:
                os._exit(3)
        with sync.join({group!r}, agent={socket!r}) as own:
            assert own.info()["name"] == {name!r}
        sys.exit(0)  # Out of the parent's block.
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    group.set_tags(forked="no")
    assert group.info()
    group.set_tags(forked=None)
"""


def test_fork(stand: Stand) -> None:
    """After a fork every call says so, the child may join itself, and the parent goes on."""
    agent = stand.agents[0]
    code = FORK.format(group=GROUP, socket=agent.socket, name=agent.name)
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


# Cancellation.


def test_cancelled_inside_the_block(stand: Stand, watch: Any) -> None:
    """A task that is cancelled in the block leaves the group before the cancellation goes on."""
    seen: list[int] = []

    async def work() -> None:
        async with aio.join(GROUP, name="cancelled", **stand.options) as group:
            seen.append(pid_of(group))
            async for _ in group.watch():
                pass

    async def main() -> None:
        task = asyncio.ensure_future(work())
        while not seen and not task.done():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(watch, about(Joined, "cancelled"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main(), debug=True)
    watch(about(Left, "cancelled"))
    assert gone(seen[0])


@pytest.mark.parametrize("late", [False, True], ids=["while it starts", "while it knocks"])
def test_cancelled_while_joining(late: bool, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives up joining leaves no process behind, however far it was."""
    pids: list[int] = []
    ready: list[bool] = []
    spawn, wait = start._spawn, start.Child.ready

    def spawned(*args: Any) -> int:
        pids.append(spawn(*args))
        return pids[-1]

    def waited(*args: Any) -> None:
        wait(*args)
        ready.append(True)

    monkeypatch.setattr(start, "_spawn", spawned)
    monkeypatch.setattr(start.Child, "ready", waited)
    nowhere = {**stand.options, "seeds": ["127.0.0.1:9"], "bind": "127.0.0.1:0"}

    async def main() -> None:
        task = asyncio.ensure_future(aio.join(GROUP, **nowhere))
        while not (ready if late else pids) and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main(), debug=True)
    assert len(pids) == 1
    assert gone(pids[0])


# Mistakes.


def test_what_the_agent_refuses(client: Spelling, stand: Stand) -> None:
    """A taken port and a name in use are found out by the agent, and raised here by class."""
    with pytest.raises(AddressUnusable):
        client.join(GROUP, bind=stand.agents[0].address, **stand.options)


def test_a_name_in_use(stand: Stand) -> None:
    """F5: a living agent has the name: JoinFailed, by whatever way the agent says it."""
    with pytest.raises(JoinFailed, match="a1"):
        sync.join(GROUP, name="a1", **stand.options)


# One machine, many processes and threads.


def test_without_seeds_all_share_one_agent(client: Spelling, runtime: Path) -> None:
    """F12: several join at once, one agent is started, all are its clients. It stays for the others when one leaves."""
    groups: list[Any] = []

    def enter() -> None:
        groups.append(client.join("solo", preset="local"))

    threads = [Thread(target=enter) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(groups) == 3
    assert len({group.me.id for group in groups}) == 1
    started = [group._link.child for group in groups if group._link.child is not None]
    assert len(started) == 1
    for group in sorted(groups, key=lambda group: group._link.child is None):
        client.run(group.leave)
    assert started[0].alive
    started[0].end()
    assert started[0].status == 0


def test_twenty_threads(stand: Stand) -> None:
    """Any thread may use a blocking group: quick calls, slow calls, reads and streams side by side."""
    with sync.join(GROUP, agent=stand.agents[0].socket) as group:
        inbox = group.messages()
        done: list[int] = []

        def work(number: int) -> None:
            for turn in range(20):
                assert group.info()["name"] == "a0"
                assert group.get("a0") is not None
                group.owns(f"key{number}")
                if turn % 10 == 0:
                    group.send("a0", b"%d" % number, timeout=60.0)
            done.append(number)

        threads = [Thread(target=work, args=(number,)) for number in range(20)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        received = [inbox.next(timeout=60.0).data for _ in range(40)]
        for thread in threads:
            thread.join(60.0)
        assert sorted(done) == list(range(20)), f"after {time.monotonic() - began:.1f} s"
        assert sorted(received) == sorted(2 * [b"%d" % number for number in range(20)])


def test_fifty_tasks(stand: Stand) -> None:
    """Calls of many tasks are pipelined on one connection, and each gets its own answer."""

    async def main() -> None:
        async with aio.join(GROUP, agent=stand.agents[0].socket) as group:
            infos = await asyncio.gather(*(group.info() for _ in range(50)))
            assert {info["name"] for info in infos} == {"a0"}

    asyncio.run(main(), debug=True)


def test_uvloop(stand: Stand) -> None:
    """Another event loop is as good."""
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with aio.join(GROUP, agent=stand.agents[0].socket) as group:
            assert (await group.info())["name"] == "a0"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
