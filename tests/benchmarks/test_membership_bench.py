"""`membership` at a size that measures nothing: real agents, what a side is told of them, the shape of the answer; and its arithmetic.

No test here asserts a speed.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from benchmarks import membership, membership_members
from benchmarks.__main__ import main
from benchmarks.membership import GOALS, Size, doubts, of_system, ratios, worst
from benchmarks.membership_members import Agent, Kinship, Serf
from benchmarks.membership_side import Heard, Side, own_addresses
from benchmarks.ring_fleet import NeverHappened
from holdfast.errors import AgentLost
from holdfast.host import Address, Member, NodeId
from holdfast.local.calls import Call, EventItem, GroupView

TINY = Size(sizes=(3,), together=(("gossip",),), pauses=1, calm_seconds=0.5, busy_seconds=0.5)


def test_ours_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """H241: of what was left out there is no number, and what is made of it is null; few kills and pauses are told as such."""
    monkeypatch.setattr(membership, "run", partial(membership.run, size=TINY))
    assert main(["membership", "--json", "--rounds", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [problem.partition(":")[0] for problem in found["problems"] if "network namespaces" not in problem] == ["kills", "pauses"]
    theirs = {name for name in found["ratios"] if name.startswith(("ring_", "kinship_", "serf_")) or name.endswith("_over_kinship")}
    assert {name for name, ratio in found["ratios"].items() if ratio is None} == theirs
    assert found["goals"].keys() <= found["ratios"].keys()
    of_three = found["raw"]["found"]["gossip"]["3"]
    assert (len(of_three["kills"]["kills"]), of_three["pauses"]["pauses"]) == (1, 1)
    assert 10 < found["ratios"]["packets_per_member"] < 60
    assert found["raw"]["lateness_ms"].keys() == {f"3 gossip {what}" for what in ("calm", "kills", "pauses", "whole", "busy")}


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: each peer that is missing says what to install, has no number, and makes the run a miss."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(membership, "kinship_version", lambda: {"kinship": "0.3.0"})
    absent = membership.missing(Size().together)
    assert absent == {
        "kinship": "kinship 0.4.0 is not here: pip install kinship==0.4.0",
        "serf_lan": "serf is not here: apt-get install serf",
        "serf_local": "serf is not here: apt-get install serf",
    }
    assert membership.missing((("gossip", "ring"),)) == {}


def test_nothing_measured_is_nothing() -> None:
    """H241: no number is made of no measurement."""
    found = ratios({})
    assert {*found.values()} == {None}
    assert GOALS.keys() <= found.keys()


def one_size(first: float, cpu: float, *, dead: int = 0, deaths: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "form": 2.0,
        "calm": {"packets_per_member": 20.0, "bytes_per_member": 1.0, "cpu_ms_per_member": cpu, "rss_mib": 29.0},
        "kills": {"kills": [{"first": first, "last": first + 0.1, "restart_seen": 0.5, "false": []}] * 3},
        "pauses": {"pauses": 4, "dead": [{"name": "n1"}] * dead},
        "busy": {"deaths": [*deaths]},
    }


def test_the_worst_size_counts() -> None:
    """Issue 17: medians of each size, the worst of the sizes; of a ratio the worst size, and false deaths of all sizes together."""
    found = ratios({
        "gossip": {5: one_size(0.4, 2.0, dead=1), 16: one_size(0.3, 3.0, deaths=("n2",))},
        "kinship": {5: one_size(0.8, 1.0), 16: one_size(0.4, 2.0)},
    })  # fmt: skip
    assert (found["first_s"], found["last_s"]) == (0.4, 0.5)
    assert found["first_over_kinship"] == pytest.approx(0.75)
    assert found["cpu_over_kinship"] == 2.0
    assert (found["false_after_pause"], found["false_under_load"], found["kinship_first_s"]) == (1.0, 1.0, 0.8)


def test_a_size_that_broke_off_leaves_no_number() -> None:
    """H241: the worst of some sizes is no worst of all."""
    assert worst([1.0, None]) is None
    assert worst([]) is None
    broken = of_system({5: one_size(0.4, 2.0), 16: {"form": 3.0}})
    assert (broken["first_s"], broken["false_under_load"], broken["form_s"]) == (None, None, 3.0)


def test_false_deaths_during_kills_are_told() -> None:
    """Issue 17: a kill that took a living member along is no clean kill."""
    found = one_size(0.4, 2.0)
    found["kills"]["kills"] = [{"false": ["n3"]}] * membership.KILLS_ASKED
    found["pauses"]["pauses"] = membership.PAUSES_ASKED
    assert doubts({"gossip": {5: found}}) == [
        "kills: living members of ours were held for dead meanwhile: " + ", ".join(["n3"] * membership.KILLS_ASKED)
    ]


class Starts:
    """Starts nothing."""

    def start(self, number: int, first: int | None) -> Any:
        raise NotImplementedError


def test_lists_follow_what_members_are_told() -> None:
    """Whole is: each lists all and no other; a death takes a name out until it has joined again."""
    side = Side(Starts(), 2)  # type: ignore[arg-type]
    side.lists = {"n0": {"n0", "n1"}, "n1": {"n0", "n1"}}
    assert side._whole()

    class Said:
        name, is_up, pid = "n0", True, 0

        def read(self) -> list[tuple[str, str]]:
            return [("suspected", "n1"), ("failed", "n1")]

    side._take(Said())  # type: ignore[arg-type]
    assert not side._whole()
    assert [(each.observer, each.word, each.name) for each in side.heard] == [("n0", "suspected", "n1"), ("n0", "failed", "n1")]
    assert side._deaths(0) == ["n1"]
    side.heard.append(Heard(0.0, "n1", "joined", "n0"))
    assert side._deaths(2) == []


def test_an_agent_whose_events_were_lost_is_asked_for_its_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """STYLE 4, H340: a reader that falls behind reads ``EventsLost``. What it missed has changed the list, so it asks for that."""
    agent = SimpleNamespace(pid=1, socket="", until_it_answers=lambda: None, check=lambda: None)
    line = Lines(view("a", "b"))
    monkeypatch.setattr(membership_members, "AgentProcess", lambda *_, **__: agent)
    monkeypatch.setattr(membership_members, "Line", lambda _: line)
    member = Agent("a", "127.0.0.1:1", [], tmp_path, {})
    member._joining.join()
    assert member.read() == [("joined", "a"), ("joined", "b")]
    line.now = view("a", "c")
    line.items.append(msgspec.msgpack.encode(EventItem(9, 0.0, "EventsLost", msgspec.Raw(msgspec.msgpack.encode({"count": 3})))))
    assert member.read() == [("gone", "b"), ("joined", "c")]
    assert member.read() == []
    assert line.asked == 1
    member.check()
    line.lost = True
    assert member.read() == []
    with pytest.raises(NeverHappened, match="a: its agent hung up"):
        member.check()


def view(*names: str) -> GroupView:
    members = tuple(Member(NodeId(name, 1), Address(name, 1), {}) for name in names)
    return GroupView(1, "member", members[0], members, ())


class Lines:
    """A conversation with an agent: what it lists now, and what it has said."""

    def __init__(self, now: GroupView) -> None:
        self.now, self.asked = now, 0
        self.items: list[bytes] = []
        self.lost = False

    def open(self, kind: type[Call], sink: Agent) -> GroupView:
        self._sink = sink
        return self.now

    def read(self, timeout: float) -> None:
        if self.lost:
            raise AgentLost("it ended")
        while self.items:
            self._sink.push(msgspec.Raw(self.items.pop(0)))

    def tell(self, kind: type[Call], *, waiter: Agent) -> None:
        self.asked += 1
        waiter.set_result(self.now)


def test_what_serf_and_kinship_say_is_read() -> None:
    """Lines as kinship 0.4's program and serf 0.9.4's log have them."""
    serf, kinship = Serf.__new__(Serf), Kinship.__new__(Kinship)
    assert serf.told(b"    2026/11/19 19:55:01 [INFO] serf: EventMemberFailed: n3 127.0.0.1") == ("failed", "n3")
    assert serf.told(b"    2026/11/19 19:55:01 [INFO] serf: EventMemberJoin: n10 127.0.0.1") == ("joined", "n10")
    assert serf.told(b"    2026/11/19 19:55:01 [INFO] agent: Received event: member-failed") is None
    assert (kinship.told(b"suspected n3"), kinship.told(b"ready n0")) == (("suspected", "n3"), None)


def test_addresses_of_a_namespace_are_not_those_of_connections() -> None:
    """A member that starts late must not find its port taken by a stream of another one."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = [int(address.rpartition(":")[2]) for address in own_addresses(128)]
    assert len({*ports}) == 128
    assert max(ports) < low
