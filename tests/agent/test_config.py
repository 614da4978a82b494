"""The settings: one name everywhere, who beats whom, and what is refused with which words."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from holdfast.cli.agent_call import socket_path
from holdfast.cli.run.hold_flags import kinds
from holdfast.client.options import Options, make_plan
from holdfast.config import (
    ARGUMENTS,
    DEFAULTS,
    PRESETS,
    Config,
    Timing,
    default_socket,
    is_loopback,
    load,
    load_with_sources,
    private_directory,
    read_token,
    runtime_dir,
    unknown_variables,
)
from holdfast.config.readers import UNKNOWN_MAX
from holdfast.errors import ConfigError, KeyUnusable, StorageError
from holdfast.local.family import MARK_NAME
from holdfast.wire.keys import generate

KEY = generate()


def file_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "holdfast.toml"
    path.write_text(text)
    return path


def test_flag_beats_environment_beats_file_beats_preset_beats_default(tmp_path: Path) -> None:
    """One order for all settings, and each value knows where it came from."""
    path = file_of(tmp_path, 'preset = "wan"\nlease = 3.0\nticket_lease = 7.0\nk = 4\ngroup = "f"\n')
    environ = {"HOLDFAST_LEASE": "2.5", "HOLDFAST_GROUP": "e", "HOLDFAST_ARBITRATION": "1.5"}
    config, sources = load_with_sources(path, environ, {"group": "flag", "name": None})
    assert (config.group, config.lease, config.ticket_lease, config.k, config.arbitration) == ("flag", 2.5, 7.0, 4, 1.5)
    assert config.rho == 0.001
    assert sources == {
        "preset": str(path), "lease": "HOLDFAST_LEASE", "ticket_lease": str(path), "k": str(path), "group": "flags",
        "arbitration": "HOLDFAST_ARBITRATION",
    }  # fmt: skip


@pytest.mark.parametrize(
    "preset, timing",
    [
        ("lan", (1, 0.5, 1, 2, 0.5, 5, 0.25, 0.5)),
        ("wan", (4, 2, 4, 8, 2, 60, 1.0, 1.0)),
        ("local", (0.4, 0.2, 0.3, 1, 0.2, 3, 0.1, 0.25)),
    ],
    ids=str,
)
def test_presets(preset: str, timing: tuple[float, ...]) -> None:
    """Each preset names T_l, T_a, t_itv, D, T, the longest grant, T of gossip, the heartbeat of views, the epoch of limits; a ring gets its
    part, and T of gossip stays 0 there."""
    config = load(overrides={"preset": preset})
    assert tuple(getattr(config, field) for field in Timing._fields if field not in ("probe", "election_hold")) == timing
    assert (config.election_hold, PRESETS[preset].election_hold) == (0.0, 2 * PRESETS[preset].probe)  # type: ignore[attr-defined]
    assert (config.probe, PRESETS[preset].probe) == (0.0, {"lan": 1.0, "wan": 5.0, "local": 0.2}[preset])  # type: ignore[attr-defined]
    assert (config.ring_config().lease, config.ring_config().t_a) == timing[:2]
    assert set(PRESETS) == {"lan", "wan", "local"}


def test_a_lease_stretches_the_preset() -> None:
    """H40: what is not given keeps its proportion to the lease, so that one number makes everything slower."""
    config = load(overrides={"preset": "lan", "lease": 2.0, "ticket_round": 0.7})
    assert (config.arbitration, config.heartbeat, config.ticket_lease, config.ticket_round) == (1.0, 2.0, 4.0, 0.7)
    assert config.longest_grant == 10.0
    assert load(overrides={"preset": "lan", "heartbeat": 6.0}).longest_grant == 9.0  # a term without a grace always fits
    assert load(overrides={"preset": "local", "lease": 0.04}).heartbeat == 0.1  # as short as elections allow


def test_who_keeps_tickets(tmp_path: Path) -> None:
    """H140, tickets 4: seats, or the paper's placement with k = 2 (D27) unless another number is given, 0 included."""
    assert (load().ticket_guardians, load().ticket_k) == ("seats", -1)
    ring = load(environ={"HOLDFAST_TICKET_GUARDIANS": "ring"})
    assert ring.ticket_k == 2
    assert load(file_of(tmp_path, 'ticket_guardians = "ring"\nticket_k = 3\n'), {"HOLDFAST_TICKET_K": "0"}).ticket_k == 0


