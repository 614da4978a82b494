"""Fuzz target of the local socket: ``python -m fuzz.local --inputs N --seed S``.

Every input is one connection to a living agent: calls that were taken apart and put together wrongly, cut, doubled, in any order, in any
pieces, and then the client hangs up half-way. Allowed are answers, refusals by a name of ``holdfast.errors`` and an end that says
why; anything else (an exception anywhere, an answer that cannot be read, silence, a grant or a descriptor that stays) ends the run
with exit code 1, the seed and the input. The same seed gives the same inputs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TextIO

import msgspec

from fuzz.mutate import mangle, mutate, write
from holdfast import errors
from holdfast.agent.life.agent import Agent
from holdfast.agent.life.home import Home
from holdfast.agent.observe.logs import Log
from holdfast.agent.socket.api import LocalServer
from holdfast.cli.demo.fleet import free_ports
from holdfast.config import load
from holdfast.features.farewell import calls as farewell_calls
from holdfast.features.keys import calls as key_calls
from holdfast.features.mail import calls as mail_calls
from holdfast.features.views import calls as view_calls
from holdfast.kit.hold import Holder
from holdfast.local import calls
from holdfast.local.calls import Closed, Done, FromAgent, Refused
from holdfast.local.frame import ANSWER_BYTES_MAX, CALL_BYTES_MAX, Frames, framed

PROGRESS_INPUTS = 5000
PATIENCE = 30.0  # seconds for one input; only a broken agent or a broken machine needs them
SENTINEL = (1 << 53) - 1  # the largest serial: a last call that is answered if the connection still stands
CALLS_PER_INPUT = 6
LOCK_LENGTH = 0.05  # seconds

_answers: msgspec.msgpack.Decoder[FromAgent] = msgspec.msgpack.Decoder(FromAgent)


class Misbehaved(Exception):
    """Something other than an answer, a refusal or an end that says why."""


class QuickLock:
    """A kind that grants everything to everybody, for a moment: it excludes nobody and leaves no part of the law unused."""

    kind = "lock"

    def __init__(self, agent: Agent) -> None:
        self._host = agent.host
        self._token = int(time.time() * 1000)

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> QuickHeld:
        self._token += 1
        held = QuickHeld()
        self._host.after(0.0, partial(self._grant, held, holder, self._token))
        return held

    def _grant(self, held: QuickHeld, holder: Holder, token: int) -> None:
        if not held.over:
            holder.on_granted(token, self._host.now + LOCK_LENGTH, token % 3)
            holder.on_at_risk()
            holder.on_extended(self._host.now + 2 * LOCK_LENGTH)


class QuickHeld:
    """Nothing is kept but whether it is over."""

    over = False

    def cancel(self) -> None:
        assert not self.over
        self.over = True

    def release(self) -> None:
        assert not self.over
        self.over = True

    def renew_allowed(self, allowed: bool) -> None:
        assert not allowed


def draw(random: Random, serial: int) -> calls.Call:
    """Any call that a client may make."""
    name = random.choice(("fuzz", "nobody", "", "x" * 200, "größe"))
    timeout = random.choice((0.01, 1.0, 0.0, -1.0, 1e300, float("nan")))
    topic = random.choice(("", "t", "news", "x" * 63, "a\nb"))
    payload = random.randbytes(random.choice((0, 1, 1000, 17_000, 33_000)))
    draws: tuple[Callable[[], calls.Call], ...] = (
        lambda: calls.Look(serial, random.choice((0, 1, 7, -1, 1 << 63))),
        lambda: calls.Watch(serial, random.random() < 0.5),
        lambda: calls.Owns(serial, payload[:5000]),
        lambda: calls.SetTags(serial, random.choice(({}, {"zone": "eu"}, {"zone": None}, {"a b": "x"}, {"n" * 40: "v" * 300}))),
        lambda: calls.Leave(serial, random.random() < 0.5),
        lambda: calls.Join(serial, random.choice(((), ("nonsense",), ("127.0.0.1:1",))), timeout),
        lambda: farewell_calls.ForceLeave(serial, name, timeout),
        lambda: key_calls.Keys(serial, random.choice(("list", "install", "use", "remove", "melt")), name, timeout, random.random() < 0.5),
        lambda: calls.Seats(serial),
        lambda: mail_calls.Send(serial, name, payload, timeout),
        lambda: mail_calls.Cast(serial, topic, payload),
        lambda: mail_calls.Messages(serial, topic),
        lambda: view_calls.WatchViews(serial),
        lambda: view_calls.TripView(serial, random.choice((topic, name, "x" * 201, "silent"))),
        lambda: view_calls.SurveyViews(serial),
        lambda: calls.Acquire(serial, random.choice(("lock", "lock", "moon")), name, {"of": 8, "deep": {"x": [1, None]}}),
        lambda: calls.Stopped(serial, random.choice((0, serial - 1, serial - 2, 1 << 40))),
        lambda: calls.Body(serial, random.choice((serial - 1, 1)), random.choice((os.getpid(), 1, 0, -1, 1 << 31, 1 << 40))),
        lambda: calls.Close(serial, random.choice((serial - 1, serial - 2, 0, -1))),
        lambda: calls.Info(serial),
        lambda: calls.Doctor(serial, timeout),
        lambda: calls.Hello(serial, random.choice((0, 1, 2)), name, random.choice((0.0, time.clock_gettime(time.CLOCK_BOOTTIME)))),
    )
    return random.choice(draws)()


class Target:
    """A living agent, and what became of each input."""

    def __init__(self, seed: int, agent: Agent, server: LocalServer) -> None:
        self.random = Random(seed)
        self.outcomes: Counter[str] = Counter()
        self.input = b""
        self.wrongs: list[str] = []
        self._agent, self._server = agent, server

    async def one(self) -> None:
        """One connection."""
        random = self.random
        greeting = framed(msgspec.msgpack.encode(calls.Hello(1, calls.VERSION, "fuzz", self._agent.host.now)))
        self.input = b"" if random.random() < 0.05 else greeting
        self.input += random.choice(_WAYS)(self)
        sentinel = framed(msgspec.msgpack.encode(calls.Owns(SENTINEL, b"")))  # in a turn, behind all that entered one before
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(self._server.path, limit=1 << 20)
            try:
                await self._talk(reader, writer, self.input, sentinel)
            finally:
                writer.close()
        if self.wrongs:
            raise Misbehaved("; ".join(self.wrongs))

    def valid_calls(self) -> bytes:
        return b"".join(framed(msgspec.msgpack.encode(draw(self.random, serial))) for serial in self._serials())

    def mutated_calls(self) -> bytes:
        """The majority: right outside, wrong inside."""
        bodies = (msgspec.msgpack.encode(draw(self.random, serial)) for serial in self._serials())
        changed = (write(mutate(msgspec.msgpack.decode(body), self.random)) if self.random.random() < 0.5 else body for body in bodies)
        return b"".join(framed(body[:CALL_BYTES_MAX]) for body in changed)

    def mangled_bytes(self) -> bytes:
        return mangle(self.valid_calls(), self.random)

    def random_bytes(self) -> bytes:
        return self.random.randbytes(self.random.choice((0, 1, 3, 4, 5, 30, 2000)))

    def long_frames(self) -> bytes:
        length = self.random.choice((CALL_BYTES_MAX - 1, CALL_BYTES_MAX, CALL_BYTES_MAX + 1, 1 << 31, (1 << 32) - 1))
        return length.to_bytes(4, "big") + bytes(min(length, CALL_BYTES_MAX))

    def _serials(self) -> range:
        return range(2, 2 + self.random.randrange(1, CALLS_PER_INPUT + 1))

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes, sentinel: bytes) -> None:
        frames, answered = Frames(ANSWER_BYTES_MAX), False
        ending: Closed | None = None
        try:
            await self._write(writer, data + sentinel, hang_up=self._swallows(data))
            while more := await reader.read(1 << 16):
                for body in frames.feed(more):
                    message = self._read(body)
                    ending = message if isinstance(message, Closed) and message.serial == 0 else ending
                    if isinstance(message, Done) and message.serial == SENTINEL:
                        answered = True
                        writer.write_eof()
        except ConnectionError:
            pass  # It hung up before we had said everything, which may lose what it said.
        self._note(answered, ending)

    async def _write(self, writer: asyncio.StreamWriter, data: bytes, *, hang_up: bool) -> None:
        at = 0
        while at < len(data):
            step = self.random.choice((1, 7, 300, 65_536, 1 << 20))
            writer.write(data[at : at + step])
            at += step
            if self.random.random() < 0.3:
                await asyncio.sleep(0)
        if hang_up:
            writer.write_eof()  # A length that lied has swallowed the last call: hang up, or both would wait for ever.

    @staticmethod
    def _swallows(data: bytes) -> bool:
        """What follows it is not a frame of its own."""
        at = 0
        while at + 4 <= len(data):
            at += 4 + int.from_bytes(data[at : at + 4], "big")
        return at != len(data)

    def _read(self, body: bytes) -> FromAgent:
        message = _answers.decode(body)
        if isinstance(message, Refused | Closed):
            kind = getattr(errors, message.error, None)
            if not (isinstance(kind, type) and issubclass(kind, errors.HoldfastError) and message.text):
                raise Misbehaved(f"an error without a name or a text: {message}")
        self.outcomes[f"({type(message).__name__})"] += 1
        return message

    def _note(self, answered: bool, ending: Closed | None) -> None:
        if ending is not None:
            why = ending.text.rpartition("local socket: ")[2]
            self.outcomes["closed: " + " ".join(word for word in why.split()[:7] if not any(map(str.isdigit, word)))] += 1
        else:
            self.outcomes["answered to the end" if answered else "hung up"] += 1


_WAYS: tuple[Callable[[Target], bytes], ...] = (
    *([Target.mutated_calls] * 12),
    *([Target.valid_calls] * 4),
    *([Target.mangled_bytes] * 2),
    Target.random_bytes,
    Target.long_frames,
)


def run(inputs: int, seed: int, *, progress: TextIO | None = None) -> Counter[str]:
    """Feed so many inputs. Raises ``Misbehaved`` that names the input, or returns what became of all of them."""
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as quiet:
        return asyncio.run(_run(inputs, seed, Path(folder), quiet.fileno(), progress))


async def _run(inputs: int, seed: int, folder: Path, quiet: int, progress: TextIO | None) -> Counter[str]:
    path = str(folder / "agent.sock")
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"  # of the only seat, so that there are views to watch
    seat = {"seats": [f"fuzz@{address}"], "state_dir": str(folder / "state")}
    settings = {"group": "fuzz", "name": "fuzz", "bind": address, "socket": path, "preset": "local", **seat}
    home = Home.open(load(None, {}, settings), {"HOLDFAST_RUNTIME_DIR": str(folder)})
    agent = await Agent.open(home, Log(level="error", fd=quiet))
    _keep(agent)
    agent.grants.add(QuickLock(agent))
    agent.start()
    server = await LocalServer.start(agent, path)
    target = Target(seed, agent, server)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: target.wrongs.append(f"{context.get('exception')!r}: {context['message']}"))
    before = _pidfds()
    try:
        await _feed(target, inputs, seed, progress)
        await _settled(target, agent, server, before)
    finally:
        await server.close()
        await agent.close()
        home.close()
    return target.outcomes


def _keep(agent: Agent) -> None:
    """The calls that would end the target are understood, and not obeyed."""

    def leave(done: Callable[[], None], *, end: bool = False) -> None:
        done()

    def join(seeds: Sequence[str], done: Callable[[], None]) -> None:
        raise errors.JoinFailed("this is a target")

    setattr(agent, "leave", leave)  # noqa: B010 - on the object, where the checker sees a method
    setattr(agent, "join", join)  # noqa: B010 - as above


async def _feed(target: Target, inputs: int, seed: int, progress: TextIO | None) -> None:
    for number in range(inputs):
        try:
            await target.one()
        except Exception as error:
            raise Misbehaved(f"seed {seed}, input {number}: {error!r}\n{target.input.hex()}") from error
        if progress is not None and (number + 1) % PROGRESS_INPUTS == 0:
            progress.write(f"{number + 1} of {inputs} inputs\n")
            progress.flush()


async def _settled(target: Target, agent: Agent, server: LocalServer, pidfds: int) -> None:
    """Nothing stays: no session, no grant, no pidfd, no part in views; and no machine has raised."""
    end_at = time.monotonic() + PATIENCE
    views: Any = agent.features["views"]
    while server.connections or len(agent.grants) or views.takes_part or _pidfds() > pidfds:
        if time.monotonic() > end_at:
            kept = f"{len(server.connections)} sessions, {len(agent.grants)} grants and {_pidfds()} pidfds stay"
            raise Misbehaved(f"{kept}, and the agent takes {'part' if views.takes_part else 'no part'} in views")
        await asyncio.sleep(0.01)
    if agent.host.failed.done() or target.wrongs:
        raise Misbehaved(f"a machine raised: {target.wrongs}")


def _pidfds() -> int:
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # The one that was opened to list them is gone.
            count += "pidfd" in str(entry.readlink())
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.local", description="Feed hostile calls to a living agent over its local socket.")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        outcomes = run(options.inputs, options.seed, progress=sys.stderr)
    except Misbehaved as failure:
        sys.stdout.write(f"FAILED: {failure}\n")
        return 1
    lines = [f"{count:>9}  {outcome}" for outcome, count in sorted(outcomes.items())]
    told = f"{options.inputs} inputs, seed {options.seed}: nothing but answers, refusals and ends that say why"
    sys.stdout.write("\n".join((told, *lines, "")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
