"""The agents of ``holdfast demo``: real processes on this machine, what they say, and how they all end."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.cli.agent_call import AgentCall
from holdfast.cli.exits import CannotServe
from holdfast.client.wire import ITEMS
from holdfast.errors import HoldfastError
from holdfast.host import Member, NodeId
from holdfast.local.calls import EventItem, GroupView, Info, Look, Owned, Owns, Watch
from holdfast.net import clock

SUSPICION, OVERSLEPT = "ring.Suspicion", "ring.Overslept"  # facts inside the ring
LOOPBACK = "127.0.0.1"
SEEDS = 3  # a majority of them founds the ring
START_TIMEOUT = 30.0  # seconds until an agent's socket answers; a bare interpreter takes a tenth of one
END_TIMEOUT = 10.0  # seconds to drain and leave, before it is killed
HOLD_BACK = 0.1  # seconds before people read it, so that what was heard in another order is told in the right one
POLL_INTERVAL = 0.02  # seconds; how long a look at the sockets lasts if nothing is said
READY_BYTES_MAX = 65536
LOG_LINES_SHOWN = 3  # of an agent that did not start


class Said(NamedTuple):
    """One event of one agent, and when it was heard here (``clock.now``)."""

    by: str
    at: float
    event: str
    about: str  # name of the member it is about, if it is about one; of the one that leads
    life: NodeId | None
    certain: bool
    seconds: float
    peer: str  # of a fact inside the ring: the id there of whom it is about
    wall: float  # when that agent says it was: what several agents say is put in order by it, not by who was heard first


class _Fields(msgspec.Struct):
    """What the demo reads of an event; whatever else it says is passed over."""

    member: Member | None = None
    certain: bool = False
    seconds: float = 0.0
    peer: str = ""
    leader: NodeId | None = None


class Stream:
    """What one agent says happens, also inside its protocols."""

    def __init__(self, path: str) -> None:
        self._call = AgentCall(path, program="holdfast demo")
        self._items: list[EventItem] = []
        self.view: GroupView = self._call.open(Watch, True, sink=self)

    def fileno(self) -> int:
        return self._call.fileno()

    def close(self) -> None:
        self._call.close()

    def read(self) -> tuple[list[EventItem], bool]:
        """What came since the last time, and whether nothing more will come."""
        try:
            while self._call.read(0.0):
                pass
            over = False
        except HoldfastError:
            over = True
        items, self._items = self._items, []
        return items, over

    def push(self, item: Any) -> None:
        self._items.append(ITEMS[Watch](item))

    def end(self, error: HoldfastError | None) -> None:
        """The next ``read`` says so."""


class Running:
    """One life of one agent."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], ready: int, log: Path) -> None:
        self.name, self.process, self.log = name, process, log
        self.view: GroupView | None = None
        self.metrics: Mapping[str, float] = {}
        self.page = ""
        self.socket = ""  # once it answers
        self._ready = ready
        self._said = b""
        self.stream: Stream | None = None
        self._call: AgentCall | None = None

    @property
    def up(self) -> bool:
        return self._call is not None

    def try_attach(self) -> None:
        """Once it says that its socket answers. Raises ``CannotServe`` with its own words if it could not start."""
        readable, _, _ = select.select([self._ready], [], [], 0)
        if not readable:
            return
        data = os.read(self._ready, READY_BYTES_MAX)
        self._said += data
        if data and not self._said.endswith(b"\n"):
            return
        told: dict[str, Any] = msgspec.json.decode(self._said) if self._said else {"text": self._last_words()}
        if "socket" not in told:
            raise CannotServe(f"agent {self.name} could not start: {told.get('text', '')}")
        self.page, self.socket = told.get("http", ""), told["socket"]
        self.stream = Stream(told["socket"])
        self.view = self.stream.view
        self._call = AgentCall(told["socket"], program="holdfast demo")

    def look(self) -> None:
        """Its member list and its numbers, as of now."""
        if self._call is not None:
            self.view = self._call.ask(Look)
            self.metrics = self._call.ask(Info).get("metrics", {})

    def owns(self, key: str) -> Owned | None:
        owned: Owned | None = None if self._call is None else self._call.ask(Owns, key.encode())
        return owned

    def close(self) -> None:
        for call in (self.stream, self._call):
            if call is not None:
                call.close()
        self.stream = self._call = None
        with suppress(OSError):
            os.close(self._ready)

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return " / ".join(lines) or f"it ended with {self.process.poll()} and said nothing"


