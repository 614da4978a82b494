"""The shell around kazoo without an ensemble: nothing blocks, nothing is raised.  Spec: views 5Z; foundation F4."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from socket import socket
from typing import NamedTuple

import pytest

pytest.importorskip("kazoo", reason="kazoo is an extra: zookeeper")

from holdfast.features.views.zookeeper.session import COMPLAINT_CHARS_MAX, KazooSession, KazooSessions, _failures, _note_granted
from holdfast.features.views.zookeeper.znodes import Failure, Reply, Standing
from tests.tidy.tree import ROOT

ASKED = 1.0


class Ears:
    """Listens, in the place of views."""

    def __init__(self) -> None:
        self.heard: list[Standing] = []
        self.turns: deque[Callable[[], None]] = deque()

    def on_standing(self, standing: Standing, session: int) -> None:
        self.heard.append(standing)

    def on_watch(self, path: str, deleted: bool) -> None:
        raise AssertionError("nothing is watched")

    def run(self) -> None:
        while self.turns:
            self.turns.popleft()()


def opened(ears: Ears, place: str) -> KazooSession:
    return KazooSessions([place], ASKED, ears.turns.append).open(ears)


@pytest.fixture
def black_hole() -> object:
    """Takes connections, and says nothing."""
    with socket() as place:
        place.bind(("127.0.0.1", 0))
        place.listen(64)
        yield f"127.0.0.1:{place.getsockname()[1]}"


@pytest.fixture
def refusing() -> object:
    with socket() as place:
        place.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{place.getsockname()[1]}"


@pytest.fixture
def nonsense() -> object:
    return "no-such-host.invalid:2181"


@pytest.mark.parametrize("place", ["black_hole", "refusing", "nonsense"])
def test_close_blocks_nothing(place: str, request: pytest.FixtureRequest) -> None:
    """Views 5Z: open and close return at once, and kazoo's threads end within a connection attempt, without an ensemble, too."""
    ears = Ears()
    began_at = time.monotonic()
    session = opened(ears, request.getfixturevalue(place))
    assert time.monotonic() - began_at < 0.5
    time.sleep(0.5)
    began_at = time.monotonic()
    session.close()
    assert time.monotonic() - began_at < 0.1
    assert session.join(20.0)
    ears.run()
    assert ears.heard == []


def test_closed_before_it_began() -> None:
    """Views 5Z: an agent that is told to stop at once."""
    ears = Ears()
    session = opened(ears, "127.0.0.1:1")
    session.close()
    assert session.join(20.0)


def test_what_the_library_complains_of(request: pytest.FixtureRequest) -> None:
    """Views 9: the last complaint is kept for people, cut, on one line; nothing is printed or logged elsewhere."""
    session = opened(Ears(), request.getfixturevalue("refusing"))
    end_at = time.monotonic() + 20.0
    while not session.complaint:
        assert time.monotonic() < end_at
        time.sleep(0.02)
    assert "refused" in session.complaint
    session._complain("x\n" * 1000)
    assert len(session.complaint) == COMPLAINT_CHARS_MAX
    session.close()
    assert session.join(20.0)


def test_a_question_that_kazoo_does_not_take() -> None:
    """Foundation F4: before there is a client, with an argument that is none, after it ended: an answer, no exception."""
    ears = Ears()
    session = KazooSession(KazooSessions(["127.0.0.1:1"], ASKED, ears.turns.append), ears, ears.turns.append)
    session._failures = _failures()
    replies: list[Reply] = []
    session.get("/x", replies.append)
    session._client = session._make()
    session.create("/x", "text", replies.append)  # type: ignore[arg-type]
    session.create("/x", b"", replies.append, ephemeral=True)
    ears.run()
    assert [reply.failure for reply in replies] == [Failure.UNKNOWN, Failure.REFUSED, Failure.UNKNOWN]
    session.close()
    session.sync("/", replies.append)
    ears.run()
    assert len(replies) == 3


def test_a_loop_that_is_over() -> None:
    """Views 5Z: what kazoo has to say after the end of the loop goes nowhere."""

    def closed(turn: Callable[[], None]) -> None:
        raise RuntimeError("Event loop is closed")

    session = KazooSessions(["127.0.0.1:1"], ASKED, closed).open(Ears())
    session.get("/x", lambda reply: None)
    session.close()
    assert session.join(20.0)


