"""The public names, and how what they name is called: programs are written for them."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, TypeVar

import holdfast
import holdfast.errors
import holdfast.events
import holdfast.host
import holdfast.node
import holdfast.sync
from tests.pins.conftest import Pinned

MODULES = (holdfast, holdfast.sync, holdfast.events, holdfast.errors)
# The two spellings of the client have one name for one thing, to await and to wait for (H219).
SPELLED_TWICE = ["Group", "GroupViews", "Holding", "Pool", "Term", "Ticket", "join"]
MODULE_PATH = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
PYTHONS_OWN = {"builtins", "typing", "enum", "msgspec", "collections.abc"}
# What only Holdfast makes, and what only Holdfast calls on it: a program gets the object, and the rest is free to change.
NOT_MADE = {"Group", "Holding", "Term", "Ticket", "Pool", "Members", "Watch", "Messages", "PoolWatch", "GroupViews", "ViewWatch"}
NOT_CALLED = {"push", "end", "refusals", "lost_error"}
CALLED = {"__init__", "__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__next__", "__aiter__", "__anext__"}
CALLED |= {"__len__", "__getitem__", "__contains__", "__await__", "__bool__", "__int__", "__float__"}


def names(module: ModuleType) -> list[str]:
    """Those of ``__all__``; where there is none, every class and function that does not begin with an underscore."""
    listed = getattr(module, "__all__", None)
    own = [name for name, value in vars(module).items() if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__]
    return sorted(own if listed is None else listed)


def bare(text: str) -> str:
    """Without the modules of types: a class may move."""
    return MODULE_PATH.sub("", text)


def signature(value: Any) -> str:
    try:
        return bare(str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)"


def members(kind: type) -> Iterator[str]:
    """What a program can reach on a class: methods, properties, constants, in the order of their names; inherited ones of ours included."""
    fields = {*getattr(kind, "__struct_fields__", ()), *getattr(kind, "_fields", ())}
    hidden = fields | NOT_CALLED | ({"__init__"} if kind.__name__ in NOT_MADE or getattr(kind, "_is_protocol", False) else set())
    for name, value in sorted(inspect.getmembers_static(kind)):
        if name in hidden or (name.startswith("_") and name not in CALLED):
            continue
        owner = next((each for each in kind.__mro__ if name in vars(each)), object)
        if owner.__module__.startswith("holdfast"):
            yield f"    {member(name, value)}"


def member(name: str, value: Any) -> str:
    if isinstance(value, property):
        return f"{name}: property ->{signature(value.fget).rpartition('->')[2]}"
    if isinstance(value, classmethod | staticmethod):
        return f"{name}{signature(value.__func__)} {type(value).__name__}"
    if inspect.isfunction(value):
        return f"{word(value)}{name}{signature(value)}"
    plain = isinstance(value, int | float | str | tuple | enum.Enum)
    return f"{name} = {bare(repr(value)) if plain else type(value).__name__}"


def bases(kind: type) -> str:
    """Those that a program can name: public ones and Python's own."""
    public = {id(getattr(module, name)) for module in MODULES for name in names(module)}
    above = [each for each in kind.__mro__[1:] if id(each) in public or each.__module__ in PYTHONS_OWN]
    return ", ".join(each.__name__ for each in above if each is not object and not each.__name__.startswith("_"))


def made(kind: type) -> str:
    """How one is made, where that is a program's business."""
    if hasattr(kind, "__struct_fields__") or kind.__name__ == "Node":
        return signature(kind)
    if hasattr(kind, "_fields"):
        defaults = kind._field_defaults  # type: ignore[attr-defined]
        return f"({', '.join(f'{name} = {defaults[name]!r}' if name in defaults else name for name in kind._fields)})"
    return ""


def word(function: Any) -> str:
    return "async " if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) else ""


def described(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type):
        yield f"class {name}({bases(value)}) {made(value)}"
        yield from members(value)
    elif callable(value) and hasattr(value, "__name__"):
        yield f"{word(value)}{name}{signature(value)}"
    else:
        yield f"{name} = {bare(repr(value))}"


def meanings(modules: tuple[ModuleType, ...]) -> dict[str, set[int]]:
    """Of each public name, the things that it is in these modules."""
    found: dict[str, set[int]] = {}
    for module in modules:
        for name in names(module):
            value = getattr(module, name)
            if callable(value) and not isinstance(value, TypeVar):
                found.setdefault(name, set()).add(id(value))
    return found


def test_a_public_name_means_one_thing() -> None:
    """H219: a reader of `except HoldLost` or `case Lost()` knows which of both it is without looking at the imports."""
    found = meanings((*MODULES, holdfast.host, holdfast.node))
    assert sorted(name for name, things in found.items() if len(things) > 1) == SPELLED_TWICE


def test_public_names(pinned: Pinned) -> None:
    """PRODUCT: programs written for these four modules work as before: names, base classes, methods, parameters, defaults."""
    lines: list[str] = []
    for module in MODULES:
        lines += [f"# {module.__name__}", ""]
        for name in names(module):
            lines += [*described(name, getattr(module, name)), ""]
    pinned("public", lines)
