"""The agent process: begin, serve until told to stop, end with a code that scripts can use.  docs/agent.md."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.agent.life.agent import Agent, Ending
from holdfast.agent.life.exits import BY_SIGNAL, FOUND, LEFT, exit_code, one_line
from holdfast.agent.life.home import Home
from holdfast.agent.life.parent import Parent
from holdfast.agent.life.reload import reload
from holdfast.agent.life.start import Ready, Settings, parse, read_settings
from holdfast.agent.life.systemd import Notifier
from holdfast.agent.life.version import VERSION
from holdfast.agent.observe.logs import Log
from holdfast.agent.socket.api import LocalServer
from holdfast.config import Config, unknown_variables
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.agent.observe.http import HttpServer

NAMED_TIMEOUT = 3.0  # seconds until an agent is ready also if no seed said whether its name is free; asking takes 1.5 (F5)
STDERR = 2
IDLE_POLL = 0.5  # seconds between two looks at whether a shared agent without a parent still has clients


def main(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Run the agent; what goes wrong is one line on stderr and an exit code."""
    ready, loaded, parent = Ready(None), False, None
    _open_standard_descriptors()
    try:
        options = parse(words)
        ready, parent = Ready(options.ready_fd), options.parent
        settings = read_settings(options, environ)
        config, sources = settings.load()
        if config.http:
            from holdfast.agent.observe.http_extra import check_http  # where HTTP is served

            check_http()
        if options.check:
            _show(config, sources)
            return LEFT
        loaded = True
        # Not closed: that would wait for threads, and one of them may be asking a DNS server that does not answer. No ``asyncio.Runner``:
        # taking SIGINT from it makes Python print its task, and import for it (0.8 MiB).
        return asyncio.new_event_loop().run_until_complete(Process(config, settings, ready, parent, options.log_fd).run())
    except (HoldfastError, OSError) as error:
        ready.tell(error=type(error).__name__, text=one_line(error))
        if parent is None:  # A program that started it has just been told, and raises it. There is no log yet, or no more.
            os.write(STDERR, f"holdfast: {one_line(error)}\n".encode(errors="replace"))
        return exit_code(error, loaded=loaded)