def test_a_process_ends_at_once(request: pytest.FixtureRequest) -> None:
    """Views 5Z: a program that ends while kazoo tries to connect is not kept from it, and prints nothing."""
    place = request.getfixturevalue("black_hole")
    code = (
        "import time; from holdfast.features.views.zookeeper.session import KazooSessions\n"
        f"session = KazooSessions([{place!r}], 4.0, lambda turn: None).open(None)\n"
        "time.sleep(1.0); session.close()"
    )
    began_at = time.monotonic()
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert time.monotonic() - began_at < 20.0


def test_nothing_of_kazoo_is_imported_before_it_is_used() -> None:
    """H221: memory grows with what is used: an agent with views from its seats loads no kazoo, and the loop never waits for the import."""
    code = (
        "import sys, holdfast.features.views.zookeeper.views, holdfast.features.views.zookeeper.session\n"
        "print(any(name.split('.')[0] == 'kazoo' for name in sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said == "False\n"


class StubConnection:
    """The part of kazoo's connection that is listened to."""

    def _connect(self, *where: object) -> tuple[float, float]:
        return 20_000 * 2.0 / 3.0, 20_000.0


class StubClient:
    """The part of kazoo's client that the shell uses to begin and to end."""

    client_id = (77, b"")

    def __init__(self) -> None:
        self.client_state = "CONNECTED"
        self.calls: list[str] = []
        self._connection = StubConnection()

    def start_async(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def close(self) -> None:
        self.calls.append("close")


class WatchedEvent(NamedTuple):
    """As kazoo's."""

    type: str
    path: str | None


def until(holds: Callable[[], object]) -> None:
    end_at = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < end_at
        time.sleep(0.02)


def test_a_client_that_died_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 5Z: kazoo's thread ends at an answer that it does not understand, and connects no more. After an expired session it does."""
    made: list[StubClient] = []

    def make(self: KazooSession) -> StubClient:
        made.append(StubClient())
        return made[-1]

    monkeypatch.setattr(KazooSession, "_make", make)
    ears = Ears()
    session = opened(ears, "127.0.0.1:1")
    until(lambda: made and made[0].calls)
    for state, client_state in (("CONNECTED", "CONNECTED"), ("SUSPENDED", "CONNECTING"), ("LOST", "EXPIRED_SESSION")):
        made[0].client_state = client_state
        session._on_state(state)
    time.sleep(0.3)
    assert made[0].calls == ["start"]
    made[0].client_state = "CLOSED"
    session._on_state("LOST")
    until(lambda: len(made) == 2 and made[1].calls)
    ears.run()
    assert made[0].calls == ["start", "stop", "close"]
    assert ears.heard == [Standing.CONNECTED, Standing.SUSPENDED, Standing.LOST, Standing.LOST]
    session.close()
    assert session.join(20.0)
    assert made[1].calls == ["start", "stop", "close"]


def test_watches_that_end_with_the_connection_are_no_news() -> None:
    """Views 5Z: kazoo calls them without a path when the connection breaks; SUSPENDED says that already."""
    ears = Ears()
    session = KazooSession(KazooSessions(["127.0.0.1:1"], ASKED, ears.turns.append), ears, ears.turns.append)
    session._on_watch(WatchedEvent("NONE", None))
    assert not ears.turns
    session._on_watch(WatchedEvent("DELETED", "/x"))
    assert len(ears.turns) == 1


def test_the_time_out_that_was_granted() -> None:
    """Views 5Z: an ensemble may grant a longer session than was asked for, and ``doctor`` says so."""
    sessions = KazooSessions(["127.0.0.1:1"], ASKED, lambda turn: None)
    client = StubClient()
    _note_granted(client, sessions.on_granted)
    assert client._connection._connect("host", "ip", 1) == (20_000 * 2.0 / 3.0, 20_000.0)
    assert (sessions.asked, sessions.granted) == (ASKED, 20.0)
    _note_granted(object(), sessions.on_granted)  # A kazoo that is built otherwise.
