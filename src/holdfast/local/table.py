"""Which calls an agent can read: its own, and those of its features as clients begin to use them.  docs/local-api.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Union

from msgspec.msgpack import Decoder

from holdfast.local.calls import VERSION, Call


class CallTable:
    """Calls by tag. ``decode`` makes any of them from its bytes."""

    def __init__(self, kinds: Iterable[type[Call]]) -> None:
        self.kinds: dict[int, type[Call]] = {}
        self.decode: Callable[[bytes], Call]
        self.add(kinds)

    def add(self, kinds: Iterable[type[Call]]) -> None:
        """From now on these can be read as well."""
        for kind in kinds:
            assert self.kinds.setdefault(tag_of(kind), kind) is kind, f"{kind.__name__}: its tag {tag_of(kind)} belongs to another call"
        anyone: Any = Union[tuple(self.kinds.values())]  # noqa: UP007 - made at run time
        self.decode = Decoder(anyone).decode

    def unread(self, tag: int, why: str) -> str:
        """What to tell a client whose call cannot be read: which call, which field, what was expected. ``why`` is the decoder's word."""
        kind = self.kinds.get(tag)
        if kind is None:
            return f"call: {tag}; accepted are the calls {_ranges(self.kinds)} of version {VERSION}" if tag else f"call: {why[:200]}"
        text, _, place = why.partition(" - at `$[")
        at = place.partition("]")[0]
        field = ("tag", *kind.__struct_fields__)[int(at)] if at.isdigit() and int(at) <= len(kind.__struct_fields__) else "call"
        return f"{kind.__name__}: {field}: {text[:200]}"


def tag_of(kind: type[Call]) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int), f"{kind.__name__}: a call has a number as its tag"
    return tag


def _ranges(tags: Iterable[int]) -> str:
    """1 to 27, or 1 to 27 and 30."""
    runs = [[tag for _, tag in run] for _, run in groupby(enumerate(sorted(tags)), lambda pair: pair[1] - pair[0])]
    return " and ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