class Fleet:
    """All agents of the demo, by name. The code that makes one closes it: afterwards no process of it is left."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], names: tuple[str, ...], *, http: bool) -> None:
        self.names = names
        self.group: str = settings.get("group", "")
        self.running: dict[str, Running] = {}
        self.heard: list[Said] = []
        self.page = ""  # where the first agent shows the group; "" without the extra, and before it is up
        self.on_event: Callable[[Said], None] = _nobody
        self._untold: list[Said] = []
        self.late = 0.0  # seconds between two looks at the sockets, at worst: what this process adds to what it measures
        self._looked_at = clock.now()
        self._folder = folder
        addresses = [f"{LOOPBACK}:{port}" for port in free_ports(len(names))]
        self.address = dict(zip(names, addresses, strict=True))
        self._settings = {**settings, "seeds": addresses[:SEEDS]}
        self._http = {names[0]: {"http": f"{LOOPBACK}:0"}} if http else {}

    def start(self, name: str) -> None:
        """Begin a life. ``listen`` attaches to it as soon as it answers."""
        assert name not in self.running
        folder = self._folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        settings = {
            **self._settings,
            "name": name,
            "bind": self.address[name],
            "state_dir": str(folder / "state"),
            "socket": str(folder / "s"),
            **self._http.get(name, {}),
        }
        self.running[name] = _start(name, settings, folder / "log")

    def kill(self, name: str) -> float:
        """``kill -9``. Returns when, on the clock that everything is measured with."""
        running = self.running.pop(name)
        killed_at = clock.now()
        running.process.kill()
        running.process.wait()
        running.close()
        return killed_at

    def ask_to_leave(self, *names: str) -> None:
        for name in names:
            self.running[name].process.terminate()

    def ended(self, name: str) -> int | None:
        """The exit code of an agent that has ended by itself, else None."""
        return self.running[name].process.poll()

    def forget(self, name: str) -> None:
        running = self.running.pop(name)
        running.close()
        running.process.wait()

    def listen(self, seconds: float = POLL_INTERVAL) -> None:
        """Hear what they say, for at most so long, but return at once when something was said."""
        for running in self.running.values():
            if not running.up:
                running.try_attach()
                self.page = self.page or running.page
        now = clock.now()
        self.late = max(self.late, now - self._looked_at)
        streams = {running.stream: name for name, running in self.running.items() if running.stream is not None}
        if streams:
            readable, _, _ = select.select(list(streams), [], [], seconds)
        else:
            time.sleep(seconds)
            readable = []
        self._looked_at = clock.now()
        items = [(item.at, streams[stream], item) for stream in readable for item in self._read(streams[stream], stream)]
        for _, name, item in sorted(items, key=lambda each: each[0]):  # as it happened, not as the sockets are listed
            self._take(name, item)
        self.tell(time.time() - HOLD_BACK)

    def tell(self, until: float = float("inf")) -> None:
        """Pass on what happened up to then (wall-clock), as it happened: of two agents the busier one is heard later."""
        due = sorted((said for said in self._untold if said.wall <= until), key=lambda said: said.wall)
        self._untold = [said for said in self._untold if said.wall > until]
        for said in due:
            self.on_event(said)

    def close(self) -> None:
        """All agents leave; one that does not is killed. It is safe to call at any time, and twice."""
        processes = [running.process for running in self.running.values()]
        for process in processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + END_TIMEOUT
        for process in processes:
            try:
                process.wait(max(0.05, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for running in self.running.values():
            running.close()
        self.running.clear()

    def _read(self, name: str, stream: Stream) -> list[EventItem]:
        items, over = stream.read()
        if over:
            self.running[name].stream = None  # It has ended, as its process shows.
            stream.close()
        return items

    def _take(self, name: str, item: EventItem) -> None:
        try:
            fields = msgspec.msgpack.decode(item.fields, type=_Fields)
        except msgspec.ValidationError:
            return  # A fact inside a protocol whose fields have the same names and other meanings.
        life = fields.leader if fields.member is None else fields.member.id
        about = life.name if life else ""
        said = Said(name, self._looked_at, item.name, about, life, fields.certain, fields.seconds, fields.peer, item.at)
        self.heard.append(said)
        self._untold.append(said)


def free_ports(count: int) -> list[int]:
    """Ports that are free for UDP and TCP now. They are all held until the last is found, so that no two are the same."""
    held: list[socket.socket] = []
    ports: list[int] = []
    try:
        while len(ports) < count:
            tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            held += [tcp, udp]
            tcp.bind((LOOPBACK, 0))
            with suppress(OSError):  # The same number is taken for UDP: try another.
                udp.bind(tcp.getsockname())
                ports.append(tcp.getsockname()[1])
    finally:
        for each in held:
            each.close()
    return ports


def _start(name: str, settings: Mapping[str, Any], log: Path) -> Running:
    """Settings travel through a file descriptor: the key is on no command line. A session of its own, because Ctrl-C is for the demo."""
    given, give = os.pipe()
    ready, tell = os.pipe()
    words = [
        sys.executable,
        "-P",
        "-m",
        "holdfast.cli.demo.agent",
        "--settings-fd",
        str(given),
        "--ready-fd",
        str(tell),
        "--parent",
        str(os.getpid()),
    ]
    try:
        with log.open("ab") as out:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(given, tell), start_new_session=True, env=_environment()
            )
        os.write(give, msgspec.json.encode(settings))
    except OSError as error:
        os.close(ready)
        raise CannotServe(f"agent {name} could not start: {error.strerror}") from None
    finally:
        for fd in (given, give, tell):
            os.close(fd)
    return Running(name, process, ready, log)


def _environment() -> dict[str, str]:
    """Ours, without settings of other agents. A child imports nothing from the folder it runs in, so it is told where this package is."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    home = str(Path(__file__).resolve().parents[3])
    return {**mine, "PYTHONPATH": os.pathsep.join(filter(None, (home, mine.get("PYTHONPATH", ""))))}


def _nobody(said: Said) -> None:
    """No listener is set yet."""