def test_every_setting_is_read_from_file_and_environment(tmp_path: Path) -> None:
    """The same name in all places, and text means the same as the typed value."""
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length\n")
    typed: dict[str, Any] = {
        "group": "g", "name": "n", "bind": "127.0.0.1:0", "advertise": "127.0.0.1:9", "seeds": ["127.0.0.1:1", "seed.example:2"],
        "seats": ["a@127.0.0.1:1"], "key_file": str(key_file), "state_dir": "s", "preset": "local", "lease": 0.5, "arbitration": 0.2,
        "heartbeat": 0.3, "ticket_lease": 1.0, "ticket_round": 0.2, "ticket_guardians": "ring", "ticket_k": 1, "longest_grant": 4.0,
        "k": 2, "rho": 0.002, "margin": 0.02, "view_heartbeat": 0.2, "zk_session": 5.0, "zk_stale": 7.0, "limit_epoch": 0.3,
        "tags": {"zone": "eu", "rack": "3"},
        "socket": "x.sock", "socket_mode": 0o660, "http": "127.0.0.1:0",
        "http_token_file": str(token), "log_level": "debug", "log_format": "text", "membership": "ring", "moved": True, "insecure": False,
    }  # fmt: skip
    of_gossip = {"election_hold": 0.9, "probe": 0.5, "patience": 3.0, "probe_targets": "bag", "position": "1,2"}  # not beside the ring's
    assert {field.name for field in fields(Config)} == {*typed, *of_gossip, "key", "zookeeper"}  # The last one is refused beside seats.
    _read_alike(tmp_path, typed)
    common = {name: value for name, value in typed.items() if name not in ("lease", "arbitration", "k", "ticket_guardians", "ticket_k")}
    _read_alike(tmp_path, {**common, **of_gossip, "membership": "gossip"})


def _read_alike(tmp_path: Path, typed: dict[str, Any]) -> None:
    environ = {f"HOLDFAST_{name.upper()}": _as_text(name, value) for name, value in typed.items()}
    toml = "".join(f"{name} = {_as_toml(value)}\n" for name, value in typed.items())
    assert load(None, environ) == load(file_of(tmp_path, toml)) == load(overrides=typed)


def _as_text(name: str, value: Any) -> str:
    if name == "socket_mode":
        return f"{value:o}"
    if isinstance(value, dict):
        return ",".join(f"{key}={each}" for key, each in value.items())
    return ",".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)


