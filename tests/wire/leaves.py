"""Every value inside a type that is read from another process, as msgspec sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import inspect as types


class Leaf(NamedTuple):
    """One value somewhere inside a type."""

    path: str
    type: types.Type
    extra: dict[str, Any]
    bounded: bool


def leaves(kind: Any) -> list[Leaf]:
    """Every value that a message of this type holds, and every collection."""
    return list(_leaves(types.type_info(kind), "", {}))


def _leaves(type_: types.Type, path: str, extra: dict[str, Any]) -> Iterator[Leaf]:
    if isinstance(type_, types.Metadata):
        yield from _leaves(type_.type, path, type_.extra or {})
    elif isinstance(type_, types.IntType | types.FloatType):
        low, high = type_.ge is not None or type_.gt is not None, type_.le is not None or type_.lt is not None
        yield Leaf(path, type_, extra, low and (high or extra.get("bits") == 64))
    elif isinstance(type_, types.StrType | types.BytesType):
        yield Leaf(path, type_, extra, type_.max_length is not None)
    elif isinstance(type_, types.VarTupleType | types.ListType):
        yield Leaf(path, type_, extra, type_.max_length is not None)
        yield from _leaves(type_.item_type, f"{path}[]", {})
    elif isinstance(type_, types.DictType):
        yield Leaf(path, type_, extra, type_.max_length is not None)
        yield from _leaves(type_.key_type, f"{path}{{key}}", {})
        yield from _leaves(type_.value_type, f"{path}{{value}}", {})
    elif isinstance(type_, types.TupleType):
        for at, item in enumerate(type_.item_types):
            yield from _leaves(item, f"{path}[{at}]", {})
    elif isinstance(type_, types.UnionType):
        for item in type_.types:
            yield from _leaves(item, path, {})
    elif isinstance(type_, types.StructType | types.NamedTupleType):
        for field in type_.fields:
            yield from _leaves(field.type, f"{path}.{field.name}", {})
    else:  # Whatever else there is has to be one of a few values.
        yield Leaf(path, type_, extra, isinstance(type_, types.EnumType | types.BoolType | types.NoneType | types.LiteralType))
