"""Grants over a real socket, with a kind that the test moves: what a connection does to what was granted on it.  Spec: foundation F14."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.agent.grants.granted import TOKEN_FIRST_MIN
from holdfast.agent.grants.grants import READING_INTERVAL
from holdfast.agent.socket.unread import unread_bytes
from holdfast.events import StorageFailed
from holdfast.local import calls, ends
from holdfast.local.calls import GrantItem
from tests.agent.law import KIND, FakeHeld, FakeKind
from tests.agent.live import Live
from tests.agent.raw_client import RawClient, now
from tests.support.agents import until
from tests.tidy.tree import ROOT

LONG = 60.0


class Stand:
    """An agent, its kind, and one more token each time."""

    def __init__(self, live: Live, kind: FakeKind) -> None:
        self.live, self.kind = live, kind
        self.token = TOKEN_FIRST_MIN

    def hold(self, client: RawClient, length: float = LONG) -> tuple[int, FakeHeld]:
        """Asked and granted: the serial, and what the kind keeps."""
        serial = client.say(calls.Acquire, KIND, "x", {})
        client.answer(calls.Acquire, serial)
        held = self.kind.held[-1]
        self.token += 1
        self.live.turn(partial(held.holder.on_granted, self.token, now() + length))
        item = client.grant(serial, "granted")
        assert item.token == self.token
        return serial, held


@pytest.fixture(scope="module")
def live_and_kind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, FakeKind]]:
    kind = FakeKind()
    with Live(tmp_path_factory.mktemp("live"), prepare=lambda agent: agent.grants.add(kind)) as live:
        live.until_member()
        yield live, kind


@pytest.fixture
def stand(live_and_kind: tuple[Live, FakeKind]) -> Iterator[Stand]:
    live, kind = live_and_kind
    stand = Stand(live, kind)
    stand.token += 1000 * len(kind.held)
    yield stand
    for grant in live.call(lambda: live.agent.grants.all):
        live.turn(partial(live.agent.grants.stopped, grant.session, grant.serial))


def test_close_is_not_stopped(stand: Stand) -> None:
    """Close: nothing more is told, nothing is extended, and it is not given back before its deadline; Stopped gives it back."""
    with RawClient(stand.live.path) as client:
        serial, held = stand.hold(client)
        client.ask(calls.Close, serial)
        assert not held.renewing
        assert held.calls == []
        client.ask(calls.Stopped, serial)
        assert held.calls == ["release"]
        assert not client.pushed.get(serial)


def test_stopped_is_answered_when_it_was_released(stand: Stand) -> None:
    """Stopped: the item comes too, and saying it twice is no error."""
    with RawClient(stand.live.path) as client:
        serial, held = stand.hold(client)
        client.ask(calls.Stopped, serial)
        assert held.calls == ["release"]
        assert client.grant(serial, "released").why == ends.RELEASED
        client.ask(calls.Stopped, serial)


def test_hanging_up_is_not_a_death(stand: Stand) -> None:
    """F14: this process lives, so its closed socket ends the extensions and nothing else; a short deadline ends the grant."""
    client = RawClient(stand.live.path)
    _, held = stand.hold(client)
    client.sock.close()
    until(lambda: not held.renewing, "the agent has noticed")
    assert held.calls == []
    other = RawClient(stand.live.path)
    _, brief = stand.hold(other, 0.5)
    other.sock.close()
    until(lambda: brief.calls == ["release"], "its deadline has passed")
    assert held.calls == []


def test_a_registered_command(stand: Stand) -> None:
    """Body: what cannot be a process is refused; the end of a command alone ends nothing."""
    with RawClient(stand.live.path) as client, subprocess.Popen(["/bin/sleep", "60"]) as command:
        serial, held = stand.hold(client)
        client.ask(calls.Body, serial, command.pid)
        bodies = stand.live.call(lambda: stand.live.agent.grants.all[0].bodies)
        assert [body.pid for body in bodies][1:] == [command.pid]
        command.kill()
        until(lambda: bodies[1].dead, "the kernel says so")
        stand.live.turn(lambda: None)
        assert held.calls == []
        assert held.renewing


def test_a_client_that_does_not_read_is_not_extended(stand: Stand) -> None:
    """Published is what was handed to a socket that takes it: the deadline stands while the client is paused, and follows when it reads."""
    live = stand.live
    with RawClient(live.path) as client:
        assert client.welcome is not None
        session = live.server.connections[client.welcome.session]
        serial, held = stand.hold(client)
        (grant,) = live.call(lambda: live.agent.grants.all)
        before = grant.published
        client.answer(calls.Watch, client.say(calls.Watch))
        event = StorageFailed("x" * 10_000)
        until(lambda: _paused_by(live, session, event), "the client is paused")
        later = now() + 2 * LONG
        live.turn(partial(held.holder.on_extended, later))
        assert grant.published == before
        item: GrantItem = client.grant(serial, "extended")
        assert item.deadline == later
        assert grant.published == later


def test_a_client_that_reads_nothing_is_extended_once(stand: Stand) -> None:
    """H148: the kernel says what a client has read. One extension is ahead of it, and the next waits for its reading."""
    live = stand.live
    with RawClient(live.path) as client:
        serial, held = stand.hold(client)
        client.ask(calls.Look)  # All of it is read.
        (grant,) = live.call(lambda: live.agent.grants.all)
        ahead, newest = now() + 2 * LONG, now() + 3 * LONG
        live.turn(partial(held.holder.on_extended, ahead))
        live.turn(partial(held.holder.on_extended, newest))
        assert grant.published == ahead
        until(lambda: now() > newest - 3 * LONG + 3 * READING_INTERVAL, "it was looked at")
        assert grant.published == ahead
        assert [client.grant(serial, "extended").deadline, client.grant(serial, "extended").deadline] == [ahead, newest]


def test_a_client_that_reads_slowly_is_extended(stand: Stand) -> None:
    """H148: who is always behind, and reads, is alive: of one that reads nothing, what waits would grow."""
    live = stand.live
    with RawClient(live.path) as client:
        assert client.welcome is not None
        session = live.server.connections[client.welcome.session]
        _, held = stand.hold(client)
        (grant,) = live.call(lambda: live.agent.grants.all)
        client.answer(calls.Watch, client.say(calls.Watch))
        for step in range(1, 4):
            for _ in range(40):
                live.turn(partial(live.agent.host.emit, StorageFailed("x" * 1000)))
            live.turn(partial(held.holder.on_extended, now() + LONG + step))
            client.sock.recv(2000)  # Some of it, never all.
            live.turn(partial(session.follows, 0))
        assert now() + LONG + 1 < grant.published
        transport = session._transport
        assert transport is not None
        assert live.call(lambda: unread_bytes(transport.get_extra_info("socket").fileno())) > 0


def _paused_by(live: Live, session: object, event: StorageFailed) -> bool:
    def step() -> bool:
        for _ in range(50):
            live.agent.host.emit(event)
        return not getattr(session, "reads")  # noqa: B009 - read anew, where the checker would remember

    return live.turn(step)


ELSEWHERE = """
import os, sys
sys.path.insert(0, sys.argv[2])
from holdfast.local import calls
from tests.agent.raw_client import RawClient
client = RawClient(sys.argv[1])
serial = client.say(calls.Acquire, sys.argv[3], "x", {})
client.answer(calls.Acquire, serial)
client.ask(calls.Body, serial, os.getpid())
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_a_pid_of_another_namespace_names_nobody(stand: Stand) -> None:
    """F14: a client in a container calls its command by a number that is somebody else's out here. Whoever that is, its death says nothing:
    what was granted ends at its deadline, or when the client says so."""
    if subprocess.run(["unshare", "--pid", "--fork", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to make a pid namespace")
    words = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", ELSEWHERE, stand.live.path, str(ROOT), KIND]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"  # To us that is the first process of this machine.
        (grant,) = stand.live.call(lambda: stand.live.agent.grants.all)
        assert (grant.confirmable, [body.pid for body in grant.bodies if body.pid == 1]) == (False, [])
        process.kill()
