"""What an agent loads, and what it does not: memory grows with what is used (docs/agent.md, "Memory"; H221)."""

from __future__ import annotations

import functools
import inspect
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.life import installed
from holdfast.agent.life.lean import StandIn, is_coroutine_function
from holdfast.errors import Unavailable
from holdfast.local import calls
from tests.agent.raw_client import RawClient, Sent
from tests.support.agents import AgentProcess, Fleet, until

LISTS = """
import json, os, signal, sys
def tell(*_):
    with open({path!r} + ".new", "w") as file:
        json.dump(sorted(sys.modules), file)
    os.replace({path!r} + ".new", {path!r})
signal.signal(signal.SIGUSR1, tell)
"""
NEVER = {
    # the command line, the client, the lab, the HTTP server
    "argparse", "typer", "rich", "starlette", "uvicorn", "email", "importlib.metadata", "holdfast.lab", "holdfast.cli", "holdfast.client",
    # a second OpenSSL
    "ssl", "_ssl", "_hashlib",
    # what libraries import and an agent does not use
    "typing_extensions", "inspect", "ast", "dis", "locale", "subprocess", "decimal", "uuid", "platform", "urllib.parse", "datetime",
    "asyncio.sslproto", "msgspec.inspect", "msgspec._json_schema", "statistics", "encodings.idna", "unicodedata", "ntpath", "zlib",
    "textwrap", "tokenize", "queue", "cryptography.hazmat.primitives.ciphers.base", "cryptography.hazmat.primitives.ciphers.modes",
    # what a question of a user needs
    "holdfast.agent.observe.doctor", "holdfast.agent.observe.symptoms", "holdfast.agent.observe.seat_views",
    # what views need when a client asks for them
    "holdfast.features.views.protocol.views", "holdfast.features.views.shapes", "holdfast.features.views.handlers",
}  # fmt: skip
WITH_SEATS = {
    # the end of a command with its hold: without seats no feature that ships grants one
    "holdfast.agent.grants.reaper", "holdfast.local.family",
    "holdfast.kit.seats", "holdfast.agent.observe.seat_watch", "holdfast.agent.grants.delays",
    "holdfast.features.leadership.running", "holdfast.features.leadership.protocol.leadership",
    "holdfast.features.tickets.running", "holdfast.features.tickets.protocol.tickets", "holdfast.features.views.running",
}  # fmt: skip
WITH_A_KEY = {"cryptography", "cryptography.hazmat.bindings._rust"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


def lists_modules(fleet: Fleet, code: str = LISTS) -> dict[str, str]:
    """What makes an agent write down its modules on SIGUSR1."""
    folder = fleet.folder / f"plant{len(fleet.agents)}"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code.format(path=str(folder / "modules")))
    return {"PYTHONPATH": str(folder)}


def modules_of(agent: AgentProcess, environ: dict[str, str]) -> set[str]:
    path = Path(environ["PYTHONPATH"]) / "modules"
    path.unlink(missing_ok=True)
    agent.signal(signal.SIGUSR1)
    until(path.exists, "it told its modules")
    return set(json.loads(path.read_text()))


def test_the_ring_alone(fleet: Fleet, tmp_path: Path) -> None:
    """An agent without seats, that others have joined, has loaded neither seats nor what needs them; nor what it is not asked for."""
    environ = lists_modules(fleet)
    first = fleet.start(name="a", environ=environ, state_dir=str(tmp_path / "a"))
    second = fleet.start(name="b")
    with RawClient(second.socket) as client:
        client.ask(calls.Join, (first.address,), 30.0)
    first.until_said("Joined", member=second.id)
    loaded = modules_of(first, environ)
    assert loaded & NEVER == set()
    assert loaded & WITH_SEATS == set()
    assert loaded >= WITH_A_KEY
    with RawClient(first.socket) as client:
        assert "no_seats" in {finding.code for finding in client.ask(calls.Doctor, 5.0)}
    assert "holdfast.agent.observe.doctor" in modules_of(first, environ), "asked for, it is loaded"


def test_with_seats_and_without_a_key(fleet: Fleet, tmp_path: Path) -> None:
    """What needs seats is there with them; the library that seals is there with a key."""
    environ = lists_modules(fleet)
    alone = fleet.start(name="c", group="alone", key=None, environ=environ, state_dir=str(tmp_path / "c"))
    alone.until_said("SeatOpened")
    loaded = modules_of(alone, environ)
    assert loaded & NEVER == set()
    assert loaded >= WITH_SEATS
    assert loaded & WITH_A_KEY == set()


