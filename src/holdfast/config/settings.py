"""One frozen Config: every setting of an agent, checked before a socket opens.  docs/agent.md lists them.

A setting has one name everywhere: ``lease`` in the TOML file, ``HOLDFAST_LEASE`` in the environment, ``--lease`` as a flag. A flag
beats the environment, that beats the file, that the preset, that the default. What is wrong is one ``ConfigError`` that names the setting,
its value, what is accepted and where the value came from.

Reading this module is cheap, because every command does; what only a check needs is imported by the check.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import fields, force_setattr

from holdfast.config.readers import READERS, read_file, unknown
from holdfast.disk.places import default_socket, group_file, private_directory, runtime_dir
from holdfast.errors import ConfigError, KeyUnusable, shown, shown_path
from holdfast.host import Address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.features.leadership.protocol.leadership import LeadershipConfig
    from holdfast.features.ring.protocol.config import RingConfig

__all__ = [
    "Config", "PRESETS", "Timing", "load", "load_with_sources", "check_tags", "read_token", "is_loopback", "endpoint",
    "unknown_variables", "runtime_dir", "private_directory", "group_file", "default_socket",
]  # fmt: skip

ENVIRONMENT = "HOLDFAST_"
FLAGS, ARGUMENTS = "flags", "arguments"  # where settings may come from beside file and environment
PORT_MAX = 65_535
TAGS_MAX = 32
TAG_NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}")
TAG_BYTES_MAX = 200
TAGS_BYTES_MAX = 2048  # all together; a member publishes at most 3072 bytes, and topics and machines need some of them
SOCKET_PATH_BYTES_MAX = 107  # what the kernel has room for
TOKEN_BYTES_MIN, TOKEN_BYTES_MAX = 16, 512  # a token that can be guessed is none
HEARTBEAT_MIN, HEARTBEAT_MAX = 0.1, 60.0  # seconds; fast-detection 4
SECONDS = {
    "heartbeat": (HEARTBEAT_MIN, HEARTBEAT_MAX),
    "ticket_lease": (0.2, 60.0),
    "ticket_round": (0.05, 10.0),
}  # the ring knows its own
TICKET_K_MAX, TICKET_K_RING = 3, 2  # the most, and what "ring" gets unless it is told otherwise (tickets 4, D27)
NOT_GIVEN = -1  # 0 is a number that somebody may want
LONGEST_GRANT_MAX = 3600.0  # seconds that a seat without a journal may make everybody wait
TERM_HEARTBEATS = 1.5  # fast-detection D26: length of a term, in heartbeats, beside the grace that was asked for
HIDDEN = "(hidden)"


class Timing(NamedTuple):
    """What a preset says, in seconds."""

    lease: float  # T_l
    arbitration: float  # T_a
    heartbeat: float  # t_itv
    ticket_lease: float  # D
    ticket_round: float  # T
    longest_grant: float  # no promise of a seat is longer, and a fresh seat waits so long once (F13)


PRESETS = {
    "lan": Timing(1.0, 0.5, 1.0, 2.0, 0.5, 5.0),
    "wan": Timing(4.0, 2.0, 4.0, 8.0, 2.0, 60.0),
    "local": Timing(0.4, 0.2, 0.3, 1.0, 0.2, 3.0),
}
CHOICES = {
    "preset": tuple(PRESETS),
    "ticket_guardians": ("seats", "ring"),
    "membership": ("ring",),
    "log_level": ("debug", "info", "warning", "error"),
    "log_format": ("auto", "json", "text"),
}


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one agent. A timing of 0.0 comes from the preset, stretched as far as a lease that was given."""

    group: str = "default"
    name: str = ""
    bind: str = "127.0.0.1:7946"
    advertise: str = ""
    seeds: tuple[str, ...] = ()
    seats: tuple[str, ...] = ()
    key_file: str = ""
    key: str = ""
    insecure: bool = False
    state_dir: str = ""
    preset: str = "lan"
    lease: float = 0.0  # T_l
    arbitration: float = 0.0  # T_a
    heartbeat: float = 0.0  # t_itv
    ticket_lease: float = 0.0  # D
    ticket_round: float = 0.0  # T
    ticket_guardians: str = "seats"
    ticket_k: int = NOT_GIVEN  # of a ticket's guardians so many may be lost, with "ring"; with "seats" their number says it
    longest_grant: float = 0.0
    k: int = 3
    rho: float = 0.001
    margin: float = 0.01
    tags: Mapping[str, str] = {}
    socket: str = ""
    socket_mode: int = 0o600
    http: str = ""
    http_token_file: str = ""
    log_level: str = "info"
    log_format: str = "auto"  # text in a terminal, JSON elsewhere
    membership: str = "ring"
    moved: bool = False

    def __post_init__(self) -> None:
        timing, longest_given = PRESETS.get(self.preset), self.longest_grant != 0
        if timing is not None:
            stretched = self.lease / timing.lease if self.lease > 0 else 1.0
            for field, seconds in timing._asdict().items():
                if getattr(self, field) == 0:
                    least, most = SECONDS.get(field, (0.0, LONGEST_GRANT_MAX))  # a ring may be quicker than elections can be
                    force_setattr(self, field, min(max(seconds * stretched, least), most))
            if not longest_given:  # What is held without a grace always fits, whatever lengths were given.
                force_setattr(self, "longest_grant", max(self.longest_grant, self.longest_grant_min))
        if self.ticket_guardians == "ring" and self.ticket_k == NOT_GIVEN:
            force_setattr(self, "ticket_k", TICKET_K_RING)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.shown().items())})"

    @property
    def has_key(self) -> bool:
        return bool(self.key or self.key_file)

    @property
    def alone(self) -> bool:
        """F12: without seeds, key and network there is one agent of the group per machine, and it is its own seat."""
        return not (self.seeds or self.seats or self.has_key) and is_loopback(self.bind)

    def shown(self) -> dict[str, Any]:
        """Every setting by name, without secrets."""
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "key": HIDDEN if self.key else ""}

    @property
    def longest_grant_min(self) -> float:
        """What is held without a grace must fit, or nothing could be held at all."""
        return max(self.term_length(0.0), self.ticket_lease)

    def term_length(self, grace: float) -> float:
        """How long a leader asks its seats to promise (L): what outlives one lost heartbeat, and the grace on top of it."""
        return TERM_HEARTBEATS * self.heartbeat + grace

    def leadership_config(self) -> LeadershipConfig:
        """The numbers of leadership."""
        from holdfast.features.leadership.protocol.leadership import LeadershipConfig

        return LeadershipConfig(t_itv=self.heartbeat, rho=self.rho)

    def ring_config(self, seeds: Sequence[Address] = ()) -> RingConfig:
        """The numbers of the ring. Raises ``ConfigError`` naming the field."""
        from holdfast.features.ring.protocol.config import RingConfig

        return RingConfig(lease=self.lease, arbitration=self.arbitration, rho=self.rho, margin=self.margin, k=self.k, seeds=tuple(seeds))

    def check(self) -> None:
        """Raises ``ConfigError`` for the first setting that cannot be used. Reads files; opens no socket, changes nothing."""
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                raise ConfigError(f"{field}: {shown(getattr(self, field))}; accepted are {', '.join(choices)}")
        _check_names(self)
        _check_addresses(self)
        _check_seats(self)
        _check_keys(self)
        self.ring_config()
        for field, (least, most) in SECONDS.items():
            if not least <= (value := getattr(self, field)) <= most:
                raise ConfigError(f"{field}: {shown(value)}; accepted are {least:g} to {most:g} seconds")
        if 4 * self.ticket_round > self.ticket_lease:  # three rounds in a row may get lost
            raise ConfigError(
                f"ticket_round: {shown(self.ticket_round)}; accepted is at most a quarter of ticket_lease ({self.ticket_lease:g} s)"
            )
        _check_guardians(self)
        _check_longest(self)
        check_tags(self.tags)
        _check_files(self)


