"""What members on real sockets share, whatever protocol they run: names, keys and addresses from flags, and what they print."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import AddressUnusable, ConfigError, KeyUnusable, shown
from holdfast.events import Event
from holdfast.host import Address, Member, NodeId
from holdfast.net.resolve import Endpoint, Resolver
from holdfast.wire.codec import NAME_BYTES_MAX
from holdfast.wire.keys import Keyring, exposure, load_key
from holdfast.wire.seal import Plain, Sealed, Sealer

NAMED_OTHERWISE = {"at": "nominal_at"}  # every line has an "at" of its own: when it was written


def parsed_name(name: str) -> str:
    if not (name.isprintable() and 0 < len(name.encode()) <= NAME_BYTES_MAX and not set(name) & set("=,")):
        raise ConfigError(f"--name {shown(name)}: accepted are 1 to {NAME_BYTES_MAX} bytes of printable text without = and ,")
    return name


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


class Lines:
    """Events as JSON lines. A reader that goes away ends the node: its lines would not be read."""

    texts: tuple[type, ...] = (NodeId,)  # identities, told as people write them

    def __init__(self, me: NodeId, stop: asyncio.Event, *, now: Callable[[], float] = time.time) -> None:
        self._me, self._stop, self._now = me, stop, now

    def event(self, event: Event, **more: Any) -> None:
        fields = {NAMED_OTHERWISE.get(field, field): getattr(event, field) for field in event.__struct_fields__}
        self.line(type(event).__name__, **more, **fields)

    def line(self, event: str, **fields: Any) -> None:
        if sys.stdout is None:
            return
        plain = {name: self._plain(value) for name, value in fields.items()}
        text = msgspec.json.encode({"at": round(self._now(), 6), "node": str(self._me), "event": event, **plain})
        try:
            print(text.decode(), flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._stop.set()

    def _plain(self, value: Any) -> Any:
        """Of a member, its identity."""
        if isinstance(value, Member):
            return str(value.id)
        return str(value) if isinstance(value, self.texts) else value


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
