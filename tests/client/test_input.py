"""What a program may say: odd values for every argument of every public call, in both spellings.  docs/client.md (what can go wrong)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast.sync
from holdfast import errors, sync
from holdfast.agent.socket.answers import TIMEOUT_MAX
from holdfast.client import checks
from holdfast.client.aio import group as aio
from holdfast.client.aio import streams
from holdfast.client.members import Members
from holdfast.client.sync import group as blocking
from holdfast.client.threads.held import Signal
from holdfast.errors import SHOWN_CHARS_MAX, ConfigError, shown
from holdfast.features.leadership import client_base as leading
from holdfast.features.leadership.protocol.config import NAME_BYTES_MAX as LEAD_BYTES_MAX
from holdfast.features.mail import client_base as mail
from holdfast.features.tickets import client_base as tickets
from holdfast.features.tickets.client import PoolWatch
from holdfast.features.tickets.protocol.cview import EVENT_BYTES_MAX
from holdfast.features.tickets.protocol.values import POOL_BYTES_MAX, TICKETS_MAX
from holdfast.features.tickets.protocol.view import METADATA_BYTES_MAX
from holdfast.host import Address, Member, NodeId
from holdfast.local import calls
from holdfast.net.clock import now
from holdfast.wire.codec import NAME_BYTES_MAX
from tests.client.fake_agent import FakeAgent
from tests.client.spelling import Aio, Spelling

TEXT_CHARS_MAX = 300  # of an error: the value is cut, what is accepted is one line


class Angry:
    """Its own words fail."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


ODD: dict[str, Any] = {
    "none": None, "true": True, "zero": 0, "five": 5, "negative": -1, "float": 3.5, "nan": float("nan"), "inf": float("inf"),
    "-inf": float("-inf"), "huge int": 10**400, "too long": 1e12, "past": timedelta(seconds=-1), "no bytes": b"", "bytes": b"x",
    "huge bytes": bytes(200_000), "no text": "", "text": "text", "huge text": "x" * 200_000, "surrogate": "a\udc80", "nul": "a\0b",
    "lines": "a\nb", "tuple": ("a", 1), "life": NodeId(5, "x"), "list": [], "numbers": [1], "table": {}, "odd table": {"a": 1},  # type: ignore[arg-type]
    "byte table": {"a": b"x"}, "number table": {5: "x"}, "half table": {"a": "\ud800"}, "big table": {"a": "x" * 5000},
    "object": object(), "angry": Angry(), "member": Member(5, Address("", 0), {}),  # type: ignore[arg-type]
    "type": int, "lambda": lambda: None,
}  # fmt: skip

STRINGS = ("no text", "text", "huge text", "surrogate", "nul", "lines")
NUMBERS = ("true", "zero", "five", "negative", "float", "nan", "inf", "-inf", "huge int", "too long", "past")
SECONDS = ("five", "float")
KEY = ("no bytes", "bytes", "no text", "text", "nul", "lines")
PATH = ("none", "no text")  # others are paths where nothing is

