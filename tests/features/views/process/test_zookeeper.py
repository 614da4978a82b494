"""Views from three real servers of ZooKeeper, by real processes with kazoo.  Spec: views 5Z, 5.8, D21, D22; G1, G2, G5, G7.

Every deadline is generous: the machine may be busy. Safety is asserted exactly.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from holdfast.features.views.lab.ensemble import STALE, Ensemble, missing
from holdfast.features.views.lab.wires import Wires
from tests.tidy.tree import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(missing()), reason=missing())]  # three Java processes and their elections

SESSION = 2.0  # seconds
PATIENCE = 45.0
LEAVE_MAX = 10.0
Line = dict[str, Any]


class Member:
    """A process, and what it said."""

    def __init__(self, ensemble: Ensemble, name: str, server: int, boot: int = 1) -> None:
        self.name, self.wire = name, ensemble.door(server)
        self.lines: list[Line] = []
        place = str(self.wire.address)
        command = [sys.executable, "-m", "tests.features.views.process.zookeeper_member", name, str(boot), place, str(SESSION), str(STALE)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def order(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def ask(self) -> bool:
        self.order("ask")
        return False

    def found(self, key: str) -> list[Any]:
        return [line[key] for line in list(self.lines) if key in line]

    @property
    def now(self) -> list[Line]:
        """All that it says of its views, in order."""
        return [line for line in list(self.lines) if line.keys() & {"view", "lost", "restored"}]

    @property
    def names(self) -> str:
        """Names of the members of its view; "" if it has none."""
        told = self.now
        views = [line["view"] for line in told if "view" in line]
        return "" if not told or "lost" in told[-1] else "".join(life.partition("#")[0] for life in views[-1])

    @property
    def number(self) -> int:
        return max(self.found("number"), default=0)

    def end(self) -> None:
        try:
            self.process.wait(LEAVE_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):  # Its last order was not read.
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))


class Group:
    """Members of one ensemble."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self.members: dict[str, Member] = {}

    def add(self, name: str, server: int, boot: int = 1) -> Member:
        member = self.members[f"{name}#{boot}"] = Member(self.ensemble, name, server, boot)
        return member

    def form(self, names: str = "abc") -> list[Member]:
        members = [self.add(name, server) for server, name in enumerate(names)]
        self.until_all(names, members)
        return members

    def until_all(self, names: str, members: list[Member]) -> None:
        until(lambda: all(member.names == names for member in members), f"the view of {names}")
        until(lambda: len({member.number for member in members}) == 1, "one number")

    def check(self) -> None:
        """G1 and G2, over all that was said."""
        lists: dict[int, list[str]] = {}
        for life, member in self.members.items():
            numbers = member.found("number")
            assert numbers == sorted(set(numbers)), "G2"
            for line in [line for line in member.lines if "view" in line]:
                assert lists.setdefault(line["number"], line["view"]) == line["view"], "G1"
                assert life in line["view"], "G2"

    def end(self) -> None:
        """Those that can leave do: their sessions need not run out."""
        for member in self.members.values():
            with suppress(OSError):
                member.order("leave")
        for member in self.members.values():
            member.end()


def until(holds: Callable[[], object], what: str, within: float = PATIENCE) -> None:
    end_at = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end_at, f"never happened: {what}"
        time.sleep(0.02)


def followers(ensemble: Ensemble) -> list[int]:
    """The servers that do not lead now."""
    leader = ensemble.leader()
    assert leader is not None
    return [server.number for server in ensemble.servers if server.number != leader]


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with Wires() as wires, Ensemble(tmp_path_factory.mktemp("zookeeper"), wires, leader=2) as found:
        yield found


@pytest.fixture
def group(ensemble: Ensemble) -> Iterator[Group]:
    ensemble.heal_all()
    ensemble.until_whole()
    found = Group(ensemble)
    try:
        yield found
        found.check()
    finally:
        found.end()
        wipe(ensemble)


def wipe(ensemble: Ensemble) -> None:
    """Sessions of killed members end before the next test counts its members."""
    from kazoo.client import KazooClient

    ensemble.heal_all()
    ensemble.until_whole()
    client = KazooClient(str(ensemble.door(0).address))
    client.start(PATIENCE)
    until(lambda: client.exists("/holdfast/g") is None or client.get_children("/holdfast/g/members") == [], "sessions end")
    client.delete("/holdfast", recursive=True)
    client.stop()
    client.close()


def test_a_view_of_three(group: Group) -> None:
    """Views 5Z: three members at three servers are in one view; one that leaves is out of it at once, its mailbox too."""
    a, b, c = group.form()
    c.order("leave")
    group.until_all("ab", [a, b])
    until(lambda: c.found("ended"), "c has left")
    assert c.process.wait(PATIENCE) == 0
    a.order("ask")
    until(lambda: a.found("metrics"), "an answer")
    assert a.found("granted") == [SESSION]
    assert a.found("metrics")[0]["size"] == 2


def test_a_member_that_is_killed(group: Group) -> None:
    """Views 5Z: its znode goes with its session; the next life of that name comes back, and deletes a znode that is still there."""
    a, b, c = group.form()
    c.process.kill()
    again = group.add("c", 2, boot=2)
    until(lambda: a.found("view")[-1:] == [["a#1", "b#1", "c#2"]], "the next life")
    group.until_all("abc", [a, b, again])
    again.process.kill()
    group.until_all("ab", [a, b])


