"""Structured lines on stderr, or to the program that started this agent.

A line never waits: if the reader does not read, lines are lost and counted, and the leases are not. What repeats is limited, what a peer
can write into a name is escaped. A person in a terminal reads text, a program JSON.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

LEVELS = ("debug", "info", "warning", "error")
LINE_BYTES_MAX = 4096  # a pipe that is ready takes so much without waiting (PIPE_BUF)
TEXT_CHARS_MAX = 512  # of one field
ITEMS_MAX = 32  # of one list
RATE_PERIOD = 10.0  # seconds
RATE_LINES = 100  # of one event in a period: a group of 100 that starts at once is still told member by member


class Log:
    """Lines of one agent."""

    def __init__(
        self,
        *,
        level: str = "info",
        form: str = "auto",
        fd: int = 2,
        told_at: int | None = None,
        wall: Callable[[], float] = time.time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``told_at``: a program reads JSON there, whatever the form; when it is gone, lines go to ``fd``."""
        self._wall, self._now = wall, now
        self._form, self._stderr = form, fd
        self._told_at = told_at
        self._lines: dict[str, tuple[float, int]] = {}  # event -> when its period began, lines since
        self.lost = 0  # lines that the reader was not ready for
        self.level = level
        self._turn_to(fd if told_at is None else told_at)

    @property
    def level(self) -> str:
        return LEVELS[self._least]

    @level.setter
    def level(self, level: str) -> None:
        self._least = LEVELS.index(level)

    def debug(self, event: str, **fields: Any) -> None:
        if self._least == 0:
            self._say(0, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._say(1, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._say(2, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._say(3, event, fields)

    def _say(self, level: int, event: str, fields: dict[str, Any]) -> None:
        if level < self._least:
            return
        unsaid = self._unsaid(event)
        if unsaid < 0:
            return
        if unsaid:
            fields["unsaid"] = unsaid
        if self.lost:
            fields["lines_lost"] = self.lost
        at = self._wall()
        shown = {name: _shown(value) for name, value in fields.items()}
        line = self._write(at, LEVELS[level], event, shown)
        self._put(line if len(line) <= LINE_BYTES_MAX else self._write(at, LEVELS[level], event, {"cut": True}))

    def _unsaid(self, event: str) -> int:
        """-1 if this line is one too many; otherwise how many were, before it."""
        now = self._now()
        began_at, lines = self._lines.get(event, (now, 0))
        if now - began_at >= RATE_PERIOD:
            began_at, lines, unsaid = now, 0, max(0, lines - RATE_LINES)
        else:
            unsaid = 0
        self._lines[event] = began_at, lines + 1
        return unsaid if lines < RATE_LINES else -1

    def _turn_to(self, fd: int) -> None:
        form = self._form if self._form != "auto" else "text" if os.isatty(fd) else "json"
        self._fd = fd
        self._write = {"json": _json, "text": _text}["json" if fd == self._told_at else form]
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def _put(self, line: bytes) -> None:
        try:
            if self._poll.poll(0) and os.write(self._fd, line) == len(line):
                self.lost = 0
                return
        except BrokenPipeError:
            if self._fd == self._told_at:
                self._turn_to(self._stderr)  # From the next line on. An agent that others use outlives the program that started it.
                os.close(self._told_at)
                self._told_at = None
        except OSError:
            pass  # The reader is gone, or the disk behind it is full: an agent lives on without its log.
        self.lost += 1


def printable(text: str) -> str:
    """What a peer or a user wrote, so that no terminal obeys it: whatever does not print is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def _shown(value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, Mapping):
        return {printable(str(key)): _shown(each) for key, each in list(value.items())[:ITEMS_MAX]}
    if isinstance(value, list | set | frozenset) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        return [_shown(each) for each in list(value)[:ITEMS_MAX]]
    text = printable(str(value))
    return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + "..."


def _json(at: float, level: str, event: str, fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"at": _time(at), "level": level, "event": event, **fields}) + b"\n"


def _text(at: float, level: str, event: str, fields: dict[str, Any]) -> bytes:
    words = " ".join(f"{name}={_word(value)}" for name, value in fields.items())
    return f"{_time(at)} {level.upper():7} {event} {words}".rstrip().encode() + b"\n"


def _word(value: Any) -> str:
    """As it is where that cannot be mistaken for two fields."""
    if isinstance(value, str) and value and not set(value) & set(" \"'=\\"):
        return value
    return msgspec.json.encode(value).decode()


def _time(at: float) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{seconds}.{int(at % 1 * 1000):03d}Z"
