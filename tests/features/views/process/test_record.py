"""The recorder that looks at views from outside finds what it is for: lines that must never be seen."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from holdfast.host import Address, NodeId, View, ViewId, ViewMember
from tests.features.views.process.body import described
from tests.features.views.process.record import TICK, Line, Listed, Lives, Move, Seen, moves_in, settled_pairs, wrongs, wrongs_of_znodes

SETTLE = 5.0


def seen(number: int, *members: str, attach: int = 1, server: str = "s0#1") -> Seen:
    return Seen(f"{number}/{server}", number, (server,), tuple(Listed(f"{name}#1", attach, server) for name in members))


def line(me: str, at: float, view: Seen | None, *, until: float, since: float | None = None) -> Line:
    """It installed the view when it says so, or at ``since``."""
    return Line(at, f"{me}#1", "view", 0, view, until, at if since is None else since)


def znodes(number: int, **members: int) -> Seen:
    """A view of ZooKeeper; of each member the number of its znode."""
    return Seen(f"{number}/#0", number, (), tuple(Listed(f"{name}#1", made, "#0") for name, made in members.items()))


AB, A, B = seen(1, "a", "b"), seen(2, "a"), seen(2, "b", server="s1#1")
BC = seen(7, "b", "c", server="s1#1")
BEGUN = [Move("a#1", 1, 0.0), Move("b#1", 1, 0.0), Move("c#1", 1, 0.0)]


@pytest.mark.parametrize(
    "lines, told",
    [
        ([line("a", 1.0, AB, until=2.0), line("b", 1.0, AB, until=2.0)], None),
        ([line("a", 1.0, AB, until=2.0), line("b", 1.0, seen(1, "b"), until=2.0)], "CB1: 1/s0#1 at b#1"),
        ([line("a", 1.0, AB, until=2.0), line("a", 2.0, A, until=3.0), line("a", 3.0, A, until=4.0)], None),
        ([line("a", 1.0, A, until=2.0), line("a", 2.0, AB, until=3.0)], "CB2: a#1 installed 1/s0#1 after 2/s0#1"),
        ([line("a", 1.0, BC, until=2.0)], "CB3: a#1 installed 7/s1#1 and is not in it"),
        ([line("a", 1.0, seen(1, "a", attach=2), until=2.0)], "CB3: a#1 installed 1/s0#1, which lists its attachment 2"),
        ([line("a", 1.0, A, until=2.0), line("b", 1.0, B, until=2.0)], None),
        (
            [line("a", 1.0, A, until=2.0), line("b", 1.0, Seen("2/s1#1", 2, ("s0#1", "s1#1"), B.members), until=2.0)],
            "CB4: 2/s0#1 and 2/s1#1 share a server",
        ),
        # (a): b installed another view at 2.0; a may count on the former one until 7.0.
        ([line("a", 1.0, AB, until=7.0), line("b", 1.0, AB, until=2.0), line("b", 2.0, B, until=3.0)], None),
        ([line("a", 1.0, AB, until=7.1), line("b", 1.0, AB, until=2.0), line("b", 2.0, B, until=3.0)], "CB6 (a): a#1 counts on 1/s0#1"),
        ([line("a", 1.0, AB, until=2.0), line("a", 2.0, A, until=3.0), line("a", 2.1, AB, until=9.0, since=1.0)], "CB6 (a)"),
        # (b): a is settled in a view with b from 6.0 on, and b in a view without a from 7.0 on.
        ([line("a", 1.0, AB, until=7.0), line("b", 2.0, BC, until=9.0)], None),
        ([line("a", 1.0, AB, until=7.1), line("b", 2.0, BC, until=9.0)], "CB6 (b): a#1 in 1/s0#1 and b#1 in 7/s1#1 from 7.0"),
        ([line("a", 1.0, A, until=99.0), line("b", 2.0, BC, until=99.0)], None),  # none is in the view of the other
        # A lease that was over before it was extended did not run meanwhile.
        ([line("a", 1.0, AB, until=6.5), line("a", 9.0, AB, until=9.5, since=1.0), line("b", 2.0, BC, until=8.0)], None),
        ([line("a", 1.0, AB, until=6.5), line("a", 6.0, AB, until=7.5, since=1.0), line("b", 2.0, BC, until=8.0)], "CB6 (b)"),
        ([line("a", 1.0, None, until=-inf)], None),
    ],
)
def test_what_must_never_be_seen_is_found(lines: list[Line], told: str | None) -> None:
    """Views CB1 to CB4, CB6 (a), (b): other lists, numbers that fall, views without oneself, overlaps; and nothing else."""
    found = [each for each in wrongs(lines, BEGUN, SETTLE) if told is None or each.partition(":")[0] == told.partition(":")[0]]
    assert len(found) == (0 if told is None else 1)
    assert told is None or found[0].startswith(told)


@pytest.mark.parametrize(
    "lines, told",
    [
        ([line("a", 1.0, znodes(5, a=2, b=5), until=2.0), line("a", 2.0, znodes(9, a=8), until=3.0)], None),
        ([line("a", 1.0, znodes(5, a=2), until=2.0), line("b", 1.0, znodes(5, b=2), until=2.0)], "CB1: 5/#0 at b#1"),
        ([line("a", 1.0, znodes(5, a=2), until=2.0), line("a", 2.0, znodes(4, a=2), until=3.0)], "CB2: a#1 installed 4/#0 after 5/#0"),
        ([line("a", 1.0, znodes(5, b=2), until=2.0)], "CB3: a#1 installed 5/#0 and is not in it"),
        ([line("a", 1.0, znodes(5, a=6), until=2.0)], "CB3: a#1 installed 5/#0, which lists its znode 6"),  # made after the view
        ([line("a", 1.0, znodes(5, a=3), until=2.0), line("a", 2.0, znodes(7, a=2), until=3.0)], "CB3: a#1 installed 7/#0, which lists"),
        # The minority counts on the old view, the majority is settled in the next one from 7.0 on.
        ([line("a", 1.0, znodes(5, a=1, b=2), until=7.0), line("b", 2.0, znodes(6, b=2), until=9.0)], None),
        ([line("a", 1.0, znodes(5, a=1, b=2), until=7.1), line("b", 2.0, znodes(6, b=2), until=9.0)], "CB6 (b): a#1 in 5/#0 and b#1 in"),
        (
            [line("a", 1.0, znodes(5, a=1, b=2), until=7.1), line("b", 1.0, znodes(5, a=1, b=2), until=2.0),
             line("b", 2.0, znodes(6, b=2), until=3.0)],
            "CB6 (a): a#1 counts on 5/#0",
        ),
    ],
)  # fmt: skip
def test_what_must_never_be_seen_on_zookeeper_is_found(lines: list[Line], told: str | None) -> None:
    """Views CB1 to CB3, CB6 (a), (b), 5Z: the same over views that have znodes in the place of attachments, and no servers."""
    found = wrongs_of_znodes(lines, SETTLE)
    assert len(found) == (0 if told is None else 1), found
    assert told is None or found[0].startswith(told)


@pytest.mark.parametrize("until, wrong", [(7.0, False), (7.1, True)])
def test_a_lease_on_what_a_member_left_is_found(until: float, wrong: bool) -> None:
    """Views CB6 (c): b began its second attachment at 2.0 and installed nothing since; from 7.0 on a must not count on the first one."""
    found = wrongs([line("a", 1.0, AB, until=until)], [*BEGUN, Move("b#1", 2, 2.0 - TICK)], SETTLE)
    assert [each.startswith("CB6 (c): a#1 counts on 1/s0#1") for each in found] == ([True] if wrong else [])


def test_attachments_at_one_time() -> None:
    """Views CB3: the log knows times to a millisecond; within it both attachments may be the present one, after it the newer one is."""
    second = seen(3, "a", attach=2)
    moves = [Move("a#1", 1, 0.0), Move("a#1", 2, 1.0)]
    for view, at, wrong in ((A, 1.0005, False), (second, 1.0005, False), (second, 1.01, False), (A, 1.01, True)):
        assert bool(wrongs([line("a", at, view, until=2.0)], moves, SETTLE)) == wrong


def test_pairs_are_counted() -> None:
    """A record in which no two clients were ever settled at once shows nothing of views CB6 (b)."""
    lines = [line("a", 1.0, AB, until=6.5), line("b", 1.0, AB, until=6.5), line("c", 2.0, BC, until=6.5)]
    assert settled_pairs(lines, SETTLE) == 1


def test_records_are_read(tmp_path: Path) -> None:
    """What a body writes is read back, each line once and only when it is whole; a log says when attachments began."""
    path, lives = tmp_path / "record", Lives()
    assert lives.read(path) == []
    view = View(ViewId(1, "s0", 1), (NodeId("s0", 1),), (ViewMember(NodeId("a", 1), Address("x", 1), 1, NodeId("s0", 1)),))
    raw = {"at": 1.0, "me": "a#1", "what": "now", "state": 0, "view": described(view), "leased_until": 2.5, "installed_at": 0.5}
    first = json.dumps(raw)
    second = json.dumps({**raw, "at": 2.0, "view": None, "leased_until": None})
    path.write_text(f"{first}\n{second[:9]}")
    assert lives.read(path) == [Line(1.0, "a#1", "now", 0, seen(1, "a"), 2.5, 0.5)]
    path.write_text(f"{first}\n{second}\n")
    assert [(each.at, each.view, each.leased_until) for each in lives.read(path)] == [(1.0, seen(1, "a"), 2.5), (2.0, seen(1, "a"), -inf)]
    log: list[dict[str, Any]] = [{"at": "1970-01-01T00:01:40.250Z", "event": "Detached", "attach": 3}, {"event": "Joined"}]
    assert moves_in(log, "a#1", 99.0) == [Move("a#1", 3, 1.25)]
