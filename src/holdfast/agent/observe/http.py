"""The optional HTTP side of an agent: read API, metrics, events, the page.  docs/http.md.

Starlette and uvicorn are an extra. They are imported when an agent is told to serve HTTP, and an agent without it never pays for them.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from types import ModuleType
from typing import TYPE_CHECKING

from holdfast.agent.observe.http_extra import MISSING, PACKAGES
from holdfast.agent.observe.http_guard import accepted_hosts
from holdfast.config import read_token
from holdfast.errors import AddressUnusable, ConfigError, ExtraMissing
from holdfast.host import Address
from holdfast.net.bind import why_not
from holdfast.net.resolve import parse

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent
    from holdfast.agent.observe.http_app import Service

BACKLOG = 256  # connections that wait for an accept; the kernel keeps them


class HttpServer:
    """One HTTP server on the agent's loop: ``await HttpServer.start(agent)``, ``await server.close()``."""

    def __init__(self, address: Address, service: Service) -> None:
        self.address = address
        self._service = service

    @staticmethod
    def load() -> type[Service]:
        """Import what serving needs. Raises ExtraMissing when the extra is missing."""
        try:
            with _hollow_ssl():
                from holdfast.agent.observe.http_app import Service
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in PACKAGES:
                raise
            raise ExtraMissing(MISSING) from None
        return Service

    @classmethod
    async def start(cls, agent: Agent) -> HttpServer:
        """Serve what ``config.http`` says. Raises ConfigError when the token is unusable or the port taken, ExtraMissing before that."""
        service_of = cls.load()
        token = read_token(agent.config.http_token_file).encode() if agent.config.http_token_file else None
        where = parse(agent.config.http, listen=True).literal
        assert where is not None, "the configuration was checked"
        loopback = ip_address(where.host).is_loopback
        if not loopback and token is None:
            raise ConfigError(f"http: {where} is beyond loopback; set http_token_file as well, or bind it to 127.0.0.1")
        listener, address = listen(where)
        service = service_of(agent, hosts=accepted_hosts(address.host) if loopback else None, token=token)
        try:
            await service.start(listener)
        except BaseException:
            listener.close()
            raise
        return cls(address, service)

    @property
    def url(self) -> str:
        return f"http://{self.address}/"

    async def close(self) -> None:
        """End every stream, let answers that have begun leave, close the port."""
        await self._service.close()


@contextmanager
def _hollow_ssl() -> Iterator[None]:
    """``ssl`` as uvicorn needs it: two constants. This server has no TLS, and OpenSSL takes 4 MiB (see ``lean``)."""
    if "ssl" in sys.modules:
        yield
        return
    hollow = ModuleType("ssl")
    hollow.__dict__.update(PROTOCOL_TLS_SERVER=16, CERT_NONE=0)
    sys.modules["ssl"] = hollow
    try:
        yield
    finally:
        del sys.modules["ssl"]  # The next import gets the real one.


def listen(where: Address) -> tuple[socket.socket, Address]:
    """The listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((where.host, where.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressUnusable(f"http: cannot listen on {where}: {why_not(error, where, ('tcp',))}") from None
    return listener, Address(where.host, listener.getsockname()[1])
