"""The short verbs, against real agents: what they print for people and for programs, and with which exit code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread

import pytest
from msgspec.msgpack import encode as msgpack_encode

from holdfast.local.frame import framed
from tests.cli.command import Run
from tests.support.agents import AgentProcess, Fleet, until

numbers = count()  # of tags that were changed


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("verbs")) as fleet:
        fleet.group(2, tags={"zone": "eu"})
        yield fleet


@pytest.fixture
def agent(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> AgentProcess:
    """The agent that commands ask unless told otherwise."""
    monkeypatch.setenv("HOLDFAST_AGENT", fleet.agents[0].socket)
    return fleet.agents[0]


@pytest.fixture
def other(fleet: Fleet) -> AgentProcess:
    return fleet.agents[1]


def listener(fleet: Fleet, *words: object) -> subprocess.Popen[str]:
    """A command that waits for something, as a process; it has begun when its first line is due."""
    return subprocess.Popen([sys.executable, "-m", "holdfast", *map(str, words)], stdout=subprocess.PIPE, text=True)


def test_members(holdfast: Run, agent: AgentProcess, other: AgentProcess) -> None:
    """One line for each member, in columns; this agent is marked."""
    ended = holdfast("members")
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[0].split() == ["NAME", "ADDRESS", "STATUS", "VERSION", "TAGS"]
    assert lines[1].split()[:5] == ["a0", "(this", "one)", agent.address, "alive"]
    assert lines[2].split()[:3] == ["a1", other.address, "alive"]


def test_members_as_json(holdfast: Run, agent: AgentProcess) -> None:
    """The shape in docs/cli.md."""
    found = holdfast("members", "--json").json
    assert found.keys() == {"state", "version", "me", "members"}
    assert (found["state"], found["me"]) == ("member", "a0")
    first = found["members"][0]
    assert first.keys() == {"name", "boot", "address", "status", "tags", "version", "position"}
    assert (first["name"], first["boot"], first["address"]) == ("a0", agent.ready["boot"], agent.address)
    assert first["tags"] == {"zone": "eu"}


@pytest.mark.parametrize(
    "flags,names",
    [
        (["--tag", "zone"], ["a0", "a1"]),
        (["--tag", "zone=eu", "--status", "alive"], ["a0", "a1"]),
        (["--tag", "zone=us"], []),
        (["--tag=zone", "--tag", "gpu"], []),
        (["--status", "suspected"], []),
    ],
)
@pytest.mark.usefixtures("agent")
def test_members_by_tag_and_status(holdfast: Run, flags: list[str], names: list[str]) -> None:
    """All filters must hold; nobody left is exit code 1."""
    ended = holdfast("members", "--json", *flags)
    assert [member["name"] for member in ended.json["members"]] == names
    assert ended.code == (0 if names else 1)


def test_bad_status(holdfast: Run, agent: AgentProcess) -> None:
    """Exit code 2 and what is accepted."""
    holdfast("members", "--agent", agent.socket, "--status", "dead").refused(2, "--status 'dead'", "alive, suspected, decided")


def test_info(holdfast: Run, agent: AgentProcess) -> None:
    """One line for each value for people, the object itself for programs; the key is in neither."""
    ended = holdfast("info")
    assert ["address", agent.address] in [line.split() for line in ended.out.splitlines()]
    assert ["settings.lease", "0.4"] in [line.split() for line in ended.out.splitlines()]
    found = holdfast("info", "--json").json
    assert (found["name"], found["group"], found["settings"]["preset"]) == ("a0", "test", "local")
    assert found["settings"]["key"] == "(hidden)"


@pytest.mark.usefixtures("agent")
def test_tags(holdfast: Run) -> None:
    """Set, show and remove; without a word they are shown."""
    assert holdfast("tags", "set", "role=db", "note=a=b").code == 0
    assert holdfast("tags", "--json").json["tags"] == {"note": "a=b", "role": "db", "zone": "eu"}
    assert holdfast("tags").out.splitlines() == ["note  a=b", "role  db", "zone  eu"]
    assert holdfast("tags", "remove", "role", "note", "never-there").out == "zone  eu\n"
    holdfast("tags", "set", "role").refused(2, "'role' has no value", "NAME=VALUE")
    holdfast("tags", "set", "bad name=x").refused(2, "'bad name'")
    assert holdfast("tags", "show", "--json").json["tags"] == {"zone": "eu"}


def test_watch(holdfast: Run, fleet: Fleet, agent: AgentProcess, other: AgentProcess) -> None:
    """Events as they come: JSON lines with at, version, event and its fields; --count ends it."""
    watching = listener(fleet, "watch", "--agent", agent.socket, "--json", "--count", 1, "--for", 60)
    until(lambda: tagged(holdfast, other, watching), "an event was seen")
    line = json.loads(watching.communicate(timeout=60)[0].splitlines()[0])
    assert watching.returncode == 0
    assert (line["event"], line["member"]["name"]) == ("Updated", "a1")
    assert line.keys() == {"at", "version", "event", "member"}


def tagged(holdfast: Run, agent: AgentProcess, watching: subprocess.Popen[str]) -> bool:
    """Change a tag, again and again, until the watcher has seen one change."""
    holdfast("tags", "set", f"n={next(numbers)}", "--agent", agent.socket)
    return watching.poll() is not None


@pytest.mark.usefixtures("agent")
def test_watch_for_a_while(holdfast: Run) -> None:
    """--for: it ends by itself, with what it saw; the facts inside protocols have a dot in their names."""
    assert holdfast("watch", "--for", "0.1").code == 0
    seen = [json.loads(line) for line in holdfast("watch", "--internal", "--for", "1.5", "--json").out.splitlines()]
    assert all("." in line["event"] for line in seen if line["event"] not in ("Updated", "Paused"))


@pytest.mark.parametrize("words", [["watch", "--count", "-1"], ["watch", "--for", "-1"], ["messages", "--for", "nan"]])
@pytest.mark.usefixtures("agent")
def test_bad_limits(holdfast: Run, words: list[str]) -> None:
    """Exit code 2 before anything is asked."""
    holdfast(*words).refused(2, "accepted are")


def test_send_and_messages(holdfast: Run, fleet: Fleet, agent: AgentProcess, other: AgentProcess) -> None:
    """A message to one member: nobody listens (3), somebody does (0), no such member (1); what arrives is escaped."""
    holdfast("send", "a1", "hello").refused(3, "no client of 'a1' listens")
    holdfast("send", "nobody", "hello").refused(1, "nobody")
    listening = listener(fleet, "messages", "--agent", other.socket, "--count", 2)
    until(lambda: holdfast("send", "a1", "one\x1b[31m\ntwo").code == 0, "it listens")
    assert holdfast("send", "a1", "[red]", "--json").json == {"to": "a1", "bytes": 5}
    assert listening.communicate(timeout=60)[0].splitlines() == ["a0: one\\x1b[31m\\ntwo", "a0: [red]"]


def test_cast(holdfast: Run, fleet: Fleet, agent: AgentProcess, other: AgentProcess) -> None:
    """A rumour reaches whoever listens to its topic, as JSON with text and base64."""
    listening = listener(fleet, "messages", "--agent", other.socket, "--topic", "news", "--count", 1, "--json")
    until(lambda: holdfast("cast", "news", "fire").code == 0 and listening.poll() is not None, "somebody heard it")
    assert listening.stdout is not None
    heard = json.loads(listening.communicate()[0])
    assert (heard["from"], heard["topic"], heard["text"], heard["base64"]) == ("a0", "news", "fire", "ZmlyZQ==")


@pytest.mark.usefixtures("agent")
def test_too_long(holdfast: Run) -> None:
    """A message has at most 32 KiB."""
    holdfast("send", "a1", "x" * 40_000).refused(2, "32768 bytes")


@pytest.mark.usefixtures("agent")
def test_seats_of_a_group_without(holdfast: Run) -> None:
    """F12: which setting is missing, exit code 2."""
    holdfast("seats").refused(2, "who are the seats?")


def test_seats(holdfast: Run, fleet: Fleet) -> None:
    """A machine-wide agent is its own seat."""
    alone = fleet.start(key=None, group="alone")
    assert "(this one)" in holdfast("seats", "--agent", alone.socket).out
    (seat,) = holdfast("seats", "--agent", alone.socket, "--json").json["seats"]
    assert (seat["own"], seat["life"]["name"]) == (True, alone.name)
    assert seat.keys() == {"number", "name", "address", "life", "own", "state", "wait", "heard_ago", "why"}
    alone.kill()


def test_leave_and_join(holdfast: Run, fleet: Fleet, agent: AgentProcess) -> None:
    """--stay keeps the agent, join brings it back, leave ends it with exit code 0."""
    guest = fleet.start(name="guest", seeds=[agent.address])
    guest.until_said("BecameMember")
    assert holdfast("leave", "--stay", "--agent", guest.socket).out == "left\n"
    assert holdfast("members", "--agent", guest.socket).code == 1
    holdfast("join", agent.address, "--agent", agent.socket).refused(1, "in a group already")
    assert holdfast("join", agent.address, "--agent", guest.socket, "--json").json == {"joined": True}
    assert holdfast("leave", "--agent", guest.socket, "--json").json == {"left": True, "ended": True}
    assert guest.wait() == 0


def test_force_leave(holdfast: Run, fleet: Fleet, agent: AgentProcess) -> None:
    """Another agent is asked by name, agrees, and ends."""
    guest = fleet.start(name="guest2", seeds=[agent.address])
    until(lambda: "guest2" in holdfast("members").out, "it is a member")
    assert holdfast("force-leave", "guest2").out == "guest2 agreed to leave\n"
    assert guest.wait() == 0
    holdfast("force-leave", "nobody").refused(1, "nobody")


def test_no_agent(holdfast: Run, tmp_path: Path) -> None:
    """Exit code 3, one line, what to do; a path that cannot be one is the input's fault."""
    for words in (["members"], ["watch"], ["info"], ["tags"], ["seats"], ["leave"], ["send", "a", "b"], ["keys", "list"]):
        holdfast(*words, "--agent", tmp_path / "none.sock").refused(3, "no agent answers at", "`holdfast agent`", "HOLDFAST_AGENT")
    holdfast("members", "--agent", "x" * 200).refused(2, "--agent", "too long")


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n", b"\0\0\0\4abcd", b"\0\0\0\1\x90", framed(msgpack_encode([1, 1, "?"]))])
def test_what_is_no_agent(holdfast: Run, tmp_path: Path, said: bytes) -> None:
    """A socket that speaks another language is exit code 3 and one line."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()

        def answer() -> None:
            with server.accept()[0] as client:
                client.recv(4096)
                client.sendall(said)

        thread = Thread(target=answer)
        thread.start()
        holdfast("members", "--agent", tmp_path / "s").refused(3, "agent")
        thread.join()


def test_where_the_agent_is(holdfast: Run, agent: AgentProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """--agent, then HOLDFAST_AGENT, then the socket of --group or HOLDFAST_GROUP in the runtime directory."""
    monkeypatch.setenv("HOLDFAST_AGENT", "")
    monkeypatch.setenv("HOLDFAST_RUNTIME_DIR", str(Path(agent.socket).parent))
    assert holdfast("members", "--group", "test").code == 0
    holdfast("members").refused(3, "default.sock")
    monkeypatch.setenv("HOLDFAST_GROUP", "test")
    assert holdfast("members").code == 0
    monkeypatch.setenv("HOLDFAST_AGENT", "elsewhere.sock")
    holdfast("members").refused(3, "elsewhere.sock")