# Of each argument, which of the odd values are not odd there.
GROUP: dict[str, dict[str, tuple[str, ...]]] = {
    "get": {"name": STRINGS},
    "owner": {"key": KEY},
    "owns": {"key": KEY},
    "leader": {"name": STRINGS},
    "messages": {"topic": ("none", "text")},
    "send": {"peer": ("text",), "data": ("no bytes", "bytes"), "timeout": SECONDS},
    "cast": {"data": ("no bytes", "bytes"), "topic": ("text",)},
    "set_tags": {"tags": ("none", "table"), "more": ("none", "no text", "text")},
    "lead": {
        "name": ("text",), "by": (), "variant": ("none",), "voters": ("none",), "rank": ("none",), "health": ("none",),
        "grace": (*SECONDS, "zero"), "timeout": (*SECONDS, "none"),
    },
    "while_leader": {
        "name": ("text",), "by": (), "variant": ("none",), "voters": ("none",), "rank": ("none",), "health": ("none",),
        "grace": (*SECONDS, "zero"), "timeout": (*SECONDS, "none"),
    },
    "elect": {"name": ("text",)},
    "ticket": {
        "pool": ("text",), "of": ("five",), "timeout": (*SECONDS, "none"), "wait": ("true",), "metadata": ("none", "table"),
        "user_ttl": (*SECONDS, "none"),
    },
    "tickets": {"pool": ("text",)},
    "limit": {
        "name": ("text",), "rate": (*SECONDS, "none"), "burst": (*SECONDS, "none"), "per": SECONDS, "policy": (), "fleet": ("five",),
        "share": (), "weight": (), "reserve": ("zero",), "headroom": ("zero",), "demand": ("none", "type", "lambda"), "aggregate": (),
    },
}  # fmt: skip
NO_ARGUMENTS = {"watch", "info", "leave", "me", "members", "state", "tags", "name", "leaders", "views"}
GOOD: dict[str, Any] = {"peer": "a", "data": b"", "topic": "t", "name": "n", "pool": "p", "of": 1, "key": "k"}
JOIN: dict[str, tuple[str, ...]] = {
    "group": ("none", "text", "huge text"), "seeds": ("list",),
    "key": ("none", "text", "bytes", "huge text", "huge bytes", "nul", "lines"),
    "name": ("no text", "text", "huge text"), "tags": ("none", "table"), "agent": (*PATH, "text", "huge text", "lines", "surrogate"),
    "preset": ("no text", "text", "huge text"), "membership": ("no text", "text", "huge text"),
    "bind": ("no text", "text", "huge text"), "advertise": ("no text", "text", "huge text"),
    "seats": ("list",), "state_dir": (*PATH, "text", "huge text", "lines", "surrogate"),
    "config": (*PATH, "text", "huge text", "lines", "surrogate"), "insecure": ("true",), "http": ("no text", "text", "huge text"),
    "timeout": SECONDS, "wait": ("true",), "reconnect": ("true",),
}  # fmt: skip


def odd_for(allowed: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in ODD.items() if name not in allowed)


def refused(call: Callable[[], Any], field: str, odd: str) -> None:
    """One error that names the field and what is accepted, and is short enough to be read."""
    with pytest.raises((ConfigError, TypeError)) as caught:
        call()
    text = str(caught.value)
    assert re.match(rf"{field}: .*; accepted (is|are) ", text, re.DOTALL), f"{field}, {odd}: {text}"
    assert len(text) <= TEXT_CHARS_MAX, odd
    assert "\n" not in text


@pytest.fixture
def group(client: Spelling, agent: FakeAgent) -> Iterator[Any]:
    group = client.join("orders", agent=agent.path)
    yield group
    client.run(group.leave)


def test_the_table_is_complete() -> None:
    """Every argument of every public call has its row: a new one is refused here until it has."""
    for kind in (holdfast.Group, sync.Group):
        found = {name for name in dir(kind) if not name.startswith("_")}
        assert found - NO_ARGUMENTS == GROUP.keys()
        for name, rows in GROUP.items():
            assert [each for each in inspect.signature(getattr(kind, name)).parameters if each != "self"] == list(rows)
    for join in (holdfast.join, sync.join):
        assert list(inspect.signature(join).parameters) == list(JOIN)
    arguments: dict[type, set[str]] = {
        holdfast.Term: set(), sync.Term: set(), holdfast.Ticket: {"data"}, sync.Ticket: {"data"},
        streams.Watch: set(), sync.Watch: {"timeout"}, PoolWatch: set(), sync.PoolWatch: {"timeout"}, Signal: {"timeout"},
        holdfast.Pool: set(), sync.Pool: set(),
        Members: {"name", "key"},
    }  # fmt: skip
    inherited = {"push", "put", "end", "finish", "missed", "open", "count", "index"}  # of the conversation, and of every sequence
    for made, known in arguments.items():
        methods = {name: each for name, each in inspect.getmembers(made, callable) if not name.startswith("_") and name not in inherited}
        taken = {argument for each in methods.values() if not inspect.isclass(each) for argument in inspect.signature(each).parameters}
        assert taken - {"self"} == known, made


