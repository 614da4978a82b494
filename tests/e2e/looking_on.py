"""What a program sees of a group: a client of one agent that writes down every event, and commands as people type them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import holdfast.sync
from holdfast.errors import AgentLost
from holdfast.events import Event
from tests.support.agents import AgentProcess, until

COMMAND_TIMEOUT = 90.0  # seconds; a command takes a fifth of one on a quiet machine


class Onlooker:
    """A client attached to an agent, with a thread that reads its events until the block is left."""

    def __init__(self, agent: AgentProcess | str) -> None:
        self.group = holdfast.sync.join(agent=agent if isinstance(agent, str) else agent.socket)
        self.events: list[Event] = []
        self._watch = self.group.watch()
        self._thread = Thread(target=self._read)

    def __enter__(self) -> Self:
        self.group.__enter__()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.group.__exit__(kind, error, trace)
        self._thread.join()

    def about(self, name: str) -> list[str]:
        """What was said about a member, by its name, in order."""
        return [type(event).__name__ for event in tuple(self.events) if getattr(getattr(event, "member", None), "name", "") == name]

    def names(self) -> set[str]:
        return {type(event).__name__ for event in tuple(self.events)}

    def until(self, name: str, *said: str) -> list[str]:
        """Wait until all of these were said about a member; returns everything that was."""
        until(lambda: set(said) <= set(self.about(name)), f"{said} about {name}; heard {self.about(name)}")
        return self.about(name)

    def _read(self) -> None:
        try:
            for event in self._watch:
                self.events.append(event)
        except AgentLost:
            return


class Typed:
    """A command that has ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def typed(*words: str, agent: AgentProcess | None = None, code: int | None = 0, **environ: str) -> Typed:
    """``holdfast WORDS``, as a process of its own; it must end with this code."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    given = {**environ, **({"HOLDFAST_AGENT": agent.socket} if agent is not None else {})}
    command = [str(Path(sys.executable).with_name("holdfast")), *words]
    ended = subprocess.run(command, env={**mine, **given}, capture_output=True, text=True, timeout=COMMAND_TIMEOUT, check=False)
    found = Typed(ended.returncode, ended.stdout, ended.stderr)
    assert code is None or found.code == code, found
    return found


def drops(agent: AgentProcess) -> dict[str, int]:
    """What an agent dropped, by reason."""
    return dict(typed("info", "--json", agent=agent).json["drops"])
