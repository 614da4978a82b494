"""Messages and events: one tag each, of the folder's range, never used twice, and nobody can change one in flight."""

from __future__ import annotations

from collections import Counter

from holdfast.events import Event
from holdfast.host import Message
from tests.tidy.tree import import_all, subclasses

# Foundation, section 6. What only the lab sends travels nowhere else: it has the range above all protocols.
RANGES = {
    "holdfast.kit": range(1, 16),
    "holdfast.node": range(1, 16),
    "holdfast.features.ring": range(16, 48),
    "holdfast.features.leadership": range(48, 64),
    "holdfast.papers.detection": range(48, 64),
    "holdfast.features.tickets": range(64, 96),
    "holdfast.features.gossip": range(96, 112),
    "holdfast.features.election": range(112, 128),
    "holdfast.features.views.lab": range(176, 256),
    "holdfast.features.views": range(128, 152),
    "holdfast.features.limits.lab": range(176, 256),
    "holdfast.features.limits": range(152, 176),
    "holdfast.lab": range(176, 256),
    "holdfast.papers.tickets.lab": range(176, 256),
    "holdfast.features.mail": range(256, 264),
    "holdfast.features.names": range(264, 288),
    "holdfast.features.keys": range(264, 288),
    "holdfast.features.farewell": range(264, 288),
    "holdfast.features.probe": range(264, 288),
}


def messages() -> dict[type[Message], int | str | None]:
    """Every type that travels, with its tag; a base class without a tag is abstract."""
    import_all()
    return {kind: kind.__struct_config__.tag for kind in subclasses(Message) if kind.__struct_config__.tag is not None}


def allowed(module: str) -> range:
    return next((tags for folder, tags in RANGES.items() if module == folder or module.startswith(f"{folder}.")), range(0))


def test_tags_are_unique() -> None:
    """Foundation 6: a tag names one type, in all protocols together."""
    found = messages()
    doubled = {tag for tag, count in Counter(found.values()).items() if count > 1}
    assert [f"{kind.__module__}.{kind.__name__} {tag}" for kind, tag in found.items() if tag in doubled] == []


def test_tags_are_of_their_folder() -> None:
    """Foundation 6: each folder has a range, so that two people never reach for the same number."""
    found = messages()
    assert len(found) >= 2
    outside = [f"{kind.__module__}.{kind.__name__} {tag}" for kind, tag in found.items() if tag not in allowed(kind.__module__)]
    assert outside == []


def test_messages_and_events_are_frozen() -> None:
    """The lab passes references: whoever could change a message would change it for its sender too."""
    import_all()
    kinds: list[type[Message | Event]] = [*subclasses(Message), *subclasses(Event)]
    assert [f"{kind.__module__}.{kind.__name__}" for kind in kinds if not kind.__struct_config__.frozen] == []
