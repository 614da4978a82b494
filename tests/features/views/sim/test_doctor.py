"""What doctor says about views while something is wrong: the faults are those of the network, and the machines find them.

Spec: views 9, D13, D25, D27; docs/operations.md. The words and the limits of each finding are in ``unit/test_findings.py``, ``view_rtt``
is in ``test_teeth.py`` (D27), ``zookeeper_session`` with the machine that has sessions.
"""

from __future__ import annotations

import pytest

from holdfast.config import Config
from holdfast.features.views.findings import FLAPS, of_views
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.settings import ViewsSettings
from holdfast.local.calls import Finding
from tests.features.views.sim.test_directed import QUIET, SETTLE, SOON, formed, hear_nothing_of_s0

SETTINGS = ViewsSettings.of(Config(preset="lan"))


def said(group: ViewGroup, name: str) -> list[Finding]:
    return list(of_views(group.node(name), SETTINGS, name, serves=name in group.servers))


def codes(group: ViewGroup, name: str) -> list[tuple[str, str, str]]:
    """Of each finding the code, how bad it is, and the seat or agent that it is about."""
    return [(each.code, each.severity, each.about.partition(" (")[0]) for each in said(group, name)]


@pytest.fixture
def group() -> ViewGroup:
    """Three servers and six clients that are well."""
    group = formed(ViewGroup(1, 3, 6, habits=QUIET))
    assert {name: found for name in (*group.servers, *group.clients) if (found := codes(group, name))} == {}
    return group


def test_a_link_that_is_cut(group: ViewGroup) -> None:
    """Views 9, 5.8 case 4: both ends say so, and the third seat has nothing to say. A link that is cut again and again is no note any
    more, also while it is up."""
    for times in range(1, FLAPS + 1):
        flaps = times == FLAPS
        cuts = group.cut(["s0"], ["s2"])
        group.run(SETTLE)
        severity = "warning" if flaps else "note"
        assert codes(group, "s0") == [("view_links", severity, "seat 2")]
        assert codes(group, "s2") == [("view_links", severity, "seat 0")]
        group.heal(cuts)
        group.run(SETTLE)
        assert codes(group, "s0") == ([("view_links", "warning", "seat 2")] if flaps else [])
    assert codes(group, "s1") == []


def test_a_hole(group: ViewGroup) -> None:
    """Views D25: heartbeats of s0 pass, its link states do not. Those that miss them say what is wrong with which seat."""
    hear_nothing_of_s0(group)
    group.run(SOON)
    for name in ("s1", "s2"):
        found = codes(group, name)
        assert ("view_hole", "warning", "seat 0") in found, found


def test_a_change_that_does_not_end(group: ViewGroup) -> None:
    """Views 4 (``change_warn``), G3: proposals of s1 and s2 do not pass, so no view can follow the one that a client has left."""
    for source, target in (("s1", "s2"), ("s1", "s0"), ("s2", "s1"), ("s2", "s0")):
        group.hole(source, target, "Propose")
    group.crash("c0")
    group.run(SETTINGS.views_config().client_timeout + SETTINGS.views_config().change_warn - 1.0)
    assert "view_slow" not in [code for code, _, _ in codes(group, "s0")]
    group.run(2.0)
    assert ("view_slow", "warning", "s0") in codes(group, "s0")


def test_a_client_without_a_server(group: ViewGroup) -> None:
    """Views 5.6, 9: no server lives, so no client has a view; each says since when, and that none answers."""
    for name in group.servers:
        group.crash(name)
    group.run(SETTLE)
    (lost,) = said(group, "c0")
    assert (lost.code, lost.severity, lost.about) == ("view_lost", "error", "c0")
    assert "no view server answers" in lost.text
