"""What ``lab node`` does after its flags were read: resolve, lock, bind, run until told to stop.

The order is such that nothing is touched before everything that can be checked was checked: the flags first, then names, then
the state directory, then the port.
"""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.cli.exits import CannotServe
from holdfast.cli.lab.sockets import Lines, check_loopback, parsed_name, resolved
from holdfast.disk.state_directory import State
from holdfast.errors import AddressUnusable, ConfigError, shown
from holdfast.host import FANOUT_MAX, Address, NodeId
from holdfast.net.host import NetHost
from holdfast.net.resolve import Endpoint, parse
from holdfast.papers.detection.protocol.omega import Omega
from holdfast.wire.seal import Sealer

# Figure 3 waits for exactly two intervals, so that one lost OK and a delay are enough to demote; half an interval more is what a
# real network needs: 0.00025 instead of 0.011 demotions per OK at 1 % loss (measured with 2.05, three members).
PATIENCE = 2.5


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
