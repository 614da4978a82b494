"""What a call returns before it has been awaited, where a plain coroutine would not do."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from holdfast.host import Grant


class Asked(Coroutine[Any, Any, Grant | None]):
    """The answer to come, of ``owns`` with asyncio: a coroutine that is not mistaken for a yes.

    A plain coroutine is true, so that ``if group.owns(key):`` without ``await`` would act for every key."""

    def __init__(self, asking: Coroutine[Any, Any, Grant | None]) -> None:
        self._asking = asking

    def __await__(self) -> Generator[Any, None, Grant | None]:
        return self._asking.__await__()

    def __bool__(self) -> bool:
        self._asking.close()  # It is said here, and need not be said again.
        raise TypeError("owns: the answer was not awaited; accepted is `await group.owns(key)`")

    def send(self, value: Any) -> Any:
        return self._asking.send(value)

    def throw(self, typ: Any, val: Any = None, tb: TracebackType | None = None) -> Any:
        return self._asking.throw(typ if val is None else val)

    def close(self) -> None:
        self._asking.close()


class Left(Protocol):
    """What can be left."""

    async def leave(self) -> None: ...


G = TypeVar("G", bound=Left)


class Entering(Generic[G]):
    """Something that is about to be joined: enter it as a block, or await it and call ``leave`` yourself."""

    def __init__(self, join: Callable[[], Coroutine[Any, Any, G]], name: str) -> None:
        self._join, self._name = join, name
        self._joined: G | None = None
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name or 'the default group'!r}: enter it with `async with`, or await it>"

    def __await__(self) -> Generator[Any, None, G]:
        return self._join().__await__()

    async def __aenter__(self) -> G:
        self._joined = await self._join()
        self._pid = os.getpid()
        return self._joined

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._joined is not None
        if os.getpid() == self._pid:  # A child that runs out of its parent's block leaves nothing.
            await self._joined.leave()