def test_what_ends_a_command_is_loaded_with_the_first_kind() -> None:
    """H250: before any client holds something, seats or no seats; not for kinds that no client can have."""
    code = """
import sys
from types import SimpleNamespace
from holdfast.agent.grants.grants import Grants
from holdfast.agent.grants.kinds import RefusedKind
grants = Grants(SimpleNamespace())
for kind in RefusedKind("lead", "no seats"), SimpleNamespace(kind="lock"):
    grants.add(kind)
    print("holdfast.agent.grants.reaper" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert said == ["False", "True"]


def test_files_of_another_release(fleet: Fleet, tmp_path: Path) -> None:
    """A late import would mix two releases: the question is refused, and the agent lives on."""
    replaced = LISTS + "import holdfast.agent.life.installed as installed\ninstalled.WRITTEN = (0, 0)\n"
    agent = fleet.start(name="d", group="upgraded", key=None, environ=lists_modules(fleet, replaced), state_dir=str(tmp_path / "d"))
    with RawClient(agent.socket) as client:
        with pytest.raises(Sent, match="Unavailable: another release"):
            client.ask(calls.Doctor, 5.0)
        with pytest.raises(Sent, match="Unavailable: another release"):
            client.ask(calls.Seats)
        assert client.ask(calls.Info)["name"] == "d"


def test_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are those of the start, or the import is refused."""
    installed.check_installed()
    monkeypatch.setattr(installed, "WRITTEN", None)
    with pytest.raises(Unavailable):
        installed.check_installed()


def test_afterwards_everything_can_be_imported() -> None:
    """Code that needs what was left out gets it: by importing it, or through the library that was given a stand-in."""
    code = """
import sys
from holdfast.agent.life.lean import lean_imports
with lean_imports():
    import holdfast.agent.life.main
    import cryptography.hazmat.primitives.ciphers.aead
base = "cryptography.hazmat.primitives.ciphers.base"
assert not {base, "ssl", "decimal", "uuid", "inspect", "urllib.parse", "subprocess"} & sys.modules.keys()
import asyncio, msgspec, pathlib
assert pathlib.Path("/a b").as_uri() == "file:///a%20b"
assert msgspec.json.schema(list[int]) == {"type": "array", "items": {"type": "integer"}}
assert msgspec.inspect.type_info(int) == msgspec.inspect.IntType()
async def child():
    return await (await asyncio.create_subprocess_exec(sys.executable, "-c", "")).wait()
assert asyncio.run(child()) == 0
import array, datetime, decimal, hashlib, inspect, locale, ssl, subprocess, typing_extensions, uuid, urllib.parse
assert isinstance(asyncio.coroutines.inspect.signature(print), inspect.Signature)
assert datetime.datetime(2026, 1, 1).isoformat() == "2026-01-01T00:00:00"
assert subprocess.PIPE == asyncio.subprocess.PIPE and subprocess.DEVNULL == asyncio.subprocess.DEVNULL
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
encryptor = Cipher(algorithms.AES(bytes(16)), modes.CTR(bytes(16))).encryptor()
assert len(encryptor.update(bytes(3)) + encryptor.finalize()) == 3 and base in sys.modules
import linecache, queue, textwrap, tokenize, traceback
assert queue.Queue(1).empty()
asyncio.run(asyncio.to_thread(print, end=""))
told = "".join(traceback.format_exception(ExceptionGroup("two", [ValueError(1)])))
assert "  +-+---------------- 1 ----------------" in told and "ValueError: 1" in told
assert linecache.getline(linecache.__file__, 1).startswith('"')
assert hashlib.new("sha1").hexdigest() and uuid.uuid4() and decimal.Decimal(1) and array.array("i", [1])
"""
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_stand_in() -> None:
    """It has the names it was given; for any other it is the module."""
    module = StandIn("colorsys", known=1)
    assert (module.known, module.rgb_to_hls(0, 0, 0)) == (1, (0.0, 0.0, 0.0))
    with pytest.raises(AttributeError):
        _ = module.nothing


async def _coroutine() -> None:
    """For the test below."""


class _Methods:
    async def asked(self) -> None:
        """A coroutine function."""

    def told(self) -> None:
        """None."""


@pytest.mark.parametrize(
    "called", [_coroutine, _Methods().asked, functools.partial(_coroutine), _Methods().told, functools.partial(print), print, len, 3]
)
def test_is_coroutine_function(called: Any) -> None:
    """As ``inspect`` has it."""
    assert is_coroutine_function(called) == inspect.iscoroutinefunction(called)