def _as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'{key} = "{each}"' for key, each in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str | list) else str(value)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"group": ""}, "group: '' is no name"),
    ({"group": "x" * 65}, "group:"),
    ({"name": "a\nb"}, "name: 'a\\nb'"),
    ({"name": "é" * 33}, "name:"),
    ({"bind": "7946"}, "bind: '7946'"),
    ({"bind": "example.org:7946"}, "bind: 'example.org:7946'"),
    ({"bind": "127.0.0.1:65536"}, "bind: '127.0.0.1:65536'; the port must lie between 0 and 65535"),
    ({"bind": "::1:7946"}, "bind:"),
    ({"bind": "10.0.0.5:7946"}, "bind: 10.0.0.5:7946 is beyond loopback and there is no key; set key_file"),
    ({"bind": "0.0.0.0:7946", "key": KEY}, "advertise: is not set"),
    ({"advertise": "127.0.0.1:0"}, "advertise:"),
    ({"seeds": ["127.0.0.1"]}, "seeds: '127.0.0.1'"),
    ({"seeds": [f"127.0.0.1:{port}" for port in range(1, 66)]}, "seeds: 65 of them; accepted are at most 64"),
    ({"seats": ["a@127.0.0.1:1", "b@127.0.0.1:2"]}, "seats: 2 seats; accepted are 1, 3, 5"),
    ({"seats": ["a@seed example:1"]}, "seats: 'a@seed example:1' is no seat"),
    ({"seats": ["a@127.0.0.1:7946"]}, "state_dir: is not set, and this agent is seat 0"),
    ({"seats": ["me@127.0.0.1:1"], "name": "me"}, "state_dir:"),
    ({"key": "abc"}, "key: "),
    ({"key": KEY, "key_file": "/dev/null"}, "key_file: a key was given as well"),
    ({"key_file": "/no/such/file"}, "key_file: key file /no/such/file: No such file or directory"),
    ({"key_file": "/dev/null"}, "key_file:"),
    ({"key": KEY, "insecure": True}, "insecure: is set together with a key"),
    ({"insecure": "maybe"}, "insecure: 'maybe'; accepted is true or false"),
    ({"preset": "moon"}, "preset: 'moon'; accepted are lan, wan, local"),
    ({"lease": "soon"}, "lease: 'soon'; accepted is a number"),
    ({"lease": 31}, "lease: 31.0; accepted are 0.03 to 30"),
    ({"lease": float("nan")}, "lease: nan"),
    ({"arbitration": -1}, "arbitration: -1.0"),
    ({"heartbeat": 0.001}, "heartbeat: 0.001; accepted are 0.1 to 60"),
    ({"ticket_lease": 301}, "ticket_lease: 301.0"),
    ({"ticket_round": float("inf")}, "ticket_round: inf"),
    ({"ticket_round": 0.6}, "ticket_round: 0.6; accepted is at most a quarter of ticket_lease (2 s)"),
    ({"ticket_guardians": "moon"}, "ticket_guardians: 'moon'; accepted are seats, ring"),
    ({"ticket_guardians": "ring", "ticket_k": 4}, "ticket_k: 4; accepted are 0 to 3"),
    ({"ticket_guardians": "ring", "ticket_k": -2}, "ticket_k: -2; accepted are 0 to 3"),
    ({"ticket_guardians": "ring", "ticket_k": 1.5}, "ticket_k: 1.5; accepted is a whole number"),
    ({"ticket_k": 0}, 'ticket_k: 0, and ticket_guardians is "seats", where the number of seats decides; accepted is none, or ticket_guar'),
    ({"longest_grant": 1.9}, "longest_grant: 1.9; accepted are 2 to 3600 seconds"),
    ({"heartbeat": 11.0, "longest_grant": 15}, "longest_grant: 15.0; accepted are 16.5 to 3600 seconds: 1.5 heartbeats and a ticket's"),
    ({"longest_grant": 3601}, "longest_grant: 3601.0"),
    ({"k": 9}, "k: 9; accepted are 1 to 8"),
    ({"k": 2.5}, "k: 2.5; accepted is a whole number"),
    ({"rho": 0.5}, "rho: 0.5"),
    ({"margin": -0.1}, "margin: -0.1"),
    ({"tags": {f"t{number}": "" for number in range(33)}}, "tags: 33 of them; accepted are at most 32"),
    ({"tags": {"a b": "x"}}, "tags: 'a b' is no name of a tag"),
    ({"tags": {"a": "x" * 201}}, "tags: the value"),
    ({"tags": {"a": "\x1b[31m"}}, "tags: the value '\\x1b[31m' of a"),
    ({"tags": {f"t{number}": "x" * 190 for number in range(12)}}, "tags: 2306 bytes in all; accepted are at most 2048"),
    ({"tags": "zone"}, "tags: 'zone'; accepted is a table of texts"),
    ({"tags": {"a": 3}}, "tags: {'a': 3}; accepted is a table of texts"),
    ({"socket": "/" + "x" * 107}, "socket:"),
    ({"socket_mode": "0444"}, "socket_mode: 0o444"),
    ({"socket_mode": 0o1600}, "socket_mode: 0o1600"),
    ({"socket_mode": "rw"}, "socket_mode: 'rw'; accepted is permission bits"),
    ({"http": "0.0.0.0:7980"}, "http: 0.0.0.0:7980 is beyond loopback; set http_token_file"),
    ({"http": "localhost:7980"}, "http: 'localhost:7980'"),
    ({"http_token_file": "/no/such/file"}, "http_token_file: /no/such/file: No such file or directory"),
    ({"http_token_file": "/dev/null"}, "http_token_file: /dev/null holds no token"),
    ({"log_level": "loud"}, "log_level: 'loud'; accepted are debug, info, warning, error"),
    ({"log_format": "xml"}, "log_format: 'xml'; accepted are auto, json, text"),
    ({"membership": "gosip"}, "membership: 'gosip'; accepted are ring"),
    ({"state_dir": "a\0b"}, "state_dir:"),
    ({"lese": 1}, "lese: no such setting (in flags); accepted are group, name"),
]


