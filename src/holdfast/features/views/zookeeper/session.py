"""kazoo's client in its threads: the agent's loop asks it, and its answers come in turns of the host.  Spec: views 5Z.

One thread of ours lives as long as the session. It imports kazoo, connects, waits for ``close``, and ends the client, which may take as
long as an attempt to connect. The loop waits for none of that. Callbacks of kazoo run in its threads: they pass on their arguments, and
raise nothing. kazoo's log messages go to ``complaint`` and no further, because they repeat for as long as an ensemble is away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from holdfast.features.views.zookeeper.znodes import Failure, Listener, Reply, Standing, Stat, Then

RETRY_DELAY, RETRY_DELAY_MAX = 0.1, 1.0  # seconds between attempts to connect, doubling
COMPLAINT_CHARS_MAX = 160
READ_PART = 2.0 / 3.0  # of a session: kazoo takes a connection for broken after so long without an answer

Post = Callable[[Callable[[], None]], object]  # from any thread into a turn of the host


class KazooSessions:
    """Makes sessions with one ensemble. ``post`` may raise ``RuntimeError`` once the loop is closed."""

    def __init__(self, servers: Sequence[str], asked: float, post: Post) -> None:
        self.servers, self.asked, self._post = tuple(servers), asked, post
        self.granted: float | None = None

    def open(self, listener: Listener) -> KazooSession:
        session = KazooSession(self, listener, self._post)
        session.start()
        return session

    def on_granted(self, seconds: float) -> None:
        self.granted = seconds


class KazooSession:
    """One client of kazoo, or one after the other: an answer that kazoo does not understand ends a client for good."""

    def __init__(self, sessions: KazooSessions, listener: Listener, post: Post) -> None:
        self.complaint = ""
        self._sessions, self._listener, self._post_turn = sessions, listener, post
        self._client: Any = None  # of kazoo, which has no types
        self._closing = Event()
        self._over = Event()  # of the present client: it is to be ended
        self._failures: dict[type[Exception], Failure] = {}
        self._thread = Thread(target=self._live, name="holdfast-zookeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # Asked by the loop.

    def create(self, path: str, data: bytes, then: Then, *, ephemeral: bool = False, sequence: bool = False) -> None:
        self._ask(then, _created, lambda client: client.create_async(path, data, ephemeral=ephemeral, sequence=sequence))

    def delete(self, path: str, then: Then) -> None:
        self._ask(then, _done, lambda client: client.delete_async(path))

    def get(self, path: str, then: Then) -> None:
        self._ask(then, _got, lambda client: client.get_async(path))

    def exists(self, path: str, then: Then) -> None:
        self._ask(then, _existing, lambda client: client.exists_async(path))

    def children(self, path: str, then: Then, *, watch: bool = False) -> None:
        on_watch = self._on_watch if watch else None
        self._ask(then, _listed, lambda client: client.get_children_async(path, watch=on_watch, include_data=True))

    def sync(self, path: str, then: Then) -> None:
        self._ask(then, _done, lambda client: client.sync_async(path))

    def close(self) -> None:
        self._closing.set()
        self._over.set()

    def join(self, timeout: float) -> bool:
        """For programs that end: whether the threads of kazoo are gone within that time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _ask(self, then: Then, read: Callable[[Any], Reply], question: Callable[[Any], Any]) -> None:
        def answered(result: Any) -> None:
            reply = self._reply(result, read)
            self._post(lambda: then(reply))

        try:
            question(self._client).rawlink(answered)
        except Exception as error:  # kazoo checks its arguments, and a client that was just ended has no socket
            reply = self._failed(error)
            self._post(lambda: then(reply))

    # In threads of kazoo.

    def _on_state(self, state: str) -> None:
        client = self._client
        if state == "CONNECTED":
            self.complaint = ""
            session = client.client_id[0]
            self._tell(Standing.CONNECTED, session)
        elif state == "SUSPENDED":
            self._tell(Standing.SUSPENDED, 0)
        else:
            self._tell(Standing.LOST, 0)
            if client.client_state != "EXPIRED_SESSION":  # Its thread has ended: no kazoo connects again after that.
                self._over.set()

    def _tell(self, standing: Standing, session: int) -> None:
        self._post(lambda: self._listener.on_standing(standing, session))

    def _on_watch(self, event: Any) -> None:
        path, deleted = event.path, event.type == "DELETED"
        if path is not None:  # Else the connection broke, which is told otherwise.
            self._post(lambda: self._listener.on_watch(path, deleted))

    def _reply(self, result: Any, read: Callable[[Any], Reply]) -> Reply:
        try:
            return read(result.get(block=False))
        except Exception as error:  # what ZooKeeper refused, and what a later ZooKeeper may say
            return self._failed(error)

    def _failed(self, error: Exception) -> Reply:
        return Reply(self._failures.get(type(error), Failure.REFUSED), type(error).__name__)

    def _post(self, callback: Callable[[], None]) -> None:
        def unless_closed() -> None:
            if not self._closing.is_set():
                callback()

        with suppress(RuntimeError):  # The loop is closed, and the agent is over.
            self._post_turn(unless_closed)

    # In the thread of this session.

    def _live(self) -> None:
        self._failures = _failures()
        while not self._closing.is_set():
            self._over.clear()
            if self._closing.is_set():
                return  # Since it was last looked at.
            client = self._client = self._make()
            try:
                client.start_async()
                self._over.wait()
            except Exception as error:  # no thread, no file: it is tried again
                self._complain(f"{type(error).__name__}: {error}")
            with suppress(Exception):  # kazoo raises when its thread takes too long to end. The thread ends all the same.
                client.stop()
                client.close()
            self._closing.wait(RETRY_DELAY_MAX)

    def _make(self) -> Any:
        from kazoo.client import KazooClient

        client = KazooClient(
            hosts=",".join(self._sessions.servers),
            timeout=self._sessions.asked,
            connection_retry={"max_tries": -1, "delay": RETRY_DELAY, "backoff": 2, "max_delay": RETRY_DELAY_MAX},
            logger=self._logger(),
        )
        client.add_listener(self._on_state)
        _note_granted(client, self._sessions.on_granted)
        return client

    def _logger(self) -> logging.Logger:
        logger = logging.Logger("holdfast-zookeeper", logging.WARNING)  # known to no other logger
        logger.addHandler(_Complaints(self._complain))
        return logger

    def _complain(self, text: str) -> None:
        self.complaint = " ".join(text.split())[:COMPLAINT_CHARS_MAX]


