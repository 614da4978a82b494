"""The local socket: every call of a client, every answer of an agent, their tags, fields and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from tests.pins.conftest import Pinned
from tests.pins.doors import LINES, LOCAL_VERSION, STREAMED, Call, FromAgent, framed, import_all, subclasses
from tests.pins.example import fields, full, least, written


def examples(kind: Any, word: str = "") -> Iterator[str]:
    for name, example in (("full", full(kind)), ("least", least(kind))):
        yield f"    {f'{word}{name}':<14}{msgspec.msgpack.encode(example).hex()}"


def of_call(kind: type[Call]) -> Iterator[str]:
    """``answers`` is what ``Done`` carries; None for a call that is only confirmed."""
    yield f"{kind.__struct_config__.tag} {kind.__name__}"
    yield from (f"    {line}" for line in fields(kind))
    yield from examples(kind)
    yield f"    answers {written(kind.answers)}"
    if kind.answers is not None:
        yield from examples(kind.answers, "answer ")
    yield ""


def of_answer(kind: Any) -> Iterator[str]:
    tag = kind.__struct_config__.tag
    yield kind.__name__ if tag is None else f"{tag} {kind.__name__}"
    yield from (f"    {line}" for line in fields(kind))
    yield from examples(kind)
    yield ""


def test_local_socket(pinned: Pinned) -> None:
    """docs/local-api.md: programs in any language speak it; a tag, the order of fields and the bytes stay as they are."""
    import_all()
    calls = sorted((kind for kind in subclasses(Call) if kind.__struct_config__.tag is not None), key=tag_of)
    lines = [f"# version {LOCAL_VERSION}; a frame: {framed(b'body').hex()}", "", f"# {len(calls)} calls", ""]
    for call in calls:
        lines += of_call(call)
    lines += ["# what an agent says", ""]
    for answer in sorted(get_args(FromAgent), key=tag_of):
        lines += of_answer(answer)
    lines += ["# what streams carry", ""]
    for item in STREAMED:
        lines += of_answer(item)
    lines += ["# lines of a view", ""]
    for feature, line in LINES.items():
        lines += [f"of {feature}", *of_answer(line)]
    pinned("local", lines)


def tag_of(kind: type[msgspec.Struct]) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag
