"""An example of any type, made from the type alone: the same value in every run, within the bounds that the type declares.

Two examples of each: ``full`` gives every field a value of its own, so that two fields that change places change the bytes; ``least`` gives
only what a type asks for (defaults, None, empty collections, the lowest number, the last choice of several).
"""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import Any

import msgspec
from msgspec import inspect as types

NAMELESS = "each"  # an element of a collection
LEAST_FLOAT = 0.5


class Example:
    """Makes one value. Numbers count up from 1 in the order of the fields, texts repeat the name of their field."""

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._numbers = count(1)

    def of(self, kind: Any) -> Any:
        return self._value(types.type_info(kind), NAMELESS)

    def _value(self, type_: types.Type, name: str) -> Any:
        match type_:
            case types.Metadata():
                return self._value(type_.type, name)
            case types.IntType() | types.FloatType():
                return self._number(type_)
            case types.StrType() | types.BytesType():
                text = (name[: type_.max_length] if self._full else "").ljust(type_.min_length or 0, "x")
                return text if isinstance(type_, types.StrType) else text.encode()
            case types.BoolType():
                return self._full
            case types.NoneType():
                return None
            case types.EnumType():
                return list(type_.cls)[-1 if self._full else 0]
            case types.LiteralType():
                return type_.values[0 if self._full else -1]
            case types.UnionType():
                return self._chosen(type_, name)
            case types.StructType() | types.NamedTupleType() | types.DataclassType():
                return self._fields(type_)
            case types.RawType():
                return msgspec.Raw(msgspec.msgpack.encode(name))
            case types.AnyType():
                return name
            case _:
                return self._collection(type_, name)

    def _collection(self, type_: types.Type, name: str) -> Any:
        match type_:
            case types.TupleType():
                return tuple(self._value(item, name) for item in type_.item_types)
            case types.VarTupleType():
                return tuple(self._items(type_.item_type, name, type_.min_length))
            case types.ListType():
                return self._items(type_.item_type, name, type_.min_length)
            case types.SetType() | types.FrozenSetType():
                return frozenset(self._items(type_.item_type, name, type_.min_length))
            case types.DictType():
                wanted = 1 if self._full else type_.min_length or 0
                return {self._value(type_.key_type, name): self._value(type_.value_type, NAMELESS) for _ in range(wanted)}
        raise AssertionError(f"{name}: there is no example of {type_}")

    def _items(self, item: types.Type, name: str, least: int | None) -> list[Any]:
        return [self._value(item, name) for _ in range(max(least or 0, 2 if self._full else 0))]

    def _number(self, type_: types.IntType | types.FloatType) -> int | float:
        if not self._full:
            least = type_.ge if type_.ge is not None else 0 if type_.gt is None else type_.gt + 1
            return int(least) if isinstance(type_, types.IntType) else float(least)
        number = next(self._numbers)
        most = type_.le if type_.le is not None else None if type_.lt is None else type_.lt - 1
        if isinstance(type_, types.IntType):
            return number if most is None else min(number, int(most))
        return number + LEAST_FLOAT if most is None else min(number + LEAST_FLOAT, float(most))

    def _chosen(self, type_: types.UnionType, name: str) -> Any:
        some = [each for each in type_.types if not isinstance(each, types.NoneType)]
        if self._full:
            return self._value(some[0], name)
        return None if len(some) < len(type_.types) else self._value(some[-1], name)

    def _fields(self, type_: types.StructType | types.NamedTupleType | types.DataclassType) -> Any:
        wanted = [field for field in type_.fields if self._full or field.required]
        return type_.cls(**{field.name: self._value(field.type, field.name) for field in wanted})


def full(kind: Any) -> Any:
    return Example(full=True).of(kind)


def least(kind: Any) -> Any:
    return Example(full=False).of(kind)


def written(kind: Any) -> str:
    """A type as one line: bounds, choices and the fields of what is inside, but no module."""
    return _written(types.type_info(kind))


def fields(kind: Any) -> list[str]:
    """One line per field of a struct, in the order in which they travel."""
    info = types.type_info(kind)
    assert isinstance(info, types.StructType | types.NamedTupleType), f"{kind} has no fields"
    return _fields(info)


def _fields(info: types.StructType | types.NamedTupleType | types.DataclassType) -> list[str]:
    return [f"{_named(field)}: {_written(field.type)}{_default(field)}" for field in info.fields]


def _named(field: types.Field) -> str:
    return field.name if field.encode_name == field.name else f"{field.name} (as {field.encode_name})"


def _default(field: types.Field) -> str:
    if field.required:
        return ""
    if field.default_factory is not msgspec.NODEFAULT:
        return f" = {field.default_factory.__name__}()"
    return f" = {field.default.name if isinstance(field.default, Enum) else repr(field.default)}"


def _written(type_: types.Type) -> str:
    match type_:
        case types.Metadata():
            extra = "".join(f" {name}={value}" for name, value in sorted((type_.extra or {}).items()))
            return f"{_written(type_.type)}{extra}"
        case types.IntType() | types.FloatType():
            return f"{type(type_).__name__.removesuffix('Type').lower()}{_bounds(type_)}"
        case types.StrType() | types.BytesType():
            return f"{type(type_).__name__.removesuffix('Type').lower()}{_length(type_)}"
        case types.EnumType():
            return f"{type_.cls.__name__}({', '.join(f'{each.name}={each.value!r}' for each in type_.cls)})"
        case types.LiteralType():
            return " | ".join(map(repr, type_.values))
        case types.UnionType():
            return " | ".join(map(_written, type_.types))
        case types.StructType() | types.NamedTupleType() | types.DataclassType():
            tag = f" tag {type_.tag!r}" if isinstance(type_, types.StructType) and type_.tag is not None else ""
            return f"{type_.cls.__name__}{tag}({', '.join(_fields(type_))})"
        case types.TupleType():
            return f"({', '.join(map(_written, type_.item_types))})"
        case types.VarTupleType() | types.ListType() | types.SetType() | types.FrozenSetType():
            return f"[{_written(type_.item_type)}]{_length(type_)}"
        case types.DictType():
            return f"{{{_written(type_.key_type)}: {_written(type_.value_type)}}}{_length(type_)}"
    return type(type_).__name__.removesuffix("Type").lower()


def _bounds(type_: types.IntType | types.FloatType) -> str:
    signs = {">=": type_.ge, ">": type_.gt, "<=": type_.le, "<": type_.lt}
    return "".join(f" {sign}{bound}" for sign, bound in signs.items() if bound is not None)


def _length(type_: Any) -> str:
    least, most = type_.min_length, type_.max_length
    return f" {least or 0}..{most if most is not None else ''}" if least is not None or most is not None else ""
