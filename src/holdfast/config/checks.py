"""The checks of the settings of the process, by what they look at.  Part of ``config``; docs/agent.md."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.config.addresses import check_literal, endpoint, is_loopback, is_unspecified
from holdfast.config.process import LocalSettings, PlaceSettings
from holdfast.errors import ConfigError, KeyUnusable, shown, shown_path

TAGS_MAX = 32
TAG_NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}")
TAG_BYTES_MAX = 200
TAGS_BYTES_MAX = 2048  # all together; a member publishes at most 3072 bytes, and topics and machines need some of them
SOCKET_PATH_BYTES_MAX = 107  # what the kernel has room for
TOKEN_BYTES_MIN, TOKEN_BYTES_MAX = 16, 512  # a token that can be guessed is none


def check_process(place: PlaceSettings, local: LocalSettings) -> None:
    """Raises ``ConfigError`` for the first setting that cannot be used. Reads the key file."""
    _check_names(place)
    _check_addresses(place)
    _check_http(local)
    _check_seats(place)
    _check_keys(place)


def check_tags(tags: Mapping[str, str]) -> None:
    """Raises ``ConfigError`` unless every agent can publish, store and show them."""
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


def _check_names(config: PlaceSettings) -> None:
    from holdfast.wire.codec import NAME_BYTES_MAX
    from holdfast.wire.seal import group_bytes

    group_bytes(config.group)
    if not config.name.isprintable() or len(config.name.encode()) > NAME_BYTES_MAX:
        raise ConfigError(
            f"name: {shown(config.name)}; accepted are up to {NAME_BYTES_MAX} bytes of printable text, or none to have one drawn"
        )


def _check_addresses(config: PlaceSettings) -> None:
    from holdfast.host import SEEDS_MAX

    check_literal("bind", config.bind)
    if config.advertise:
        endpoint("advertise", config.advertise)
    elif is_unspecified(config.bind):
        raise ConfigError(f"advertise: is not set, and bind {config.bind} does not say where peers reach this agent; give HOST:PORT")
    if len(config.seeds) > SEEDS_MAX:
        raise ConfigError(f"seeds: {len(config.seeds)} of them; accepted are at most {SEEDS_MAX}")
    for seed in config.seeds:
        endpoint("seeds", seed)


def _check_http(config: LocalSettings) -> None:
    if config.http:
        check_literal("http", config.http)
        if not is_loopback(config.http) and not config.http_token_file:
            raise ConfigError(f"http: {config.http} is beyond loopback; set http_token_file as well, or bind it to 127.0.0.1")


def _check_seats(config: PlaceSettings) -> None:
    from holdfast.host import Address
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


def _check_keys(config: PlaceSettings) -> None:
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
            f"bind: {config.bind} is beyond loopback and there is no key; set key_file, or insecure if any machine may read and join"
        )


def check_files(config: LocalSettings, state_dir: str) -> None:
    """Raises ``ConfigError`` for a path that cannot be used. Reads the token file."""
    if len(os.fsencode(config.socket)) > SOCKET_PATH_BYTES_MAX:
        raise ConfigError(f"socket: {shown(config.socket)}; accepted are paths of up to {SOCKET_PATH_BYTES_MAX} bytes")
    if config.socket_mode & ~0o777 or config.socket_mode & 0o600 != 0o600:
        raise ConfigError(f"socket_mode: {config.socket_mode:#o}; accepted are 0600 to 0777, always with 0600 in it")
    for field, path in (("socket", config.socket), ("state_dir", state_dir), ("http_token_file", config.http_token_file)):
        if not path.isprintable():
            raise ConfigError(f"{field}: {shown(path)}; accepted is a path of printable text")
    if config.http_token_file:
        read_token(config.http_token_file)