class _Complaints(logging.Handler):
    """Keeps the last one."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        super().__init__()
        self._complain = complain

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):  # a format that does not fit
            self._complain(record.getMessage())


def _note_granted(client: Any, note: Callable[[float], None]) -> None:
    """The client of kazoo does not keep the time-out that it was granted, but its connection begins with numbers that follow from it."""
    connection: Any = getattr(client, "_connection", None)
    connect = getattr(connection, "_connect", None)
    if connect is None:
        return  # Another kazoo: it is not known then.

    def noted(*args: Any) -> Any:
        told = connect(*args)
        with suppress(TypeError, IndexError):
            note(round(told[0] / READ_PART) / 1000)  # milliseconds
        return told

    connection._connect = noted


def _failures() -> dict[type[Exception], Failure]:
    """The exceptions of kazoo that mean more than a refusal."""
    from kazoo import exceptions as of

    unknown = (of.ConnectionLoss, of.SessionExpiredError, of.ConnectionClosedError, of.SessionMovedError, of.OperationTimeoutError)
    return {
        of.NoNodeError: Failure.NO_NODE,
        of.NodeExistsError: Failure.NODE_EXISTS,
        of.NotEmptyError: Failure.NOT_EMPTY,
        **dict.fromkeys((*unknown, of.AuthFailedError, AttributeError, RuntimeError, OSError), Failure.UNKNOWN),
    }


def _stat(stat: Any) -> Stat:
    return Stat(stat.czxid, stat.pzxid, stat.cversion, stat.version, stat.ephemeralOwner)


def _created(path: Any) -> Reply:
    return Reply(path=path)


def _done(_: Any) -> Reply:
    return Reply()


def _got(found: Any) -> Reply:
    data, stat = found
    return Reply(data=data, stat=_stat(stat))


def _existing(stat: Any) -> Reply:
    return Reply(Failure.NO_NODE) if stat is None else Reply(stat=_stat(stat))


def _listed(found: Any) -> Reply:
    names, stat = found
    return Reply(names=tuple(names), stat=_stat(stat))
