"""What doctor says about limits while something is wrong: the faults are those of the network and of the fleet, and the limiters find them.

Spec: limits 5.4, 5.7, 5.9, 9, D3; docs/operations.md. ``limit_conflict`` and ``limit_members`` need more of an agent than its machines
(``process/test_doctor.py``); the words of all findings are in ``unit/test_findings.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from holdfast.features.limits.findings import PANIC_AFTER, of_limits
from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.terms import Policy, Terms
from holdfast.features.limits.protocol.choke import LOOK_INTERVAL
from holdfast.features.limits.protocol.choke_watch import REPORT_INTERVAL
from holdfast.features.limits.protocol.config import STARVED_AFTER
from holdfast.local.calls import Finding

RATE = 300.0
FORMED = 12.0  # seconds: one view, ``settle``, and shares that have moved
SOON = 15.0  # seconds: views CB7
PAUSES = 4  # epochs between two messages to one peer that is quiet (D26)


def group_of(members: int, fleet: int, policy: Policy = "fair", *, homes: bool = False, declared: bool = True) -> LimitGroup:
    """Three servers, and members that want the same. More members than ``fleet`` would be a fault to a checker, too."""
    terms = Terms("x", RATE, 30.0, policy, "maxmin", fleet)
    group = LimitGroup(3, 3, members, [terms], lambda name: [{"x": Appetite(RATE, declared=declared)}], homes=homes, checked=False)
    group.run(FORMED)
    assert group.is_one()
    return group


def said(group: LimitGroup, name: str) -> list[Finding]:
    found: list[Finding] = []
    host = group.world.nodes[name]
    group.world.step(host, lambda: found.extend(of_limits(group.limiter(name), {}, name, host.now)))
    return found


def codes(group: LimitGroup, names: Sequence[str] = ()) -> dict[str, list[str]]:
    """By member; those that have nothing to say are left out."""
    found = {name: [each.code for each in said(group, name)] for name in names or group.clients if not group.world.nodes[name].dead}
    return {name: of_it for name, of_it in found.items() if of_it}


def everywhere(group: LimitGroup, code: str) -> dict[str, list[str]]:
    return {name: [code] for name in group.clients}


def test_more_members_than_the_limit_is_divided_for() -> None:
    """Limits D3: each member says so, with both numbers, until the limit is divided for all of them. Nothing is said of as many as that."""
    group = group_of(3, 2)
    assert codes(group) == everywhere(group, "limit_fleet")
    (found,) = said(group, "c1")
    assert (found.severity, found.about) == ("warning", "limit x")
    assert "There are 3 members, and the limit is divided for 2" in found.text
    assert "--fleet 3" in found.advice
    change_fleet(group, 3)
    assert codes(group) == {}


def change_fleet(group: LimitGroup, fleet: int) -> None:
    """As ``holdfast limit set x --fleet`` does at one member."""
    specs = group.limiter("c0").specs
    group.world.step(group.world.nodes["c0"], lambda: (specs.change("x", fleet=fleet), None)[1])
    group.run(FORMED)


def test_a_part_of_a_fleet_that_is_not_given() -> None:
    """Limits D3: with ``fleet`` auto each side of a cut says that it uses its part of the rate; a note, since members may have left."""
    group = group_of(6, 0, homes=True)
    assert codes(group) == {}
    cuts = group.cut(["s0", "c0", "c3"], ["s1", "s2", "c1", "c2", "c4", "c5"])
    group.run(SOON)
    assert codes(group) == everywhere(group, "limit_fleet")
    for name, size in (("c3", 2), ("c4", 4)):
        (found,) = said(group, name)
        assert (found.severity, found.about) == ("note", "limit x")
        assert f"{size} of the 6 members of the last ten minutes are here" in found.text
    group.heal(cuts)
    group.run(SOON)
    assert codes(group) == {}


def test_callers_that_wait_for_nothing() -> None:
    """Limits 5.5, D3, 9 (Starved): the third member of an exact limit for two is given nothing, and its callers wait. The other two have
    all they can have, and say nothing of it, although callers wait there as well."""
    group = group_of(3, 2, "exact", declared=False)
    group.run(STARVED_AFTER)
    assert codes(group) == {"c0": ["limit_fleet"], "c1": ["limit_fleet"], "c2": ["limit_fleet", "limit_starved"]}
    starved = said(group, "c2")[1]
    assert (starved.severity, starved.about) == ("warning", "limit x")
    assert f"this agent may use 0 of {RATE:g} a second" in starved.text
    change_fleet(group, 3)
    assert codes(group) == {}


def test_a_member_without_a_view() -> None:
    """Limits 5.7: no server lives, so no member has a view: each says since when, and what 1/n of the rate is. While a view may only be
    late nothing is said."""
    group = group_of(3, 3)
    views = group.config
    for name in group.servers:
        group.crash(name)
    group.run(views.lease + PANIC_AFTER - views.heartbeat)
    assert codes(group) == {}
    group.run(SOON)
    assert codes(group) == everywhere(group, "limit_panic")
    (panic,) = said(group, "c2")
    assert (panic.severity, panic.about) == ("error", "c2")
    told = re.match(r"For (\d+) s this agent is in no view: .*; of x that is 100 per second\.$", panic.text)
    assert told, panic.text
    since = PANIC_AFTER + SOON  # less what of the lease had passed when the servers died: a heartbeat and a round trip at most
    assert since - 2 * views.heartbeat - 0.5 <= int(told[1]) <= since + 0.5
    assert group.used("x") == pytest.approx(dict.fromkeys(group.clients, RATE / 3))
    for name in group.servers:
        group.start(name)
    group.run(SOON)
    assert codes(group) == {}


def test_a_direct_path_that_is_cut() -> None:
    """Limits 5.4: both ends of the path name the other end, and the third member says nothing; the path is tried again, and then no
    member says anything."""
    group = group_of(3, 3)
    limits = group.limits
    cuts = group.cut(["c0"], ["c1"])
    group.run((limits.loss + 1) * PAUSES * limits.epoch)
    assert codes(group) == {"c0": ["limit_blacklist"], "c1": ["limit_blacklist"]}
    for name, other in (("c0", "c1"), ("c1", "c0")):
        (found,) = said(group, name)
        assert (found.severity, found.about) == ("warning", str(group.world.nodes[other].me))
    group.heal(cuts)
    group.run(limits.probe + 1.0)
    assert codes(group) == {}


def test_two_parts_with_one_link() -> None:
    """Limits 5.9, H271: three of eight members have one direct link to the others. The smallest member names them, and every end of a
    path that is cut names the other end. Wants move a little, as they do in life, so that links are tried."""
    group = group_of(8, 8)
    few, many = group.clients[:3], group.clients[3:]
    group.cut(few[:2], many)
    group.cut(few[2:], many[:-1])
    stir(group, LOOK_INTERVAL + REPORT_INTERVAL + SOON)
    found = said(group, "c0")
    assert [each.about for each in found if each.code == "limit_choke"] == [", ".join(str(group.world.nodes[name].me) for name in few)]
    assert {each.severity for each in found} == {"warning"}
    ends = {name: count.count("limit_blacklist") for name, count in codes(group).items()}
    assert ends == {"c0": 5, "c1": 5, "c2": 4, **dict.fromkeys(many[:-1], 3), many[-1]: 2}
    assert [name for name, told in codes(group).items() if "limit_choke" in told] == ["c0"]


def stir(group: LimitGroup, seconds: float) -> None:
    for number in range(int(seconds / group.limits.epoch)):
        for crew in group.fleet.crews.values():
            crew.appetites[0]["x"].rate = RATE * (1.1 if number % 2 else 0.9)
        group.run(group.limits.epoch)