def _open_standard_descriptors() -> None:
    """If stderr is closed, the first file that is opened would get its number, and the log would go into the journal."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _show(config: Config, sources: Mapping[str, str]) -> None:
    shown = {**config.shown(), "socket_mode": f"{config.socket_mode:04o}"}
    os.write(1, msgspec.json.format(msgspec.json.encode({"settings": shown, "sources": sources})) + b"\n")


class Process:
    """One process: one home, one life after the other, usually one."""

    def __init__(self, config: Config, settings: Settings, ready: Ready, parent: int | None, log_fd: int | None = None) -> None:
        self._settings, self._ready, self._parent_pid = settings, ready, parent
        self._log = Log(level=config.log_level, form=config.log_format, told_at=log_fd)
        if parent is None:  # A program has said so itself.
            for line in unknown_variables(settings.environ):
                self._log.warning("unknown variable", text=line)
        self._home = Home.open(config, settings.environ)
        for text in self._home.warnings:
            self._log.warning("files", text=text)
        self._systemd = Notifier(settings.environ)
        self._agent: Agent | None = None
        self._server: LocalServer | None = None
        self._http: HttpServer | None = None
        self._told_by_signal = False
        self._stopping = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._on_reload)
        loop.set_exception_handler(self._on_exception)
        parent = None if self._parent_pid is None else Parent(self._parent_pid, self._on_parent_gone)
        if parent is not None:
            parent.watch()
        try:
            return await self._lives()
        finally:
            if parent is not None:
                parent.close()
            self._home.close()
            self._systemd.close()

    async def _lives(self) -> int:
        while True:
            agent = self._agent = await Agent.open(self._home, self._log)
            try:
                ending = await self._live(agent)
            except HoldfastError:
                raise
            except Exception:
                # A bug: the state that it left behind is unknown. Peers see a crash, which is what they are built for.
                self._log.error("bug", text=traceback.format_exc(limit=-1).splitlines()[-1])
                os.write(STDERR, traceback.format_exc().encode(errors="replace"))
                return FOUND
            finally:
                await self._close(agent)
            if ending is Ending.LEFT:
                self._log.info("stopped", name=agent.me.name, boot=agent.me.boot)
                return LEFT

    async def _live(self, agent: Agent) -> Ending:
        config = agent.config
        # Before anything is said to peers: an agent that no client could reach shall not begin.
        self._server = await LocalServer.start(agent, agent.socket_path, config.socket_mode)
        if config.http:
            from holdfast.agent.observe.http import HttpServer

            self._http = await HttpServer.start(agent)  # Imports for a quarter of a second, in which a member would stand still.
        agent.start()
        await self._named(agent)
        if agent.over.done():
            return agent.over.result()
        self._say_ready(agent)
        self._watch_for_systemd(agent)
        gc.collect()
        gc.freeze()  # What is there now stays: it need not be looked at again, nor copied by what looks at it.
        if self._stopping:
            agent.host.post(lambda: agent.drain(_nothing))
        return await agent.over

    async def _named(self, agent: Agent) -> None:
        """The process that started this one shall hear of a name in use instead of a success; silent seeds do not keep it waiting for
        long."""
        first: list[asyncio.Future[Any]] = [agent.named, agent.over]
        await asyncio.wait(first, timeout=NAMED_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)

    def _say_ready(self, agent: Agent) -> None:
        told = {
            "socket": agent.socket_path,
            "pid": os.getpid(),
            "address": str(agent.host.address),
            "name": agent.me.name,
            "boot": agent.me.boot,
        }
        if self._http is not None:
            told["http"] = self._http.url
        self._ready.tell(**told)
        self._systemd.tell("READY=1", f"STATUS={agent.me} at {agent.host.address}")
        secrets = {"sealed": agent.keyring is not None}
        self._log.info("started", version=VERSION, group=agent.config.group, **told, **secrets)
        if agent.seats_missing:
            self._log.info("no seats", text=agent.seats_missing)  # Membership needs none; a client that needs them is told so.

    async def _close(self, agent: Agent) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None
        if self._server is not None:
            await self._server.close()
            self._server = None
        await agent.close()

    def _watch_for_systemd(self, agent: Agent) -> None:
        """From inside the turns: a loop that turns while its machines stand still is not alive."""
        interval = self._systemd.watchdog_interval
        if interval > 0:
            self._systemd.tell("WATCHDOG=1")
            agent.host.after(interval, lambda: self._watch_for_systemd(agent))

    def _on_stop(self, number: int) -> None:
        if self._told_by_signal:
            # Whatever keeps it, a disk or a deadline, is not waited for any more.
            self._log.warning("ended at once", signal=signal.Signals(number).name)
            os._exit(BY_SIGNAL + number)
        self._told_by_signal = True
        self._stop(signal.Signals(number).name)

    def _stop(self, why: str) -> None:
        if self._stopping:
            return
        self._stopping = True
        self._log.info("leaving", why=why)
        self._systemd.tell("STOPPING=1", "STATUS=leaving the group")
        agent = self._agent
        if agent is not None and self._server is not None:
            agent.host.post(lambda: agent.drain(_nothing))

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A bug outside of the turns, where no machine is half-way through something: said, and lived with."""
        del loop
        error = context.get("exception")
        where = traceback.format_exception(error)[-3:] if isinstance(error, BaseException) else []
        self._log.error("bug", text=context.get("message", ""), trace=where)

    def _on_parent_gone(self) -> None:
        """A child leaves with its parent; an agent that others have attached to stays until the last of them is gone (F12)."""
        if self._home.config.alone and self._server is not None and self._server.clients:
            asyncio.get_running_loop().call_later(IDLE_POLL, self._on_parent_gone)
            return
        self._stop("parent ended")

    def _on_reload(self) -> None:
        if self._agent is not None:
            self._systemd.tell("RELOADING=1", f"MONOTONIC_USEC={int(_monotonic() * 1_000_000)}")
            reload(self._agent, self._settings)
            self._systemd.tell("READY=1")


def _nothing() -> None:
    """There is nothing to tell."""


def _monotonic() -> float:
    import time

    return time.monotonic()
