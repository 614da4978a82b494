"""Forged messages against real agents: every type of every machine, extreme and harvested values, from members that have the key.

    python -m fuzz.agents --messages 1000000 --seed 1

Three agents in this process, all of them seats: real settings, journals, sockets, timers and grants. Clients of each take and give back
tickets and leaderships all the time, and one of them takes part in views (``viewer``). A forger with the group's key makes messages
(``shapes``) from the annotations of every type that any machine handles and from what it sees the agents say to each other; each is sealed
and enters an agent where its datagrams do, so it passes everything that a real one does: seal, codec, node, machine. Its sender is one of
the agents, or nobody, at that agent's address.

Nothing but a counted drop or a handled message may come of it. A raised exception or an agent that ends is a failure, with the message
that came before it. One that begins a new life, or leaves because a message asked it to, is started again. At the end the forger stops:
within ``RECOVERY`` seconds every agent leads a name and holds a ticket of a pool of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, TextIO

import msgspec

from fuzz.shapes import Harvest, Shapes, leaves_of
from fuzz.viewer import Viewer
from holdfast.agent.grants.bodies import Body
from holdfast.agent.life.agent import Agent, Ending
from holdfast.agent.life.home import Home
from holdfast.agent.observe.logs import Log
from holdfast.cli.demo.fleet import free_ports
from holdfast.config import load
from holdfast.errors import HoldfastError
from holdfast.features.farewell.protocol.messages import LeaveAsk
from holdfast.host import Message, NodeId
from holdfast.local.calls import Acquire, GrantItem
from holdfast.net import clock
from holdfast.node import life_of
from holdfast.wire import Channel, Codec, Sealed, generate
from holdfast.wire.keys import Keyring, parse_key

GROUP = "fuzz"
NAMES = ("alfa", "bravo", "carol")
VIEWER = "bravo"  # takes part in views: the messages from servers to clients are for it, and the last hop of the overlay
POOLS, LEADS = ("gpus", "licences"), ("scheduler", "janitor")
TICKETS = 3
RATE = 2000.0  # messages a second: a tenth of a core, so that timers, leases and clients run beside them as they do in a group
ANSWERED = 0.25  # of what the agents say to each other is answered by the forger too, first
RELATED = 12  # types whose tags are so close belong to one machine, more or less
BATCH = 32  # messages between two rounds of the loop: the agents' own timers and sockets come in between
CLIENT_PERIOD = 0.05  # seconds between two steps of a client
SETTLE = 60.0  # seconds in which the group must be one before, and lead and give tickets after
RECOVERY = 90.0
PROGRESS = 20_000  # messages per line
LAST = 64  # messages that a failure shows
STRANGER = NodeId("mallory", 1_753_000_000_000)


class Misbehaved(Exception):
    """An agent raised, or ended."""


class Client:
    """One session that takes and gives back one thing after the other."""

    connected = reads = True
    sent = 0

    def __init__(self, player: Player, number: int) -> None:
        self._player, self.number = player, number
        self._serial = 0
        self.held: dict[int, str] = {}  # serial -> asked, granted
        self.counts: Counter[str] = Counter()

    def follows(self, sent: int) -> bool:
        del sent
        return True

    def push(self, serial: int, item: GrantItem) -> None:
        self.counts[item.what] += 1
        if item.what == "granted":
            with suppress(HoldfastError):
                self.agent.grants.confirm(self, serial, item.token)
        if item.what in ("granted", "extended"):
            self.held[serial] = "granted"
        elif item.what in ("lost", "released"):
            self.held.pop(serial, None)

    def end(self, serial: int, error: str, text: str) -> None:
        del error, text
        self.held.pop(serial, None)

    def body(self) -> Body | None:
        return None

    def forget(self) -> None:
        self.connected = True

    @property
    def agent(self) -> Agent:
        return self._player.agent

    def ask(self, kind: str, name: str, **options: Any) -> None:
        """In a turn."""
        self._serial += 1
        serial = self._serial
        call = Acquire(serial, kind, name, options)
        try:
            self._player.agent.grants.acquire(self, call, lambda: None)
        except HoldfastError:
            self.counts["refused"] += 1
        else:
            self.held.setdefault(serial, "asked")

    def give_back(self, serial: int) -> None:
        self.held.pop(serial, None)
        self._player.agent.grants.stopped(self, serial)


class Player:
    """One agent, life after life."""

    def __init__(self, fuzz: Fuzz, name: str, settings: dict[str, Any], folder: Path) -> None:
        self._fuzz, self.name, self._settings, self._folder = fuzz, name, settings, folder
        self.agent: Agent
        self.clients = [Client(self, number) for number in (1, 2, 3)]
        self.viewer = Viewer() if name == VIEWER else None
        self.lives = 0
        self._home: Home | None = None

    async def start(self) -> None:
        if self._home is None:
            self._home = Home.open(load(None, {}, self._settings), {"HOLDFAST_RUNTIME_DIR": str(self._folder)})
        self.agent = await Agent.open(self._home, self._fuzz.log)
        self.agent.start()
        self.lives += 1
        host, encode = self.agent.host, self.agent.host._encode

        def overheard(sender: NodeId, to_life: int, fingerprint: bytes, message: Message) -> bytes:
            self._fuzz.harvest.note(message)
            self._fuzz.answer(self, message)
            return encode(sender, to_life, fingerprint, message)

        host._encode = overheard

    async def look(self) -> None:
        """Fail if it raised; start it again if it left or begins a new life."""
        over = self.agent.over
        if not over.done():
            return
        error = over.exception()
        if error is not None:
            raise Misbehaved(f"{self.name} ended: {error!r}") from error
        self._fuzz.outcomes[f"(a life of an agent ended: {over.result().name.lower()})"] += 1
        self._fuzz.dropped(self)
        await self.agent.close()
        if over.result() is Ending.LEFT and self._home is not None:
            self._home.close()
            self._home = None
        for client in self.clients:
            client.held.clear()
        await self.start()

    async def close(self) -> None:
        await self.agent.close()
        if self._home is not None:
            self._home.close()


class Fuzz:
    """One run."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.harvest = Harvest()
        self.outcomes: Counter[str] = Counter()
        self.log = Log(level="error", fd=os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        key = generate()
        ports = free_ports(len(NAMES))
        addresses = [f"127.0.0.1:{port}" for port in ports]
        seats = [f"{name}@{address}" for name, address in zip(NAMES, addresses, strict=True)]
        common = {
            "group": GROUP,
            "key": key,
            "seeds": addresses,
            "seats": seats,
            "preset": "local",
            "log_level": "error",
            "longest_grant": 1.0,
        }
        self.players = []
        for name, address in zip(NAMES, addresses, strict=True):
            place = folder / name
            place.mkdir(mode=0o700)
            own = {"name": name, "bind": address, "state_dir": str(place / "state"), "socket": str(place / "s")}
            self.players.append(Player(self, name, {**common, **own}, place))
        self._sealer = Sealed(GROUP, Keyring(parse_key(key)))
        self.shapes = Shapes(self.random, self.harvest, clock.wall)
        self.last: deque[str] = deque(maxlen=LAST)
        self._types: list[type[Message]] = []
        self._clients: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        await asyncio.gather(*(player.start() for player in self.players))
        await self.until(
            lambda: all(len(player.agent.membership.members()) >= len(NAMES) for player in self.players), "the group is one", SETTLE
        )
        self._clients = [asyncio.create_task(self._use(player)) for player in self.players]
        await self.until(lambda: all(self.counted(player, "granted") for player in self.players), "clients are served", SETTLE)
        await self.until(lambda: all(viewer.counts["view"] for viewer in self.viewers), "there is a view", SETTLE)
        found = {kind: None for player in self.players for kind in player.agent.host.node.types}
        self._types = list(found)  # the seats serve views by now
        self._codec = Codec(self._types)

    async def run(self, messages: int, rate: float, progress: TextIO | None) -> None:
        began_at, told = time.monotonic(), 0
        while (sent := self.outcomes["(sent)"]) < messages:
            for _ in range(min(BATCH, messages - sent)):
                self.one(self.random.choice(self.players), self.any_type())
            await asyncio.sleep(max(0.0, began_at + sent / rate - time.monotonic()))
            for player in self.players:
                await player.look()
            if progress is not None and sent >= told + PROGRESS:
                told += PROGRESS
                done = sent / (time.monotonic() - began_at)
                lives, granted = [player.lives for player in self.players], sum(self.counted(player, "granted") for player in self.players)
                progress.write(f"{sent} of {messages} messages, {done:.0f}/s, lives {lives}, {granted} grants\n")
                progress.flush()
        await asyncio.sleep(0.5)

    def answer(self, player: Player, message: Message) -> None:
        """Whoever asks something gets a forged answer before the real one: its own numbers come back in a message of any related type."""
        if not self._types or self.random.random() > ANSWERED:
            return
        tag = _tag(message)
        related = [kind for kind in self._types if abs(_tag(kind) - tag) <= RELATED and kind is not LeaveAsk]
        kind, hot = self.random.choice(related or self._types), leaves_of(msgspec.to_builtins(message, builtin_types=(bytes,)))
        asyncio.get_running_loop().call_soon(self._answer, player, kind, hot)

    def _answer(self, player: Player, kind: type[Message], hot: list[Any]) -> None:
        self.shapes.hot = hot
        self.one(player, kind)
        self.shapes.hot = []

    def any_type(self) -> type[Message]:
        kind = self.random.choice(self._types)
        while kind is LeaveAsk and self.random.random() < 0.999:
            kind = self.random.choice(self._types)  # It asks an agent to leave, and the agent does: a few times is enough.
        return kind

    def one(self, target: Player, kind: type[Message]) -> None:
        """Forge a message, and let it in."""
        random, host = self.random, target.agent.host
        source = random.choice([each for each in self.players if each is not target or random.random() < 0.1] or self.players).agent
        body = self.shapes.message(kind)
        sender = random.choice(
            (source.me, source.me, source.me, NodeId(source.me.name, max(1, source.me.boot + random.choice((-1, 1, 1000)))), STRANGER)
        )
        life = random.choice((life_of(host.me),) * 20 + (0, 1, life_of(source.me)))
        fingerprint = host.node.digests.get(kind, b"") if random.random() < 0.98 else b"12345678"
        try:
            payload = msgspec.msgpack.encode((sender, life, fingerprint, body))
        except (OverflowError, UnicodeEncodeError):
            self.outcomes["(cannot be written)"] += 1
            return
        if len(payload) + self._sealer.overhead > 1200:
            self._enter(target, lambda: host._on_stream(payload))
        else:
            data, where = self._sealer.seal(payload, Channel.DATAGRAM), source.host.address
            self._enter(target, lambda: host.datagrams.deliver(data, where))
        self.last.append(f"{sender} -> {target.name}  {kind.__name__} {payload.hex()}")
        self.outcomes["(sent)"] += 1

    def _enter(self, target: Player, step: Callable[[], None]) -> None:
        target.agent.host.enter([step])

    async def _use(self, player: Player) -> None:
        """Take and give back, for ever."""
        random = Random(self.random.random())
        while True:
            await asyncio.sleep(CLIENT_PERIOD * random.random() * 2)
            for client in player.clients:
                player.agent.host.post(lambda client=client: self._step(client, random))  # type: ignore[misc]
            if player.viewer is not None:
                player.agent.host.post(lambda viewer=player.viewer: viewer.step(player.agent, random))  # type: ignore[misc]

    def _step(self, client: Client, random: Random) -> None:
        if random.random() < 0.2:
            self._look_around(client.agent, random)
        elif client.held and random.random() < 0.4:
            client.give_back(random.choice(list(client.held)))
        elif len(client.held) < 4:
            if random.random() < 0.5:
                client.ask("ticket", random.choice(POOLS), of=TICKETS, wait=random.random() < 0.8)
            else:
                client.ask("lead", random.choice(LEADS))

    def _look_around(self, agent: Agent, random: Random) -> None:
        """What people and programs ask beside: all of it reads what peers said."""
        pool, life = random.choice(POOLS), random.choice(self.players).agent.me
        features: Any = agent.features
        tickets, mail = features["tickets"].tickets, features["mail"].mail
        keys, probe = features["keys"].keys, features["probe"].probe
        steps: list[Callable[[], object]] = [
            lambda: tickets.read(pool, _ignore),
            lambda: tickets.abandon(pool, random.randrange(TICKETS), _ignore),
            lambda: [tickets.view(each) for each in tickets.pools()],
            lambda: mail.send(life, random.randbytes(random.choice((1, 900, 5000))), 1.0, _ignore),
            lambda: keys.ask("list", "", 1.0, _ignore),
            lambda: probe.ping(life, random.choice((0, 500, 3000)), _ignore),
            lambda: agent.broadcast.cast("user:news", b"x"),
            lambda: msgspec.json.encode((agent.info(), agent.view())),
            lambda: agent.owns(random.randbytes(2)),
            lambda: agent.set_tags({"load": str(random.random())}),
        ]
        try:
            random.choice(steps)()
        except HoldfastError:
            self.outcomes["(refused to a client)"] += 1

    async def recover(self) -> None:
        """Forged messages can spoil a pool: whoever has the key may write what an owner may. A new one, and new names, must work."""
        for task in self._clients:
            task.cancel()
        mine = {player.name: Client(player, 9) for player in self.players}
        served = set[str]()
        for round_ in range(int(RECOVERY)):
            for player in self.players:
                await player.look()
                for what in ("ticket", "lead"):
                    client, key = mine[player.name], f"{player.name}/{what}"
                    if key in served:
                        continue
                    client.counts.clear()
                    options = {"of": TICKETS} if what == "ticket" else {}
                    player.agent.host.post(lambda: client.ask(what, f"after-{round_ // 20}-{player.name}", **options))  # noqa: B023
                    for _ in range(20):
                        await asyncio.sleep(0.05)
                        if client.counts["granted"]:
                            served.add(key)
                            break
            if len(served) == 2 * len(self.players):
                return
        raise Misbehaved(f"{RECOVERY:.0f} s after the last forged message only these are served again: {sorted(served)}")

    async def until(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        end_at = time.monotonic() + seconds
        while not holds():
            for player in self.players:
                await player.look()
            if time.monotonic() > end_at:
                raise Misbehaved(f"never happened: {what}")
            await asyncio.sleep(0.05)

    @property
    def viewers(self) -> list[Viewer]:
        return [player.viewer for player in self.players if player.viewer is not None]

    def counted(self, player: Player, what: str) -> int:
        return sum(client.counts[what] for client in player.clients)

    def dropped(self, player: Player) -> None:
        for why, count in player.agent.host.drops.items():
            self.outcomes[why.value] += count
        unread = player.agent.features["views"].counts().get("views_not_for_this_part", 0)
        self.outcomes["(of views, for another part)"] += int(unread)

    async def close(self) -> None:
        for task in self._clients:
            task.cancel()
        for player in self.players:
            self.dropped(player)
            await player.close()


async def _run(messages: int, seed: int, rate: float, folder: Path, progress: TextIO | None) -> Counter[str]:
    fuzz = Fuzz(seed, folder)
    try:
        await fuzz.open()
        await fuzz.run(messages, rate, progress)
        await fuzz.recover()
    except Misbehaved as failure:
        shown = "\n".join(fuzz.last)
        raise Misbehaved(f"seed {seed}, after {fuzz.outcomes['(sent)']} messages: {failure}; the last ones:\n{shown}") from failure
    finally:
        await fuzz.close()
    fuzz.outcomes["(granted to clients)"] = sum(fuzz.counted(player, "granted") for player in fuzz.players)
    fuzz.outcomes["(holds lost)"] = sum(fuzz.counted(player, "lost") for player in fuzz.players)
    for what, count in sum((viewer.counts for viewer in fuzz.viewers), Counter[str]()).items():
        fuzz.outcomes[f"(views told: {what})"] = count
    return fuzz.outcomes


def run(messages: int, seed: int, *, rate: float = RATE, progress: TextIO | None = None) -> Counter[str]:
    """Forge so many messages. Raises ``Misbehaved``, or returns what became of them and of the clients."""
    with tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as folder:
        return asyncio.run(_run(messages, seed, rate, Path(folder), progress))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.agents", description="Forge messages of every type to three real agents.")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=RATE, help="messages a second: what is left of a core is the agents'")
    options = parser.parse_args(arguments)
    began_at = time.monotonic()
    try:
        outcomes = run(options.messages, options.seed, rate=options.rate, progress=sys.stderr)
    except Misbehaved as failure:
        sys.stdout.write(f"FAILED: {failure}\n")
        return 1
    lines = [f"{count:>9}  {outcome}" for outcome, count in sorted(outcomes.items())]
    head = f"{outcomes['(sent)']} messages, seed {options.seed}, {time.monotonic() - began_at:.0f} s: nothing but counted drops"
    sys.stdout.write("\n".join((f"{head}, and the group leads and gives tickets", *lines, "")))
    return 0


def _ignore(answer: object) -> None:
    """Whatever it was."""


def _tag(kind: type[Message] | Message) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


if __name__ == "__main__":
    sys.exit(main())
