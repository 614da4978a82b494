"""The lines of an agent that this program started, in this program's own log.  docs/client.md (the log of the agent).

The agent writes JSON into a pipe, and a daemon thread gives each line to ``logging.getLogger("holdfast.agent")``: handlers, levels and
filters are the program's. The agent does not wait for it (``agent.observe.logs``); what is not read in time is lost there, and counted.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import msgspec

READ_BYTES = 1 << 16
LINE_BYTES_MAX = 1 << 16  # without an end: no line of an agent is so long
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

_agent = logging.getLogger("holdfast.agent")
_own = logging.getLogger("holdfast")
_warned: set[str] = set()  # each is said once per process; as many as there are variables


def wanted_level() -> str:
    """The least level that the program's log lets through now: an agent that is started need not write more."""
    return next((name for name, level in LEVELS.items() if _agent.isEnabledFor(level)), "error")


def warn_of(lines: list[str]) -> None:
    for line in lines:
        if line not in _warned:
            _warned.add(line)
            _own.warning("%s", line)


class LogReader:
    """Reads one agent's lines until it has ended. Needs no end by us: the thread is a daemon, and holds nothing but its descriptor."""

    def __init__(self, fd: int, pid: int) -> None:
        self._fd, self._pid = fd, pid
        self._rest = b""
        self._thread = Thread(target=self._run, name=f"holdfast agent {pid}: log", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            os.close(fd)
            raise

    def join(self, timeout: float) -> None:
        """What the agent said before it ended is in the log then."""
        self._thread.join(timeout)

    def _run(self) -> None:
        with suppress(OSError):
            while data := os.read(self._fd, READ_BYTES):
                *lines, self._rest = (self._rest + data).split(b"\n")
                self._rest = self._rest[-LINE_BYTES_MAX:]
                for line in lines:
                    handle(line, self._pid)
        os.close(self._fd)


def handle(line: bytes, pid: int) -> None:
    """One line as a record; ``record.holdfast`` has its fields. What is no line of an agent is passed on as it is."""
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = {"level": "warning", "event": line.decode("utf-8", "replace")}
    level = LEVELS.get(str(fields.get("level")), logging.WARNING)
    if not _agent.isEnabledFor(level):
        return
    more = {name: value for name, value in fields.items() if name not in ("at", "level", "event")}
    words = " ".join((str(fields.get("event", "")), *(f"{name}={_word(value)}" for name, value in more.items())))
    told = {"holdfast": {**fields, "agent_pid": pid}}
    record = _agent.makeRecord(_agent.name, level, "(agent)", 0, "%s", (words,), None, str(fields.get("event", "")), told)
    with suppress(KeyError, ValueError, TypeError):
        record.created = datetime.fromisoformat(fields["at"]).replace(tzinfo=UTC).timestamp()  # when it was written
        record.msecs = record.created % 1 * 1000
    _agent.handle(record)


def _word(value: Any) -> str:
    """As it is where that cannot be mistaken for two fields."""
    if isinstance(value, str) and value and not set(value) & set(" \"'=\\"):
        return value
    return msgspec.json.encode(value).decode()