@pytest.mark.parametrize("settings, told", BAD, ids=[told[:40] for _, told in BAD])
def test_bad_settings_are_refused_by_name(settings: dict[str, Any], told: str) -> None:
    """Bad input: one error that names the setting, what it was and what is accepted."""
    with pytest.raises(ConfigError) as caught:
        load(overrides=settings)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_an_error_says_where_the_value_came_from(tmp_path: Path) -> None:
    """Whoever reads the error knows which file or variable to change."""
    with pytest.raises(ConfigError, match=r"\(from HOLDFAST_LEASE\)$"):
        load(environ={"HOLDFAST_LEASE": "99"})
    path = file_of(tmp_path, "k = 99\n")
    with pytest.raises(ConfigError, match=rf"\(from {path}\)$"):
        load(path)


def test_errors_of_a_program_name_the_argument_alone() -> None:
    """A caller of ``join`` gave no flag; what the environment and a file said is still named."""
    for settings, told in BAD:
        with pytest.raises(ConfigError) as caught:
            load_with_sources(overrides=settings, source=ARGUMENTS)
        assert str(caught.value).startswith(told.replace(" (in flags)", ""))
        assert "flags" not in str(caught.value)
        assert "arguments" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"\(from HOLDFAST_LEASE\)$"):
        load_with_sources(environ={"HOLDFAST_LEASE": "99"}, overrides={"group": "x"}, source=ARGUMENTS)


def test_values_in_errors_are_cut() -> None:
    """A file given by mistake does not fill the screen: 80 characters of each value, on one line."""
    for field in DEFAULTS:
        for value in ("x" * 10_000, "x\n" * 5000, ["y" * 10_000], {"a": "z" * 10_000}):
            told = ""
            try:
                load(overrides={field: value})
            except ConfigError as error:
                told = str(error)
            assert not re.search("(x{81}|y{81}|z{81})", told), field
            assert len(told) < 1000
            assert "\n" not in told


def test_a_key_that_is_given_later_is_the_key(tmp_path: Path) -> None:
    """``key`` and ``key_file`` are two spellings of one setting: what comes first in the order of all settings says which key it is."""
    file, key = tmp_path / "group.key", generate()
    file.write_text(generate())
    for environ, overrides, source in (
        ({"HOLDFAST_KEY_FILE": str(file)}, {"key": key}, {"key": "flags"}),
        ({"HOLDFAST_KEY": key}, {"key_file": str(file)}, {"key_file": "flags"}),
        ({"HOLDFAST_KEY": key, "HOLDFAST_KEY_FILE": ""}, {}, {"key": "HOLDFAST_KEY", "key_file": "HOLDFAST_KEY_FILE"}),
    ):
        config, sources = load_with_sources(None, environ, overrides)
        assert sources == source
        assert (config.key == key, config.key_file == str(file)) == (source.keys() != {"key_file"}, source.keys() == {"key_file"})
    toml = file_of(tmp_path, f'key_file = "{file}"\n')
    assert load(toml, {"HOLDFAST_KEY": key}).key_file == ""
    assert load(toml, {"HOLDFAST_KEY": ""}).key_file == str(file)
    with pytest.raises(ConfigError, match="give one of the two"):
        load(environ={"HOLDFAST_KEY": key, "HOLDFAST_KEY_FILE": str(file)})


