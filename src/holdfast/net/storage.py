"""The storage a machine sees on real sockets: completions come in turns, like everything else (F10).

A save that completes while the process is stopped must not be acted upon before ``on_away`` was called, so its ``then`` is
handed to the host, which runs it in its place in the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.host import Storage

Post = Callable[[Callable[[], None]], None]


class TurnStorage:
    """Any storage, with completions inside the host's turns."""

    def __init__(self, inner: Storage, post: Post) -> None:
        self._inner = inner
        self._post = post

    @property
    def fresh(self) -> bool:
        return self._inner.fresh

    def load(self) -> Mapping[str, bytes]:
        return self._inner.load()

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        self._inner.save(key, value, lambda: self._post(then))

    def part(self, name: str) -> TurnStorage:
        return TurnStorage(self._inner.part(name), self._post)


class Volatile:
    """Remembers for one life, for a process that was given no state directory. A save completes at once."""

    def __init__(self) -> None:
        self._prefix = ""
        self._values: dict[str, bytes] = {}  # shared by all parts, as the journal's are
        self._used: set[str] = set()

    @property
    def fresh(self) -> bool:
        return not any(key.startswith(self._prefix) for key in self._used)

    def load(self) -> Mapping[str, bytes]:
        prefix = self._prefix
        return {key[len(prefix) :]: value for key, value in self._values.items() if key.startswith(prefix)}

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        full = self._prefix + key
        self._used.add(full)
        if value is None:
            self._values.pop(full, None)
        else:
            self._values[full] = value
        then()

    def part(self, name: str) -> Volatile:
        part = Volatile()
        part._prefix, part._values, part._used = f"{self._prefix}{name}/", self._values, self._used
        return part
