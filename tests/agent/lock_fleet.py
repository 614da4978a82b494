"""Agents with locks, clients that work under them, and the outside recorder that looks at what they wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from holdfast.wire.keys import generate
from tests.agent.fake_kind import LockService
from tests.support.agents import AgentProcess, clean_environ, until

ROOT = Path(__file__).parents[2]


class Term(NamedTuple):
    """What was done under one token."""

    token: int
    began_at: float
    ended_at: float
    deadline: float  # the last one that a deed was done under
    pids: frozenset[int]


class Record:
    """Everything that the bodies of one lock wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, what: str = "", pid: int = 0) -> list[dict[str, Any]]:
        text = self.path.read_text() if self.path.exists() else ""
        lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if what in ("", line["what"]) and pid in (0, line["pid"])]

    def terms(self) -> list[Term]:
        deeds: dict[int, list[dict[str, Any]]] = {}
        for line in self.lines("deed"):
            deeds.setdefault(line["token"], []).append(line)
        return [_term(token, deeds[token]) for token in sorted(deeds)]

    def overlaps(self) -> list[tuple[Term, Term]]:
        """Two that worked at the same time. Empty: the lock excluded everybody but its holder."""
        terms = self.terms()
        return [(a, b) for index, a in enumerate(terms) for b in terms[index + 1 :] if a.ended_at >= b.began_at]


def _term(token: int, deeds: Iterable[dict[str, Any]]) -> Term:
    times = [line["at"] for line in deeds]
    return Term(token, min(times), max(times), max(line["deadline"] for line in deeds), frozenset(line["pid"] for line in deeds))


class Body:
    """A client process."""

    def __init__(self, agent: AgentProcess, record: Record, name: str, length: float, manner: str) -> None:
        words = [sys.executable, "-m", "tests.agent.lock_body", agent.socket, name, str(record.path), str(length), manner]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, cwd=ROOT)
        self.record = record

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def deeds(self) -> int:
        return len(self.record.lines("deed", self.pid))

    def until_works(self) -> None:
        until(lambda: self.deeds > 0 or self.process.poll() is not None, "it works")
        assert self.deeds > 0, "it ended without a deed"

    def stop(self) -> None:
        """As a user ends it."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        return self.process.wait(60)


class Locks:
    """A service, agents that share it, and the clients of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service = LockService(folder / "service.sock")
        self.agents: list[AgentProcess] = []
        self.bodies: list[Body] = []
        self._key = generate()

    def __enter__(self) -> Self:
        self.service.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in [*(body.process for body in self.bodies), *(agent.process for agent in self.agents)]:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdin is not None and not process.stdin.closed:
                process.stdin.close()
        self.service.__exit__(kind, error, trace)

    def agent(self, *, careless: bool = False) -> AgentProcess:
        """An agent of its own, in a group of its own: what is shared is the lock."""
        folder = self.folder / f"agent{len(self.agents)}"
        folder.mkdir(mode=0o700)
        settings = {"preset": "local", "bind": "127.0.0.1:0", "group": "locks", "key": self._key, "name": folder.name}
        agent = _started(settings, folder, {"LOCK_SERVICE": self.service.path, **({"LOCK_CARELESS": "1"} if careless else {})})
        self.agents.append(agent)
        assert "socket" in agent.ready, agent.stderr
        return agent

    def record(self, name: str) -> Record:
        return Record(self.folder / f"{name}.record")

    def body(self, agent: AgentProcess, name: str, *, length: float, manner: str = "polite") -> Body:
        body = Body(agent, self.record(name), name, length, manner)
        self.bodies.append(body)
        return body

    def until(self, holds: Callable[[], object], what: str) -> None:
        until(holds, what)


def _started(settings: dict[str, Any], folder: Path, environ: dict[str, str]) -> AgentProcess:
    settings_read, settings_write = os.pipe()
    ready_read, ready_write = os.pipe()
    words = [sys.executable, "-m", "tests.agent.lock_agent", "--settings-fd", str(settings_read), "--ready-fd", str(ready_write)]
    log = folder / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, cwd=ROOT,
            env=clean_environ(folder, environ), pass_fds=(settings_read, ready_write),
        )  # fmt: skip
    os.close(settings_read)
    os.close(ready_write)
    with os.fdopen(settings_write, "wb") as file:
        file.write(json.dumps(settings).encode())
    with os.fdopen(ready_read, "rb") as file:
        told = file.read()
    return AgentProcess(process, json.loads(told) if told else {}, log)
