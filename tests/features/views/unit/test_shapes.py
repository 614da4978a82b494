"""A view in events: over HTTP, on the command line, in the log.  docs/decisions.md H246; docs/http.md, docs/cli.md."""

from __future__ import annotations

import json

from msgspec import Raw

from holdfast.agent.observe.narrator import Narrator
from holdfast.cli.shapes import event_json, event_line
from holdfast.events import Event, ViewChanged, ViewRestored
from holdfast.features.views.protocol.facts import Proposed
from holdfast.host import Address, NodeId, View, ViewId, ViewMember
from holdfast.local.calls import EventItem
from holdfast.local.news import encoded_fields, name_of
from holdfast.local.shapes import listed_of, shape_of

SERVER, MEMBER = NodeId("s0", 2), NodeId("c1", 5)
VIEW = View(ViewId(7, "s0", 2), (SERVER,), (ViewMember(MEMBER, Address("10.0.0.1", 7946), 3, SERVER),), 4)


def item(event: Event) -> EventItem:
    return EventItem(at=0.0, name=name_of(event), version=9, fields=Raw(encoded_fields(event)))


def test_watch_as_json_tells_the_whole_view() -> None:
    """H246: `holdfast watch --json`, byte for byte as before the shape was the feature's."""
    assert json.dumps(event_json(item(ViewRestored(VIEW)))) == (
        '{"at": 0.0, "version": 9, "event": "ViewRestored", "view": {"number": 7, "id": "7/s0#2", "servers": [{"name": "s0", "boot": 2}], '
        '"members": [{"name": "c1", "boot": 5, "address": "10.0.0.1:7946", "attach": 3, "server": {"name": "s0", "boot": 2}}], "fleet": 4}}'
    )


def test_a_line_names_the_view_and_its_size() -> None:
    """H246: `holdfast watch`."""
    assert event_line(item(ViewChanged(VIEW, (MEMBER,), ()))).split("  ", 1)[1] == "ViewChanged   view=7/s0#2 of 1 added=c1#5 removed=none"


class Lines:
    """A log that keeps the words of its lines."""

    level = "info"

    def __init__(self) -> None:
        self.told: list[dict[str, object]] = []

    def info(self, event: str, **words: object) -> None:
        del event
        self.told.append(words)


def test_the_log_names_the_view_and_its_size() -> None:
    """H246: not its members, which may be 2,000."""
    lines = Lines()
    Narrator(lines).on_event(ViewChanged(VIEW, (), (MEMBER,)))  # type: ignore[arg-type]
    assert lines.told == [{"view": VIEW.id, "size": 1, "added": (), "removed": (MEMBER,)}]


def test_only_views_have_a_shape_of_their_own() -> None:
    """H246: what is shown in the common way asks no feature."""
    assert shape_of(VIEW) is not None
    assert shape_of(VIEW.id) is not None
    assert [shape_of(value) for value in (SERVER, 7, "text", (SERVER,), Proposed(7, b"", (SERVER,)))] == [None] * 5
    assert (listed_of(ViewChanged(VIEW, (), ())), listed_of(ViewRestored(VIEW))) == (("added", "removed"), ())