@pytest.mark.parametrize("name, near", [
    ("HOLDFAST_LAESE", "HOLDFAST_LEASE"), ("HOLDFAST_KEYFILE", "HOLDFAST_KEY_FILE"), ("HOLDFAST_SEED", "HOLDFAST_SEEDS"),
    ("HOLDFAST_AGNET", "HOLDFAST_AGENT"), ("HOLDFAST_STATEDIR", "HOLDFAST_STATE_DIR"), ("HOLDFAST_HTTP_PORT", "HOLDFAST_HTTP"),
    ("HOLDFAST_XYZZY", ""),
])  # fmt: skip
def test_an_unknown_variable_is_named_with_the_nearest(name: str, near: str) -> None:
    """A typing error is not a default."""
    (line,) = unknown_variables({name: "7980", "HOLDFAST_LEASE": "1", "OTHER": "x"})
    assert line.startswith(f"{name}: is no setting")
    assert (f"did you mean {near}?" in line) == bool(near)


def test_variables_that_are_known_or_of_others() -> None:
    """Every setting, what `run` tells its command, and what Kubernetes makes for a service of that name, are no typing errors."""
    kubernetes = {
        "HOLDFAST_SERVICE_HOST": "10.0.0.1", "HOLDFAST_SERVICE_PORT": "7946", "HOLDFAST_SERVICE_PORT_GOSSIP": "7946",
        "HOLDFAST_PORT": "udp://10.0.0.1:7946", "HOLDFAST_PORT_7946_UDP": "udp://10.0.0.1:7946", "HOLDFAST_PORT_7946_UDP_PROTO": "udp",
        "HOLDFAST_PORT_7946_UDP_PORT": "7946", "HOLDFAST_PORT_7946_UDP_ADDR": "10.0.0.1",
        "HOLDFAST_HTTP_SERVICE_HOST": "10.0.0.1", "HOLDFAST_HTTP_PORT": "tcp://10.0.0.1:80", "HOLDFAST_HTTP_PORT_80_TCP": "tcp://10.0.0.1:80",
    }  # fmt: skip
    known = {f"HOLDFAST_{name.upper()}": "x" for name in (*DEFAULTS, "agent", "config", "runtime_dir", "hold", "token", "run")}
    assert unknown_variables({**kubernetes, **known}) == []
    given = {variable for kind in kinds() for variable in kind.variables}
    assert {"HOLDFAST_TERM", "HOLDFAST_TICKET"} <= given, "those of every flag of `holdfast run`"
    assert unknown_variables(dict.fromkeys((*given, MARK_NAME), "x")) == []
    assert len(unknown_variables({f"HOLDFAST_ODD{number}": "" for number in range(100)})) == UNKNOWN_MAX


@pytest.mark.parametrize("content", [b"lease = \n", b"\xff\xfe", b"[ring]\nlease = 1\n"], ids=["syntax", "bytes", "table"])
def test_a_broken_file_is_one_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    """A file that is no flat table of settings is refused as a whole."""
    path = tmp_path / "holdfast.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=str(path)):
        load(path)


def test_foreign_variables_are_nobodys_mistake() -> None:
    """Kubernetes sets HOLDFAST_SERVICE_HOST and its kin for a service of that name."""
    assert load(environ={"HOLDFAST_SERVICE_HOST": "10.0.0.1", "HOLDFAST_PORT": "tcp://10.0.0.1:7946"}) == load()


