"""Clients and verbs of agents that are in no ring: their seed is not there, and a seat serves views.  Spec: views D31; H248."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import JoinTimeout, NotAMember, Unavailable
from tests.agent.raw_client import now
from tests.cli.command import Run
from tests.client.spelling import Spelling
from tests.features.views.process.test_processes import free_ports, together
from tests.support.agents import AgentProcess, Fleet, until

WAIT = 40.0


class Outside:
    """a, which is the only seat, and b. They look for a seed that is not there, so neither can become a member."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.seed, seat = (f"127.0.0.1:{port}" for port in free_ports(2))
        fleet.settings |= {"seeds": [self.seed], "seats": [seat]}
        self.a = fleet.start(name="a", bind=seat, state_dir=str(fleet.folder / "state"))
        self.b = fleet.start(name="b")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with Fleet(tmp_path_factory.mktemp("outside"), preset="lan") as fleet:
        yield Outside(fleet)


@pytest.fixture
def a(outside: Outside) -> AgentProcess:
    return outside.a


@pytest.fixture
def b(outside: Outside) -> AgentProcess:
    return outside.b


@pytest.fixture
def attach(client: Spelling) -> Iterator[Callable[..., Any]]:
    """`join` with `wait=False`; in the end all are left, because agents take part as long as their clients ask."""
    with ExitStack() as stack:

        def attached(**options: Any) -> Any:
            group = client.join(wait=False, **options)
            stack.callback(client.run, group.leave)
            return group

        yield attached


def test_a_new_client(client: Spelling, attach: Callable[..., Any], a: AgentProcess, b: AgentProcess) -> None:
    """D31, H248: it attaches, gets the view and a message from a member of it; what needs the ring says that this agent is in no group."""
    with pytest.raises(JoinTimeout, match="the agent is 'joining'"):
        client.join(agent=a.socket, timeout=0.5)
    one, other = (attach(agent=each.socket) for each in (a, b))
    views = [client.run(each.views) for each in (one, other)]
    together(views)
    letters = client.run(other.messages)
    until(partial(arrives, client, one, b"inside"), "the agent of b knows that a client listens", WAIT)
    assert client.next(letters).data == b"inside"
    client.run(one.send, other.me, b"by its member", timeout=WAIT)
    assert client.next(letters).data == b"by its member"
    assert (one.state, one.members.names, one.owner("key"), client.run(one.owns, "key")) == ("joining", (), None, None)
    with pytest.raises(NotAMember, match=r"no member is called 'c'; this agent is in no group now, and sends to members of its view alone"):
        client.run(one.send, "c", b"outside")


def arrives(client: Spelling, group: Any, data: bytes) -> bool:
    """False: the agent of b has not heard yet that its client listens; the two clients have connections of their own."""
    try:
        client.run(group.send, "b", data, timeout=WAIT)
    except Unavailable:
        return False
    return True


def test_an_agent_of_its_own(client: Spelling, attach: Callable[..., Any], outside: Outside) -> None:
    """H248: a program that starts its own agent in such a time gets a view as well, and leaves at once."""
    key = {name: outside.fleet.settings[name] for name in ("group", "key", "preset", "seeds", "seats")}
    group = attach(name=f"own-{client.name}", bind="127.0.0.1:0", timeout=WAIT, **key)
    views = client.run(group.views)
    assert client.run(views.ready, timeout=WAIT).find(group.me.name).id == group.me.id
    left_at = now()
    client.run(group.leave)
    assert now() - left_at < WAIT


def test_verbs(holdfast: Run, client: Spelling, attach: Callable[..., Any], a: AgentProcess, b: AgentProcess) -> None:
    """D31, H248: `views`, `views trip` and `send` ask such an agent as any other; `members` says that it is in no group."""
    group = attach(agent=b.socket)
    letters, views = client.run(group.messages), client.run(group.views)
    until(lambda: views.state == "stable" and views.view.size == 1, "a view of b alone", WAIT)
    assert holdfast("send", "--agent", b.socket, "b", "to itself").code == 0
    assert client.next(letters).data == b"to itself"
    shown = holdfast("views", "--agent", b.socket, "--json")
    assert (shown.code, shown.json["state"], [each["name"] for each in shown.json["view"]["members"]]) == (0, "stable", ["b"])
    watched = holdfast("views", "--agent", a.socket, "--watch", "--count", 1, "--for", WAIT)
    assert (watched.code, "ViewChanged" in watched.out) == (0, True)
    if client.name == "aio":  # It may be done once in ten seconds.
        assert holdfast("views", "trip", "a peer is silent", "--agent", b.socket).code == 0
    holdfast("send", "--agent", b.socket, "nobody", "hello").refused(1, "no member is called 'nobody'; this agent is in no group now")
    members = holdfast("members", "--agent", b.socket)
    assert (members.code, "this agent is in no group, its state is 'joining'" in members.err) == (1, True)


def test_the_seed_comes(client: Spelling, attach: Callable[..., Any], tmp_path: Path) -> None:
    """D31, H248: with no other call the client sees the member list, and stays in the view."""
    with Fleet(tmp_path, preset="lan") as fleet:
        outside = Outside(fleet)
        group = attach(agent=outside.b.socket)
        views = client.run(group.views)
        client.run(views.ready, timeout=WAIT)
        assert group.members.names == ()
        fleet.start(name="c", bind=outside.seed)
        until(lambda: group.members.names == ("a", "b", "c"), "three members", WAIT)
        assert group.state == "member"
        assert views.leased
