"""What ``lab node`` does after its flags were read: resolve, lock, bind, run until told to stop.

The order is such that nothing is touched before everything that can be checked was checked: the flags first, then names, then
the state directory, then the port.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.cli.exits import CannotServe
from holdfast.disk.state import State
from holdfast.errors import AddressUnusable, ConfigError, KeyUnusable, shown
from holdfast.events import Event
from holdfast.features.ring.protocol.ids import RingId
from holdfast.host import FANOUT_MAX, Address, NodeId
from holdfast.host import Member as ListedMember
from holdfast.net.host import NetHost
from holdfast.net.resolve import Endpoint, Resolver, parse
from holdfast.papers.detection.protocol.omega import Omega
from holdfast.wire.codec import NAME_BYTES_MAX
from holdfast.wire.keys import Keyring, exposure, load_key
from holdfast.wire.seal import Plain, Sealed, Sealer

# Figure 3 waits for exactly two intervals, so that one lost OK and a delay are enough to demote; half an interval more is what a
# real network needs: 0.00025 instead of 0.011 demotions per OK at 1 % loss (measured with 2.05, three members).
PATIENCE = 2.5
NAMED_OTHERWISE = {"at": "nominal_at"}  # every line has an "at" of its own: when it was written


class Member(NamedTuple):
    """One node, as its flags describe it."""

    name: str
    bind: str
    advertise: str
    peers: dict[str, Endpoint]
    sealer: Sealer
    insecure: bool
    state_dir: Path | None
    interval: float


def parsed_name(name: str) -> str:
    if not (name.isprintable() and 0 < len(name.encode()) <= NAME_BYTES_MAX and not set(name) & set("=,")):
        raise ConfigError(f"--name {shown(name)}: accepted are 1 to {NAME_BYTES_MAX} bytes of printable text without = and ,")
    return name


def parsed_peers(text: str, me: str) -> dict[str, Endpoint]:
    """``a=HOST:PORT,b=HOST:PORT``. One's own name may be in it, so that all members can be given the same text."""
    peers: dict[str, Endpoint] = {}
    for part in text.split(",") if text else ():
        name, equals, address = part.strip().partition("=")
        if not equals or name in peers:
            why = "is listed twice" if equals else "has no address"
            raise ConfigError(f"--peers: {shown(name)} {why}; accepted is a=HOST:PORT,b=HOST:PORT")
        peers[parsed_name(name)] = parse(address)
    peers.pop(me, None)
    if len(peers) > FANOUT_MAX:
        raise ConfigError(f"--peers: {len(peers)} members; accepted are up to {FANOUT_MAX}, because one heartbeat reaches them all (F17)")
    return peers


def sealer_for(group: str, key_file: Path | None, *, insecure: bool) -> Sealer:
    if insecure and key_file is not None:
        raise ConfigError("--insecure with --key-file: give one of the two")
    if insecure:
        return Plain(group)
    if key_file is None:
        raise KeyUnusable("no key: give --key-file FILE, or --insecure for plaintext on loopback")
    sealer = Sealed(group, Keyring(load_key(key_file)))
    warning = exposure(key_file)
    if warning is not None:
        print(f"holdfast: {warning}", file=sys.stderr)
    return sealer


async def serve(member: Member) -> None:
    """Run until SIGTERM or SIGINT; both end it in good order."""
    bind = await resolved(parse(member.bind, listen=True), "--bind")
    advertise = await resolved(parse(member.advertise), "--advertise") if member.advertise else None
    peers = {name: await resolved(endpoint, f"--peers {name}") for name, endpoint in member.peers.items()}
    if member.insecure:
        check_loopback([bind, *peers.values()])
    with ExitStack() as stack:
        boot, storage = int(time.time() * 1000), None
        if member.state_dir is not None:
            state = State.open(member.state_dir)
            stack.callback(state.close)
            boot, storage = state.boot, state.journal
        me = NodeId(member.name, boot)
        try:
            host = await NetHost.open(me, bind, member.sealer, advertise=advertise, storage=storage)
        except AddressUnusable as error:
            raise CannotServe(f"--bind: {error}") from None
        await _run(host, {**peers, member.name: host.address}, member.interval)


async def _run(host: NetHost, members: dict[str, Address], interval: float) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    out = Lines(host.me, stop)
    host.on_event = out.event
    host.node.add(Omega(host, members, alpha=interval, patience=PATIENCE))
    out.line("Started", address=str(host.address), members=sorted(members), seed=host.seed)
    host.start()
    endings: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait()), host.failed]
    await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
    endings[0].cancel()
    await host.close()
    host.failed.result()  # A bug in a handler is shown as one: with its traceback.
    out.line("Stopped", drops={why.value: count for why, count in sorted(host.drops.items())})


class Lines:
    """Events as JSON lines. A reader that goes away ends the node: nobody would see what it says."""

    def __init__(self, me: NodeId, stop: asyncio.Event, *, now: Callable[[], float] = time.time) -> None:
        self._me, self._stop, self._now = me, stop, now

    def event(self, event: Event, **more: Any) -> None:
        fields = {NAMED_OTHERWISE.get(field, field): getattr(event, field) for field in event.__struct_fields__}
        self.line(type(event).__name__, **more, **fields)

    def line(self, event: str, **fields: Any) -> None:
        if sys.stdout is None:
            return
        plain = {name: _plain(value) for name, value in fields.items()}
        text = msgspec.json.encode({"at": round(self._now(), 6), "node": str(self._me), "event": event, **plain})
        try:
            print(text.decode(), flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._stop.set()


def _plain(value: Any) -> Any:
    """Identities as people write them; of a member, its identity."""
    if isinstance(value, ListedMember):
        return str(value.id)
    return str(value) if isinstance(value, NodeId | RingId) else value


async def resolved(endpoint: Endpoint, flag: str) -> Address:
    resolver = Resolver([endpoint])
    try:
        addresses = await resolver.start()
    except AddressUnusable as error:
        raise AddressUnusable(f"{flag}: {error}") from None
    finally:
        await resolver.close()
    return addresses[0]


def check_loopback(addresses: list[Address]) -> None:
    for address in addresses:
        if not ip_address(address.host).is_loopback:
            raise ConfigError(f"--insecure with {address}: plaintext is accepted on loopback (127.0.0.1, [::1]); elsewhere give --key-file")
