"""How many files a reader passes: the way of a ticket and of an event through an agent, traced in a real one (docs/architecture.md; H222).

A walk is every file of the package in which a function runs, in any thread of the agent's process, from the arrival of the call to the
answer. An agent has timers, so what counts is what each of ten walks passed. A ticket's walk ends where its grant is written to the
socket, however long the client needs to read it (H224). Two numbers are kept: all of these files, and those of the agent's own code,
which is what is left without the protocols, the floors below the agent and the spine.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import pytest

import holdfast.sync
from holdfast.events import Updated
from holdfast.features.tickets.calls import ReadTickets
from holdfast.local import calls
from tests.agent.raw_client import RawClient
from tests.support.agents import AgentProcess, Fleet, until

TRACES = """
import json, os, signal, sys, threading
walk, traced = [], []
def note(frame, event, argument):
    if traced and event == "call" and "/src/holdfast/" in frame.f_code.co_filename:
        name = frame.f_code.co_filename.split("/src/holdfast/")[1]
        walk.append((name, frame.f_code.co_qualname))
def begin(*_):
    walk.clear()
    traced.append(True)
    open({path!r} + ".begun", "w").close()
def end(*_):
    traced.clear()
    with open({path!r} + ".new", "w") as file:
        json.dump(walk, file)
    os.replace({path!r} + ".new", {path!r})
signal.signal(signal.SIGUSR1, begin)
signal.signal(signal.SIGUSR2, end)
sys.setprofile(note)
threading.setprofile(note)
"""
WALKS = 10
TICKET_FILES_MAX = 30  # 29, and disk/horizon.py where each of the ten walks takes longer than its STRIDE (H224)
TICKET_OWN_FILES_MAX = 10
EVENT_FILES_MAX = 18
EVENT_OWN_FILES_MAX = 9
BELOW = {"protocol", "kit", "net", "disk", "wire"}  # folders; the spine is the files that lie in none

Walk = dict[str, list[str]]  # file -> functions, as often as they ran


class Traced:
    """An agent alone on its machine that writes down its walks."""

    def __init__(self, agent: AgentProcess, path: Path) -> None:
        self.agent, self._path, self._begun = agent, path, path.with_name(f"{path.name}.begun")

    def walk(self, step: Callable[[], None], *, pushed: bool = False) -> Walk:
        """``pushed``: up to the write of what a stream was told last."""
        self._path.unlink(missing_ok=True)
        self._begun.unlink(missing_ok=True)
        self.agent.signal(signal.SIGUSR1)
        until(self._begun.exists, "it traces")
        step()
        self.agent.signal(signal.SIGUSR2)
        until(self._path.exists, "it told its walk")
        ran: list[tuple[str, str]] = json.loads(self._path.read_text())
        if pushed:
            functions = [function for _, function in ran]
            last = len(functions) - 1 - functions[::-1].index("Connection.push")
            del ran[functions.index("Connection._write", last) + 1 :]
        found: Walk = {}
        for name, function in ran:
            found.setdefault(name, []).append(function)
        return found

    def walks(self, step: Callable[[], None], between: Callable[[], None], *, pushed: bool = False) -> Walk:
        """What ten walks have in common."""
        found = []
        for _ in range(WALKS):
            found.append(self.walk(step, pushed=pushed))
            between()
        return {name: found[0][name] for name in sorted(set(found[0]).intersection(*found))}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    folder = tmp_path_factory.mktemp("traced")
    (folder / "sitecustomize.py").write_text(TRACES.format(path=str(folder / "walk")))
    with Fleet(folder) as fleet:
        agent = fleet.start(key=None, environ={"PYTHONPATH": str(folder)}, state_dir=str(folder / "state"))
        agent.until_said("SeatOpened")
        yield Traced(agent, folder / "walk")


def own(walk: Walk) -> list[str]:
    """The files of the agent's own code."""
    return [name for name in walk if "/" in name and not BELOW & set(name.split("/"))]


def assert_short(walk: Walk, files_max: int, own_files_max: int) -> None:
    """Says both numbers; ``pytest -rP`` shows them."""
    said = f"{len(walk)} files: {' '.join(walk)}\n{len(own(walk))} of the agent's own code: {' '.join(own(walk))}"
    sys.stdout.write(f"{said}\n")
    assert len(walk) <= files_max, said
    assert len(own(walk)) <= own_files_max, said


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_a_ticket(traced: Traced, known: bool) -> None:
    """From ``Acquire`` to the grant: of a pool that was not known before, and of one in which this agent had a ticket (H224, H245)."""
    with RawClient(traced.agent.socket) as client:
        held: list[int] = []

        def pool(number: int) -> str:
            return "pool" if known else f"pool{number}"

        def take() -> None:
            held.append(client.say(calls.Acquire, "ticket", pool(len(held)), {"of": 1}))
            client.grant(held[-1], "granted", confirm=False)

        def give_back() -> None:
            client.ask(calls.Stopped, held[-1])
            free = pool(len(held) - 1)
            until(lambda: not client.ask(ReadTickets, free).holders, "that it is free is written, and no part of the next walk")

        take()  # The first one waits for the seat, and finds every table empty.
        give_back()
        walk = traced.walks(take, give_back, pushed=True)
    assert "features/tickets/protocol/guardian.py" in walk
    assert "agent/socket/connection.py" in walk
    assert "agent/socket/events.py" not in walk, "no client watches, so an event ends where it was counted"
    assert_short(walk, TICKET_FILES_MAX, TICKET_OWN_FILES_MAX)


def test_an_event(traced: Traced) -> None:
    """From a change of tags to the event that a watching client reads."""
    with RawClient(traced.agent.socket) as client, RawClient(traced.agent.socket) as other:
        watch = client.say(calls.Watch)
        client.answer(calls.Watch, watch)
        numbers = iter(range(100))

        def change() -> None:
            other.ask(calls.SetTags, {"a": str(next(numbers))})
            while not client.pushed.get(watch):
                client.next()
            client.pushed[watch].clear()

        walk = traced.walks(change, lambda: None)
    assert "agent/socket/events.py" in walk
    others = [name for name in walk if name.startswith("features/") and not name.startswith("features/ring/")]
    assert others == [], "a change of tags is the affair of the membership and of those that watch"
    assert not any(name.startswith("agent/observe/") for name in walk), "it has no line at this level"
    assert_short(walk, EVENT_FILES_MAX, EVENT_OWN_FILES_MAX)


def test_no_event_causes_a_look(traced: Traced) -> None:
    """A client that reads an event and then its members has asked the agent for nothing."""
    with holdfast.sync.join(agent=traced.agent.socket) as group, RawClient(traced.agent.socket) as other:
        events = group.watch()
        number = iter(range(100, 200))

        def read() -> None:
            value = str(next(number))
            other.ask(calls.SetTags, {"b": value})
            while not isinstance(event := next(events), Updated) or event.member.tags.get("b") != value:
                sleep(0)
            assert group.members[0].tags["b"] == value

        read()
        walk = traced.walk(read)
        looked = traced.walk(lambda: _look(traced.agent.socket))
    assert "Handlers._look" in looked["agent/socket/handlers.py"], "a trace shows one"
    ran = walk["agent/socket/handlers.py"]
    assert ran.count("Handlers._set_tags") == 1
    assert "Handlers._look" not in ran


def _look(path: str) -> None:
    with RawClient(path) as client:
        client.ask(calls.Look)