def test_the_limits_are_those_of_the_protocols() -> None:
    """A change of one of them is found here."""
    assert (leading.NAME_BYTES_MAX, tickets.POOL_BYTES_MAX, tickets.TICKETS_MAX) == (LEAD_BYTES_MAX, POOL_BYTES_MAX, TICKETS_MAX)
    assert (tickets.METADATA_BYTES_MAX, tickets.PUBLISH_BYTES_MAX) == (METADATA_BYTES_MAX, EVENT_BYTES_MAX)
    assert (mail.MEMBER_BYTES_MAX, checks.CALL_SECONDS_MAX) == (NAME_BYTES_MAX, TIMEOUT_MAX)


def test_odd_values_cost_nothing(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Every argument of every call of a group: one clear error, nothing is sent, and what is held stays held."""
    agent.answers[calls.Acquire] = lambda call: agent.push(call, calls.GrantItem("granted", 7, now() + 3600.0, 0))
    term, ticket = client.enter(client.run(group.lead, "held")), client.enter(client.run(group.ticket, "held", of=2))
    agent.wait_for(calls.Confirm, 2)  # They are not waited for by the client.
    asked = len(agent.asked)
    for name, rows in GROUP.items():
        kinds = inspect.signature(getattr(group, name)).parameters
        for field, allowed in rows.items():
            for odd, value in odd_for(allowed):
                method = getattr(group, name)
                if kinds[field].kind is inspect.Parameter.POSITIONAL_ONLY:
                    call = partial(client.run, method, value)
                elif kinds[field].kind is inspect.Parameter.VAR_KEYWORD:
                    call = partial(client.run, method, ready=value)
                else:
                    good = {each: GOOD[each] for each in rows if each in GOOD and each != field}
                    call = partial(client.run, method, **{**good, field: value})
                refused(call, "tags" if field == "more" else field, f"{name}({field}={odd})")
    for odd, value in odd_for(("no bytes", "bytes")):
        refused(partial(client.run, ticket.publish, value), "data", odd)
    for odd, value in odd_for(("type", "lambda")):
        refused(partial(client.run(group.while_leader, "n"), value), "while_leader", odd)
    members = group.members
    for odd, value in odd_for(STRINGS):
        refused(partial(members.get, value), "name", odd)
    assert len(agent.asked) == asked
    assert (group.state, term.valid, ticket.valid) == ("member", True, True)
    client.exit(term)
    client.exit(ticket)


def test_odd_limits_of_threads(agent: FakeAgent) -> None:
    """``next(timeout)`` of a stream and ``lost.wait(timeout)``: 0 only looks, None waits, anything else is seconds."""
    agent.answers[calls.Acquire] = lambda call: agent.push(call, calls.GrantItem("granted", 7, now() + 3600.0, 0))
    with holdfast.sync.join("orders", agent=agent.path) as group, group.lead("x") as term:
        for wait in (group.watch().next, term.lost.wait):
            for odd, value in odd_for(("none", "zero", "five", "float")):
                refused(partial(wait, value), "timeout", odd)
        assert not term.lost.wait(0)
        with pytest.raises(errors.Timeout):
            group.watch().next(timeout=0)


def test_odd_arguments_of_join(client: Spelling, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every argument of join, also where they would not be used: nothing is looked for and nothing is started."""
    monkeypatch.setattr(aio, "make_plan", None)
    monkeypatch.setattr(blocking, "make_plan", None)
    for field, allowed in JOIN.items():
        for odd, value in odd_for(allowed):
            refused(partial(client.join, **{"agent": "x", field: value}), field, f"{field}={odd}")


def test_secrets_are_not_repeated(client: Spelling) -> None:
    """A key of the wrong type may be a key all the same."""
    for key in (["hunter2"], {"key": "hunter2"}, bytearray(b"hunter2")):
        with pytest.raises(ConfigError) as caught:
            client.join("x", key=key)
        assert "hunter2" not in str(caught.value)


def test_a_real_agent_goes_on(runtime: Path) -> None:
    """With a real agent: what ended its connections is one error each, and a ticket and a leadership are held throughout."""
    asyncio_client = Aio()
    try:
        with holdfast.sync.join("odd", preset="local") as plain:
            spelled = asyncio_client.join("odd")
            with plain.ticket("gpu", of=2, timeout=60) as ticket, plain.lead("boss", timeout=60) as term:
                for run, group in ((lambda function, *args, **options: function(*args, **options), plain), (asyncio_client.run, spelled)):
                    for function, args, options in (
                        (group.set_tags, (), {"ready": True}), (group.set_tags, (), {"n": 5}), (group.set_tags, (), {"b": b"x"}),
                        (group.owns, (("a", 1),), {}), (group.owns, (5,), {}), (group.owner, (None,), {}), (group.send, (5, b""), {}),
                        (group.get, (5,), {}), (group.ticket, ("p",), {"of": 1, "wait": "no"}),
                        (group.ticket, ("p",), {"of": 1, "metadata": "job"}),
                    ):  # fmt: skip
                        with pytest.raises((ConfigError, TypeError), match="accepted"):
                            run(function, *args, **options)
                    assert run(group.info)["local"]["counts"].get("malformed", 0) == 0
                    assert group.state == "member"
                assert (ticket.valid, term.valid) == (True, True)
            asyncio_client.run(spelled.leave)
    finally:
        asyncio_client.close()


def test_what_is_shown_is_cut() -> None:
    """80 characters of whatever it is, on one line."""
    for value in ODD.values():
        assert len(shown(value)) <= SHOWN_CHARS_MAX
        assert "\n" not in shown(value)
    angry = Angry()
    assert (shown("text"), shown(5), shown(None), shown(angry)) == ("'text'", "5", "None", f"<Angry instance at {hex(id(angry))}>")
    assert "Angry" in shown(Angry())
    assert shown({"a": "x" * 500}).startswith("{'a': 'xxx")


# What they look like.


def test_reprs(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Group, member, term and ticket say who, what and how long; also in a process they do not belong to."""
    assert repr(group) == "<Group 'orders' as a#1: member, 1 member>"
    assert repr(group.me) == "<Member a#1 at 127.0.0.1:7000, alive>"
    rows = {"tag:zone": b"eu", "topic:x": b""}
    assert repr(Member(NodeId("b", 2), Address("::1", 5), rows)) == "<Member b#2 at [::1]:5, alive, zone='eu', 1 more rows>"
    ticket = client.run(group.ticket, "gpu", of=2)
    assert repr(ticket) == "<Ticket of 'gpu': not held yet>"
    agent.answers[calls.Acquire] = lambda call: agent.push(call, calls.GrantItem("granted", 7, now() + 3600.0, 3))
    client.enter(ticket)
    assert re.fullmatch(r"<Ticket 3 of 'gpu': token 7, valid for 3[56]\d\d\.\d\d s>", repr(ticket))
    term = client.enter(client.run(group.lead, "boss"))
    assert re.fullmatch(r"<Term of 'boss': token 7, valid for 3[56]\d\d\.\d\d s>", repr(term))
    client.exit(ticket)
    client.exit(term)
    assert repr(ticket) == "<Ticket 3 of 'gpu': token 7, over: given back>"
    assert repr(term) == "<Term of 'boss': token 7, over: given back>"
    assert repr(client.run(group.messages, "news")) == "<Messages of 'news': 0 to read>"
    assert repr(client.run(group.tickets, "gpu")) == "<Pool 'gpu'>"
    assert repr(client.run(group.watch)) == "<Watch: 0 to read>"


def test_a_block_is_entered_once(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """F9: what was held is never held again. Entering it twice is an error of the program, and costs nothing."""
    agent.answers[calls.Acquire] = lambda call: agent.push(call, calls.GrantItem("granted", 7, now() + 3600.0, 3))
    ticket = client.enter(client.run(group.ticket, "gpu", of=2))
    for _ in range(2):
        with pytest.raises(ConfigError, match="was entered before; accepted is one block"):
            client.enter(ticket)
        client.run(ticket.release)
    assert len(agent.all(calls.Acquire)) == 1