def load(path: str | Path | None = None, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None) -> Config:
    """The settings of a TOML file, the environment and the flags, checked."""
    return load_with_sources(path, environ, overrides)[0]


def load_with_sources(
    path: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    source: str = FLAGS,
) -> tuple[Config, dict[str, str]]:
    """The same, and for each setting that was given, where. ``source`` says what the overrides are: FLAGS, or ARGUMENTS of a program."""
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    file = {} if path is None else read_file(Path(path))
    for values, named in ((file, f"{path}"), (_of_environ(environ or {}), ""), (overrides or {}, source)):
        given = {field: value for field, value in values.items() if value is not None}  # else a flag that was not given
        for one, other in (("key", "key_file"), ("key_file", "key")):
            if given.get(one) and not given.get(other):  # Two spellings of one setting: the later source says which key it is.
                found.pop(other, None)
                sources.pop(other, None)
        for field, value in given.items():
            where = named or ENVIRONMENT + field.upper()
            found[field] = _read(field, value, where)
            sources[field] = where
    config = Config(**found)
    try:
        config.check()
    except ConfigError as error:
        field = str(error).partition(":")[0].split(" ")[0]
        if field not in sources:
            raise
        raise type(error)(f"{error}{_origin(sources[field])}") from None
    return config, sources