def test_a_member_that_is_stopped(group: Group) -> None:
    """Views D17: its session runs out and the others go on without it. It resumes with its lease over, and comes back under its id."""
    a, b, c = group.form()
    os.kill(c.process.pid, signal.SIGSTOP)
    group.until_all("ab", [a, b])
    before = len(c.lines)
    os.kill(c.process.pid, signal.SIGCONT)
    until(lambda: len(c.now) > 0 and "lost" in str(c.lines[before:]), "c knows")
    group.until_all("abc", [a, b, c])
    told = [line for line in c.lines[before:] if line.keys() & {"view", "lost", "restored"}]
    assert "lost" in told[0]


def test_the_minority_loses_its_view(group: Group, ensemble: Ensemble) -> None:
    """Views 5.8, cases 1 and 3: a server that is cut from the leader stops answering; its member panics, and the others go on."""
    members = group.form()
    number = followers(ensemble)[0]
    alone, others = members[number], [*members[:number], *members[number + 1 :]]
    ensemble.cut_off(number)
    until(lambda: alone.names == "", "the member there has no view")
    group.until_all("".join(member.name for member in others), others)
    lost = [line["lost"] for line in alone.now if "lost" in line]
    assert "the connection to ZooKeeper broke" in lost[0]
    ensemble.heal_all()
    group.until_all("abc", members)
    assert all("lost" not in line for member in others for line in member.now)


def test_a_cut_between_followers_changes_nothing(group: Group, ensemble: Ensemble) -> None:
    """Views D21: with the leader elsewhere, a cut between the two other servers is not noticed."""
    members = group.form()
    one, other = followers(ensemble)
    before = [len(member.now) for member in members]
    ensemble.cut(one, other)
    time.sleep(2 * SESSION)
    members[one].order("carry", members[other].name, "round-the-cut")
    until(lambda: members[one].found("result"), "a result")
    assert members[one].found("result") == ["DELIVERED"]
    assert [len(member.now) for member in members] == before


def test_a_member_that_is_cut_off(group: Group) -> None:
    """Views 5Z: its own connection breaks: ``ViewLost`` at once, and the same view again with the same session."""
    a, b, c = group.form()
    number = a.number
    a.wire.cut()
    until(lambda: a.names == "", "a has no view", within=10.0)
    a.wire.heal()
    until(lambda: a.names == "abc", "a has its view again")
    kinds = [sorted(line.keys() & {"view", "lost", "restored"}) for line in a.now[-2:]]
    if a.number == number:  # The session was not over before the machine got so far.
        assert kinds == [["lost"], ["restored"]]
    group.until_all("abc", [a, b, c])


def test_letters_arrive_once(group: Group) -> None:
    """G7, views 5Z: in order, once, also large ones, while the receiver's connection is cut again and again; success is delivery."""
    a, b, _ = group.form()
    for number in range(200):
        a.order("carry", "b", f"n{number}", "20000" if number % 50 == 0 else "0")
        if number % 70 == 60:
            b.wire.cut()
            b.wire.heal()
            until(lambda: b.names == "abc", "b is back")
            until(lambda: a.names == "abc", "a sees it")
    until(lambda: len(a.found("result")) == 200, "all results")
    results = {line["text"]: line["result"] for line in a.lines if "result" in line}
    heard = [text.strip() for text in b.found("heard")]
    assert len(set(heard)) == len(heard)
    assert heard == sorted(heard, key=lambda text: int(text[1:]))
    assert {text for text, result in results.items() if result == "DELIVERED"} <= set(heard)
    assert sum(result == "DELIVERED" for result in results.values()) > 100


def test_a_trip(group: Group) -> None:
    """Views 5Z, 5.7: a trip gives every member another view with the same members; the next one has to wait."""
    a, b, c = group.form()
    number = a.number
    a.order("trip")
    until(lambda: a.number > number, "another view")
    group.until_all("abc", [a, b, c])
    a.order("trip")
    until(lambda: len(a.found("trip")) == 2, "an answer")
    assert (a.found("trip"), a.found("tripped")) == ([True, False], ["as told"])


def test_a_receiver_that_does_not_read(group: Group) -> None:
    """G5: a receiver that is stopped: the sender hears ``TRIPPED`` and of a view without it, or of its own trip."""
    a, _, c = group.form()
    os.kill(c.process.pid, signal.SIGSTOP)
    a.order("carry", "c", "unread")
    until(lambda: a.found("result"), "a result")
    assert a.found("result") == ["TRIPPED"]
    until(lambda: a.names == "ab" or a.found("tripped"), "news of it")
    os.kill(c.process.pid, signal.SIGCONT)
    until(lambda: c.names == "abc", "c is back")
    time.sleep(0.2)
    assert len(c.found("heard")) <= 1


def test_two_agents_of_one_name(group: Group) -> None:
    """Views 5Z: ``NameConflict``: the second one has no view, says why, and gets one when the first is gone."""
    a, b, _ = group.form()
    other = group.add("a", 1, boot=0)
    until(lambda: other.ask() or "has the same name in ZooKeeper" in str(other.found("why")), "the reason")
    assert other.names == ""
    assert a.names == "abc"
    a.order("leave")
    until(lambda: other.names == "abc", "its turn")
    until(lambda: b.names == "abc", "b has it")


def test_the_leader_is_cut_off(group: Group, ensemble: Ensemble) -> None:
    """Views D21: every member panics for the election, the majority has one view again, and the old leader's member comes back at last."""
    members = dict(zip(range(3), group.form(), strict=True))
    leader = ensemble.leader()
    assert leader is not None
    ensemble.cut_off(leader)
    others = [member for server, member in members.items() if server != leader]
    until(lambda: members[leader].names == "", "the old leader's member has no view")
    group.until_all("".join(member.name for member in others), others)
    ensemble.heal_all()
    group.until_all("abc", list(members.values()))