def test_the_key_is_never_shown() -> None:
    """Key material appears in no repr, no error and no report."""
    config = load(overrides={"key": KEY})
    assert KEY not in repr(config)
    assert KEY not in str(config.shown())
    with pytest.raises(KeyUnusable) as caught:
        load(overrides={"key": KEY + "x"})
    assert KEY not in str(caught.value)
    with pytest.raises(ConfigError) as wrong:
        load(overrides={"key": [KEY]})
    assert KEY not in str(wrong.value)


def test_alone_is_without_seeds_key_and_network() -> None:
    """F12: only then one agent per machine is its own seat."""
    assert load().alone
    for settings in ({"seeds": "127.0.0.1:1"}, {"key": KEY}, {"bind": "10.0.0.1:1", "insecure": True}, {"seats": "127.0.0.1:1"}):
        assert not load(overrides=settings).alone


def test_loopback() -> None:
    """What nobody beyond this machine can reach, and nothing else."""
    assert is_loopback("127.0.0.1:1")
    assert is_loopback("[::1]:1")
    assert not any(map(is_loopback, ("0.0.0.0:1", "[::]:1", "10.0.0.1:1", "localhost:1", "")))


def test_runtime_directory_and_socket(tmp_path: Path) -> None:
    """HOLDFAST_RUNTIME_DIR, else below XDG_RUNTIME_DIR, else one per user; a group's name is never a path."""
    assert runtime_dir({"HOLDFAST_RUNTIME_DIR": "/r", "XDG_RUNTIME_DIR": "/x"}) == Path("/r")
    assert runtime_dir({"XDG_RUNTIME_DIR": "/x"}) == Path("/x/holdfast")
    assert runtime_dir({}).name.startswith("holdfast-")
    environ = {"HOLDFAST_RUNTIME_DIR": "/r"}
    assert default_socket("orders", environ) == Path("/r/orders.sock")
    odd = [default_socket(group, environ) for group in ("../x", "a/b", ".", "..", "é", "x" * 64, ".hidden")]
    assert len(set(odd)) == len(odd)
    assert all(path.parent == Path("/r") and len(path.name) < 64 for path in odd)


def test_runtime_directory_belongs_to_one_user(tmp_path: Path) -> None:
    """A directory that others may write to is refused: they could put their socket in its place."""
    mine = private_directory(tmp_path / "run")
    assert mine.stat().st_mode & 0o777 == 0o700
    mine.chmod(0o777)
    with pytest.raises(StorageError, match="HOLDFAST_RUNTIME_DIR"):
        private_directory(mine)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(StorageError, match="must be a directory"):
        private_directory(tmp_path / "link")


def test_nobody_else_is_taken_for_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everybody may make files, somebody else may have made our folder, with a socket in it that would be told our keys: neither a
    client nor a command looks there. A folder that was named on purpose is believed, as a socket is."""
    monkeypatch.delenv("HOLDFAST_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("HOLDFAST_AGENT", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert default_socket("orders").parent == runtime_dir()  # Nobody has made it yet.
    runtime_dir().mkdir()
    runtime_dir().chmod(0o777)
    options = Options(group="orders")
    for ask in (lambda: default_socket("orders"), lambda: socket_path(group="orders"), lambda: make_plan(options, os.environ)):
        with pytest.raises(StorageError, match="belongs to user"):
            ask()
    monkeypatch.setenv("HOLDFAST_RUNTIME_DIR", str(runtime_dir()))
    assert socket_path(group="orders") == str(runtime_dir() / "orders.sock")


def test_token_file(tmp_path: Path) -> None:
    """A bearer token is one word that nobody guesses."""
    path = tmp_path / "token"
    path.write_text("0123456789abcdef\n")
    assert read_token(str(path)) == "0123456789abcdef"
    for bad in ("short", "x" * 513, "two words are not one word"):
        path.write_text(bad)
        with pytest.raises(ConfigError, match="http_token_file"):
            read_token(str(path))