def is_loopback(where: str) -> bool:
    """Nobody beyond this machine can reach it."""
    host = _split(where)[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_tags(tags: Mapping[str, str]) -> None:
    """Raises ``ConfigError`` unless everybody can publish, store and show them."""
    if len(tags) > TAGS_MAX:
        raise ConfigError(f"tags: {len(tags)} of them; accepted are at most {TAGS_MAX}")
    for name, value in tags.items():
        if not TAG_NAME.fullmatch(name):
            raise ConfigError(f"tags: {shown(name)} is no name of a tag; accepted are 1 to 32 of A-Z a-z 0-9 _ . -")
        if not value.isprintable() or len(value.encode()) > TAG_BYTES_MAX:
            raise ConfigError(f"tags: the value {shown(value)} of {name}; accepted are up to {TAG_BYTES_MAX} bytes of printable text")
    if (total := sum(len(name) + len(value.encode()) for name, value in tags.items())) > TAGS_BYTES_MAX:
        raise ConfigError(f"tags: {total} bytes in all; accepted are at most {TAGS_BYTES_MAX}")


def read_token(path: str) -> str:
    """The bearer token in a file: one word that cannot be guessed."""
    try:
        with Path(path).open("rb") as file:
            token = file.read(TOKEN_BYTES_MAX + 2).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"http_token_file: {shown_path(path)}: {getattr(error, 'strerror', None) or 'is no path'}") from None
    if not TOKEN_BYTES_MIN <= len(token) <= TOKEN_BYTES_MAX or re.fullmatch(rb"[!-~]+", token) is None:
        raise ConfigError(
            f"http_token_file: {shown_path(path)} holds no token; "
            f"accepted is one word of {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} ASCII characters"
        )
    return token.decode("ascii")


# The checks, by what they look at.


def _check_names(config: Config) -> None:
    from holdfast.wire.codec import NAME_BYTES_MAX
    from holdfast.wire.seal import group_bytes

    group_bytes(config.group)
    if not config.name.isprintable() or len(config.name.encode()) > NAME_BYTES_MAX:
        raise ConfigError(
            f"name: {shown(config.name)}; accepted are up to {NAME_BYTES_MAX} bytes of printable text, or none to have one drawn"
        )


def _check_addresses(config: Config) -> None:
    from holdfast.host import SEEDS_MAX

    _literal("bind", config.bind)
    if config.advertise:
        endpoint("advertise", config.advertise)
    elif ip_address(_split(config.bind)[0]).is_unspecified:
        raise ConfigError(f"advertise: is not set, and bind {config.bind} does not say where peers reach this agent; give HOST:PORT")
    if len(config.seeds) > SEEDS_MAX:
        raise ConfigError(f"seeds: {len(config.seeds)} of them; accepted are at most {SEEDS_MAX}")
    for seed in config.seeds:
        endpoint("seeds", seed)
    if config.http:
        _literal("http", config.http)
        if not is_loopback(config.http) and not config.http_token_file:
            raise ConfigError(f"http: {config.http} is beyond loopback; set http_token_file as well, or bind it to 127.0.0.1")


def _check_seats(config: Config) -> None:
    from holdfast.kit.slots import find_slots, literal, own_slot

    if not config.seats:
        return
    own = literal(config.advertise or config.bind) or Address("", 0)
    slots = find_slots(seats=config.seats, seeds=(), key=True, loopback=False, own_name=config.name, own_address=own)
    number = own_slot(slots, config.name, own)
    if number is not None and not config.state_dir:
        raise ConfigError(
            f"state_dir: is not set, and this agent is seat {slots[number]}: a seat must remember what it promised; give a directory"
        )


def _check_guardians(config: Config) -> None:
    """H140: a number that would be ignored is refused."""
    if config.ticket_guardians == "seats":
        if config.ticket_k != NOT_GIVEN:
            raise ConfigError(
                f'ticket_k: {config.ticket_k}, and ticket_guardians is "seats", where the number of seats decides; '
                'accepted is none, or ticket_guardians = "ring" as well'
            )
    elif not 0 <= config.ticket_k <= TICKET_K_MAX:
        raise ConfigError(f"ticket_k: {config.ticket_k}; accepted are 0 to {TICKET_K_MAX}")


