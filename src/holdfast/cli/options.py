"""Flags that several verbs share (``--json``, ``--agent``, ``--group``, ``--timeout`` ...), so that they mean the same everywhere."""

from __future__ import annotations

from holdfast.cli.parser import Flag, Word
from holdfast.errors import ConfigError

TIMEOUT_MAX = 3600.0  # seconds: who waits longer watches

JSON = Flag("--json", help="Print one JSON object on stdout.")
JSON_LINES = Flag("--json", help="Print one JSON object per line on stdout.")
AGENT = Flag("--agent", help="Socket of the agent to ask (default: HOLDFAST_AGENT, then the one of --group).", metavar="SOCKET")
GROUP = Flag("--group", help="Ask this machine's agent of this group (default: HOLDFAST_GROUP, then `default`).", metavar="NAME")
TIMEOUT = Flag("--timeout", help="Give up after so many seconds (exit code 4).", metavar="SECONDS")
COUNT = Flag("--count", help="End after so many (0: never).", metavar="N")
FOR = Flag("--for", help="End after so many seconds (0: never).", metavar="SECONDS")
MEMBER = Word(help="A member, by its name.", metavar="NAME", complete="members")


def checked_timeout(seconds: float) -> float:
    if not 0 < seconds <= TIMEOUT_MAX:
        raise ConfigError(f"--timeout {seconds:g}: accepted are seconds above 0, up to {TIMEOUT_MAX:g}")
    return seconds


def checked_limits(count: int, seconds: float) -> None:
    if count < 0:
        raise ConfigError(f"--count {count}: accepted are whole numbers from 0")
    if not 0 <= seconds < float("inf"):
        raise ConfigError(f"--for {seconds:g}: accepted are seconds from 0")
