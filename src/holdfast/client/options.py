"""What ``join`` may be told, and what follows from it: which agent, where, with which settings.  Spec: foundation F12.

Three ways, tried in this order. ``agent=`` or HOLDFAST_AGENT names a socket: attach there. Without seeds, key and network there is one
agent of the group per machine: attach to it, or start it. Otherwise this process gets an agent of its own, as a child.
"""

from __future__ import annotations

import os
import socket
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.client import checks
from holdfast.client.logs import wanted_level, warn_of
from holdfast.config import (
    ARGUMENTS,
    default_socket,
    endpoint,
    load_with_sources,
    private_directory,
    runtime_dir,
    unknown_variables,
)
from holdfast.host import Address

ANYWHERE = "127.0.0.1:0"  # on this machine, at a port that is free


class Options(Struct, frozen=True, kw_only=True):
    """The arguments of ``join``."""

    group: str = ""
    seeds: Sequence[str] = ()
    key: str | bytes | None = None
    name: str = ""
    tags: Mapping[str, str] | None = None
    agent: str | Path | None = None
    preset: str = ""
    membership: str = ""
    bind: str = ""
    advertise: str = ""
    seats: Sequence[str] = ()
    state_dir: str | Path = ""
    config: str | Path | None = None
    insecure: bool = False
    http: str = ""


def checked(
    *, group: Any, seeds: Any, key: Any, name: Any, tags: Any, agent: Any, preset: Any, membership: Any, bind: Any, advertise: Any,
    seats: Any, state_dir: Any, config: Any, insecure: Any, http: Any,
) -> Options:  # fmt: skip
    """The arguments of ``join``, each of the type it must have; what they mean together is for ``make_plan``."""
    return Options(
        group=checks.group(group), seeds=checks.addresses(seeds, "seeds"), key=checks.group_key(key), name=checks.setting(name, "name"),
        tags=checks.first_tags(tags), agent=checks.path(agent, "agent"), preset=checks.setting(preset, "preset"),
        membership=checks.setting(membership, "membership"), bind=checks.setting(bind, "bind"),
        advertise=checks.setting(advertise, "advertise"), seats=checks.addresses(seats, "seats"),
        state_dir=checks.path(state_dir, "state_dir"), config=checks.path(config, "config"),
        insecure=checks.flag(insecure, "insecure"), http=checks.setting(http, "http"),
    )  # fmt: skip


class Plan(Struct, frozen=True):
    """Where the agent is, and how one is started if it is not there."""

    path: str  # of its socket
    group: str  # "" if whatever the agent has is right
    name: str
    attach: bool = True  # it may be there already
    settings: dict[str, Any] | None = None  # for starting one; None: that is not for us to do
    config: str = ""  # a file of settings below these
    guessed: bool = False  # we chose where it binds
    seeds: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()  # addresses that we chose and that another process has
    named_by: str = ""  # what named the socket, if the caller did: then no other agent will do

    @property
    def shared(self) -> bool:
        """Other processes of this machine use the same agent."""
        return self.attach and self.settings is not None

    def elsewhere(self) -> Plan:
        """The address we had chosen was taken by a quicker process, which may not listen there yet: perhaps the next seed is
        free, else any port."""
        assert self.settings is not None
        taken = (*self.taken, self.settings["bind"])
        bind = choose_bind(self.seeds, taken)
        guessed = not bind.endswith(":0")
        where = bind if guessed else f"{taken[-1].rpartition(':')[0]}:0"
        return replace(self, settings={**self.settings, "bind": where}, guessed=guessed, taken=taken)

    def again(self) -> Plan:
        """For another start: a private socket is used once."""
        if self.attach or self.settings is None:
            return self
        path = _private_socket()
        return replace(self, path=path, settings={**self.settings, "socket": path})


def make_plan(options: Options, environ: Mapping[str, str]) -> Plan:
    """Raises ``ConfigError`` for what an agent would refuse, before anything is started. May ask the resolver about seeds."""
    warn_of(unknown_variables(environ))
    path = options.agent or environ.get("HOLDFAST_AGENT")
    if path:
        return Plan(str(path), options.group, options.name, named_by="agent=" if options.agent else "HOLDFAST_AGENT")
    settings = given(options)
    file = str(options.config or environ.get("HOLDFAST_CONFIG") or "")
    config, sources = load_with_sources(file or None, environ, settings, source=ARGUMENTS)
    guessed = "bind" not in sources
    if guessed:
        settings["bind"] = choose_bind(config.seeds)
        config = load_with_sources(file or None, environ, settings, source=ARGUMENTS)[0]
    if "log_level" not in sources:
        settings["log_level"] = wanted_level()  # The program's log drops the others.
    if config.alone:
        where = config.socket or str(default_socket(config.group, environ))
        settings["socket"] = where
        return Plan(where, config.group, options.name, True, settings, file, guessed, config.seeds)
    settings["socket"] = where = _private_socket(environ)
    return Plan(where, config.group, options.name, False, settings, file, guessed, config.seeds)


def given(options: Options) -> dict[str, Any]:
    """The settings among the arguments, as a file would name them; what was not given is left to file and environment."""
    texts = {
        field: str(getattr(options, field)) for field in ("group", "name", "preset", "membership", "bind", "advertise", "state_dir", "http")
    }
    found: dict[str, Any] = {field: text for field, text in texts.items() if text}
    for field in ("seeds", "seats"):
        if value := getattr(options, field):
            found[field] = list(value)
    if options.tags:
        found["tags"] = dict(options.tags)
    if options.key:
        found["key"] = options.key if isinstance(options.key, str) else b64encode(options.key).decode()
    if options.insecure:
        found["insecure"] = True
    return found


def choose_bind(seeds: Sequence[str], taken: Sequence[str] = ()) -> str:
    """Where an agent listens that was told nothing but its seeds: as one of them, if that is an address of this machine, free, and not
    known to be taken; else at the address from which the first seed is reached."""
    places = [place for seed in seeds if (place := _resolved(seed)) is not None]
    for place in places:
        if str(place) not in taken and _is_ours_and_free(place):
            return str(place)
    for place in places:
        with suppress(OSError), socket.socket(_family(place), socket.SOCK_DGRAM) as probe:
            probe.connect(place)  # Sends nothing; the kernel looks up the way.
            return str(Address(probe.getsockname()[0], 0))
    return ANYWHERE


def _resolved(seed: str) -> Address | None:
    host, port = endpoint("seeds", seed)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError:
        return None  # The agent asks again and again; we only want to know where to listen.
    return Address(str(found[0][4][0]), int(found[0][4][1]))


def _is_ours_and_free(place: Address) -> bool:
    try:
        with socket.socket(_family(place), socket.SOCK_DGRAM) as udp, socket.socket(_family(place), socket.SOCK_STREAM) as tcp:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            udp.bind(place)
            tcp.bind(place)
    except OSError:
        return False
    return True


def _family(place: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in place.host else socket.AF_INET


def _private_socket(environ: Mapping[str, str] | None = None) -> str:
    """In the directory that only this user can enter."""
    return str(private_directory(runtime_dir(environ)) / f"{os.getpid()}-{token_hex(4)}.sock")