def _check_longest(config: Config) -> None:
    least = config.longest_grant_min
    if not least <= config.longest_grant <= LONGEST_GRANT_MAX:
        raise ConfigError(
            f"longest_grant: {shown(config.longest_grant)}; accepted are {least:g} to {LONGEST_GRANT_MAX:g} seconds: "
            f"{TERM_HEARTBEATS:g} heartbeats and a ticket's lease must fit"
        )


def _check_keys(config: Config) -> None:
    from holdfast.wire.keys import load_keyring, parse_key

    if config.key and config.key_file:
        raise ConfigError("key_file: a key was given as well; give one of the two")
    if config.key_file:
        try:
            load_keyring(config.key_file)
        except KeyUnusable as error:
            told = str(error).replace(config.key_file, shown_path(config.key_file))
            raise KeyUnusable(f"key_file: {told}") from None
    if config.key:
        parse_key(config.key)
    if config.insecure and config.has_key:
        raise ConfigError("insecure: is set together with a key; accepted is one of the two")
    if not config.has_key and not config.insecure and not is_loopback(config.bind):
        raise ConfigError(
            f"bind: {config.bind} is beyond loopback and there is no key; set key_file, or insecure if everybody may read and join"
        )


def _check_files(config: Config) -> None:
    if len(os.fsencode(config.socket)) > SOCKET_PATH_BYTES_MAX:
        raise ConfigError(f"socket: {shown(config.socket)}; accepted are paths of up to {SOCKET_PATH_BYTES_MAX} bytes")
    if config.socket_mode & ~0o777 or config.socket_mode & 0o600 != 0o600:
        raise ConfigError(f"socket_mode: {config.socket_mode:#o}; accepted are 0600 to 0777, always with 0600 in it")
    for field in ("socket", "state_dir", "http_token_file"):
        if not getattr(config, field).isprintable():
            raise ConfigError(f"{field}: {shown(getattr(config, field))}; accepted is a path of printable text")
    if config.http_token_file:
        read_token(config.http_token_file)


def endpoint(field: str, text: str, *, listen: bool = False) -> tuple[str, int]:
    """``HOST:PORT``, the host a name or an address, IPv6 in brackets."""
    host, port = _split(text)
    low = 0 if listen else 1
    if not host or any(c.isspace() or not c.isprintable() for c in host) or not (port.isascii() and port.isdigit()):
        raise ConfigError(f'{field}: {shown(text)}; accepted are "10.0.0.5:7946", "[::1]:7946" and "name.example.org:7946"')
    if len(port) > 5 or not low <= int(port) <= PORT_MAX:
        raise ConfigError(f"{field}: {shown(text)}; the port must lie between {low} and {PORT_MAX}")
    return host, int(port)


def _literal(field: str, text: str) -> Address:
    host, port = endpoint(field, text, listen=True)
    try:
        ip_address(host)
    except ValueError:
        raise ConfigError(
            f"{field}: {shown(text)}; accepted are addresses of this machine: 127.0.0.1:PORT, 0.0.0.0:PORT, [::1]:PORT"
        ) from None
    return Address(host, port)


def _split(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return (host, rest[1:]) if rest.startswith(":") and ":" in host else ("", "")
    host, _, port = text.rpartition(":")
    return ("", "") if ":" in host else (host, port)


# Reading.


def _of_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Other variables that begin alike may belong to another program; ``unknown_variables`` names those that do not."""
    names = {ENVIRONMENT + field.name.upper(): field.name for field in fields(Config)}
    return {names[variable]: value for variable, value in environ.items() if variable in names}


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """One line for each variable that looks like a setting and is none, with the nearest name: a typing error is not a default."""
    return unknown(environ, ENVIRONMENT, [field.upper() for field in DEFAULTS])


def _origin(where: str, word: str = "from") -> str:
    """The author of an argument knows where it is."""
    return "" if where == ARGUMENTS else f" ({word} {where})"


def _read(field: str, value: Any, where: str) -> Any:
    default = DEFAULTS.get(field)
    if default is None:
        raise ConfigError(f"{shown(field)[1:-1]}: no such setting{_origin(where, 'in')}; accepted are {', '.join(DEFAULTS)}")
    accepted, reader = READERS[_kind(field, default)]
    try:
        return reader(value)
    except (ValueError, TypeError, AttributeError):
        told = HIDDEN if field == "key" else shown(value)
        raise ConfigError(f"{field}: {told}; accepted is {accepted}{_origin(where)}") from None


def _kind(field: str, default: Any) -> str:
    return "mode" if field == "socket_mode" else "table" if field == "tags" else type(default).__name__


DEFAULTS: dict[str, Any] = {field.name: {} if field.name == "tags" else field.default for field in fields(Config)}
