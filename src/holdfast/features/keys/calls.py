"""Keys of the group on the local socket.  docs/local-api.md has the layout."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from holdfast.local.calls import Call


class MemberReport(Struct, frozen=True, array_like=True):
    """What one member answered to something that was asked of the whole group."""

    member: str
    done: bool
    text: str
    keys: tuple[str, ...] = ()  # ids of the keys it holds now, the one it writes with first


class Keys(Call, frozen=True, tag=9):
    """``action`` is "list", "install", "use" or "remove"; ``key`` the key itself for install, its id for use and remove."""

    answers: ClassVar[Any] = tuple[MemberReport, ...]

    action: str
    key: str
    timeout: float
    force: bool = False  # also without those who are silent or not ready, who may be cut off by it
