"""Members of each system of `membership`: processes that can be killed and stopped, and what each is told of the others.

All of them are read by one thread, which stamps what it reads. A member says "joined", "suspected", "cleared" or "failed", and of
which other one. Ours says so on its local socket (Watch), kinship in a program of its own, serf in its log: "EventMemberFailed: NAME".
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from benchmarks.agent_fleet import AgentProcess
from benchmarks.harness import ROOT
from benchmarks.ring_fleet import PATIENCE, NeverHappened
from holdfast.client.line import Line
from holdfast.client.wire import ITEMS
from holdfast.errors import AgentLost, HoldfastError, JoinFailed
from holdfast.events import EventsLost
from holdfast.host import NodeId
from holdfast.local import calls
from holdfast.local.news import event_of

Told = tuple[str, str]  # a word, and the name of a member

KEY = b64encode(sha256(b"benchmarks.membership").digest()).decode()
GOSSIP = {"membership": "gossip", "probe": 0.1}
RING = {"lease": 0.4, "k": 2}
KINSHIP = {"probe_interval": 0.1, "probe_timeout": 0.05, "suspicion_mult": 3, "gossip_interval": 0.05}
OF_AGENTS = {"Joined": "joined", "Suspected": "suspected", "Cleared": "cleared", "Decided": "failed", "Left": "failed"}
OF_SERF = {"Join": "joined", "Failed": "failed", "Leave": "failed"}
SERF_LINE = re.compile(rb"serf: EventMember(Join|Failed|Leave): (\S+)")
READ_BYTES = 1 << 16
SHOWN = 1500  # characters of a log in a failure


class Member(Protocol):
    """One process. ``read`` never waits."""

    name: str
    pid: int
    is_up: bool  # what it says can be read

    def fileno(self) -> int: ...
    def read(self) -> list[Told]: ...
    def signal(self, number: int) -> None: ...
    def kill(self) -> None:
        """SIGKILL; it is waited for."""

    def check(self) -> None:
        """Raises ``NeverHappened`` if it ended by itself."""

    def look(self) -> set[str] | None:
        """Whom it lists now, asked for; None: it cannot be asked without a packet."""


class Agent:
    """An agent of Holdfast, without seats and HTTP, and one client that watches."""

    def __init__(self, name: str, address: str, others: Sequence[str], folder: Path, settings: Mapping[str, Any]) -> None:
        self.name = name
        self._process = AgentProcess(folder, name=name, bind=address, **settings)
        self.pid = self._process.pid
        self.is_up = False
        self._line: Line | None = None
        self._others = others
        self._why = ""
        self._items: list[Told] = []
        self._boots: dict[str, int] = {}  # of those that it lists
        self._behind = False  # events were lost, and with them what they said of the list
        self._joining = threading.Thread(target=self._join, daemon=True)  # The one that reads shall not wait for it.
        self._joining.start()

    def fileno(self) -> int:
        assert self._line is not None
        return self._line.fileno()

    def read(self) -> list[Told]:
        if self._line is not None:
            with suppress(AgentLost):
                self._line.read(0)
                if self._behind:
                    self._behind = False
                    self._line.tell(calls.Look, waiter=self)
            if self._line.lost:
                self._why = f"{self.name}: its agent hung up"  # One that is killed is not read any more.
        items, self._items = self._items, []
        return items

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.end()
        self.is_up = False
        self._joining.join(PATIENCE)
        if self._line is not None:
            self._line.close()

    def look(self) -> set[str] | None:
        return {each.name for each in self._process.ask(calls.Look).members}

    def check(self) -> None:
        self._process.check()
        if self._why:
            raise NeverHappened(self._why)

    # A ``Sink`` of the stream.

    def push(self, item: Any) -> None:
        decoded: calls.EventItem = ITEMS[calls.Watch](item)
        if decoded.change is not None:
            self._take_change(decoded.change)
        self._behind = self._behind or decoded.name == EventsLost.__name__
        word = OF_AGENTS.get(decoded.name)
        if word is not None:
            event = event_of(decoded)
            assert event is not None
            self._items.append((word, event.member.name))  # type: ignore[attr-defined]

    def end(self, error: HoldfastError | None) -> None:
        """The agent was killed."""

    # A ``Waiter`` for the list.

    def set_result(self, view: calls.GroupView) -> None:
        self._take(sorted(self._boots.keys() - {each.name for each in view.members}), [each.id for each in view.members])

    def set_exception(self, error: Any) -> None:
        """The agent was killed."""

    def done(self) -> bool:
        return False

    def _take_change(self, change: calls.ViewChange) -> None:
        """What is listed is what the view says, as for every client; events say why."""
        self._take(change.gone, [line.member.id for line in change.listed])

    def _take(self, gone: Iterable[str], listed: Iterable[NodeId]) -> None:
        for name in gone:
            self._boots.pop(name, None)
            self._items.append(("gone", name))
        for life in listed:
            if self._boots.get(life.name) != life.boot:
                self._boots[life.name] = life.boot
                self._items.append(("joined", life.name))

    def _join(self) -> None:
        try:
            self._process.until_it_answers()
            line = Line(self._process.socket)
            view = line.open(calls.Watch, sink=self)
            known = {each.name: each.id.boot for each in view.members}
            self._boots = {**known, **self._boots}
            self._items[:0] = [("joined", name) for name in known]  # before what was pushed since
            self._line, self.is_up = line, True
            if self._others:
                with suppress(JoinFailed):  # Those that knock where a dead member was may have found it before (gossip D9).
                    self._process.ask(calls.Join, tuple(self._others), PATIENCE)
        except (HoldfastError, NeverHappened) as error:
            self._why = f"{self.name}: {error}"


class Spoken:
    """A process that writes lines: kinship or serf."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        with log.open("ab") as errors:
            self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self.pid, self._log, self._rest = self._process.pid, log, b""
        self._said = b""  # the end of it, for a failure
        self.is_up = True

    def fileno(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def read(self) -> list[Told]:
        try:
            data = os.read(self.fileno(), READ_BYTES)
        except BlockingIOError:
            return []
        self._said = (self._said + data)[-SHOWN:]
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [told for line in lines if (told := self.told(line)) is not None]

    def told(self, line: bytes) -> Told | None:
        raise NotImplementedError

    def look(self) -> set[str] | None:
        return None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.is_up = False
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def check(self) -> None:
        if self._process.poll() is not None:
            said = self._said.decode(errors="replace") + self._log.read_text(errors="replace")[-SHOWN:]
            raise NeverHappened(f"{self.name} ended ({self._process.returncode}): {said}")


class Kinship(Spoken):
    """A program with a ``kinship.Cluster``."""

    def told(self, line: bytes) -> Told | None:
        word, _, name = line.decode().partition(" ")
        return None if word == "ready" else (word, name)


class Serf(Spoken):
    """``serf agent``, sealed, as Debian has it."""

    def told(self, line: bytes) -> Told | None:
        found = SERF_LINE.search(line)
        return None if found is None else (OF_SERF[found[1].decode()], found[2].decode())


class Starter:
    """Starts members of one system; each of its lives has a folder and a log."""

    def __init__(self, system: str, addresses: Sequence[str], controls: Sequence[str], folder: Path) -> None:
        """``controls``: a second address for each, which serf listens at for calls."""
        self._system, self._addresses, self._controls, self._folder = system, addresses, controls, folder
        self._lives = 0

    def start(self, number: int, first: int | None) -> Member:
        """``first`` is a member that it shall join; None: it is the first one."""
        self._lives += 1
        name, address = f"n{number}", self._addresses[number]
        others = [] if first is None else [self._addresses[first]]
        log = self._folder / f"{name}.log"
        if self._system in ("gossip", "ring"):
            return Agent(name, address, others, self._folder / f"l{self._lives}", GOSSIP if self._system == "gossip" else RING)
        if self._system == "kinship":
            settings = json.dumps(KINSHIP)
            words = [sys.executable, "-m", "benchmarks.membership_kinship", name, address, json.dumps(others), KEY, settings]
            return Kinship(name, words, log)
        profile = self._system.removeprefix("serf_")
        joins = [f"-join={other}" for other in others]
        control = self._controls[number]
        words = [
            "serf",
            "agent",
            f"-node={name}",
            f"-bind={address}",
            f"-rpc-addr={control}",
            f"-profile={profile}",
            f"-encrypt={KEY}",
            *joins,
        ]
        return Serf(name, words, log)


def end_all(members: Sequence[Member]) -> None:
    for member in members:
        with suppress(ProcessLookupError):
            member.signal(signal.SIGCONT)
        member.kill()
