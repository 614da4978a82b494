"""The setting ``zookeeper``, and the paths and bytes of znodes.  Spec: views 5Z (layout); foundation F4."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigError, ExtraMissing
from holdfast.features.views.zookeeper import data
from holdfast.features.views.zookeeper.servers import SERVERS_MAX, check_kazoo, parse_servers
from holdfast.host import Address, NodeId
from holdfast.kit.parcels import Parcel

WALL = 1_700_000_000.0


def wall() -> float:
    return WALL


@pytest.mark.parametrize(
    "text, found",
    [
        ("zk1:2181", ("zk1:2181",)),
        ("zk1:2181, zk2:2181 ,10.0.0.3:2182", ("zk1:2181", "zk2:2181", "10.0.0.3:2182")),
        ("[::1]:2181", ("[::1]:2181",)),
        (",".join(f"z{n}:1" for n in range(SERVERS_MAX)), tuple(f"z{n}:1" for n in range(SERVERS_MAX))),
    ],
)
def test_servers(text: str, found: tuple[str, ...]) -> None:
    """Views 5Z: one to seven of HOST:PORT."""
    assert parse_servers(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "", ",", "zk1", "zk1:", ":2181", "zk1:0", "zk1:65536", "zk1:x", "zk1:2181,", "zk1:2181/chroot", "user@zk1:2181", "::1:2181",
        "1.2.3:1", "zk 1:2181", "zk1:2181;zk2:2181", "zk1:2181,ZK1:2181", "x" * 300 + ":1", ",".join(f"z{n}:1" for n in range(8)),
    ],
)  # fmt: skip
def test_servers_that_cannot_be(text: str) -> None:
    """Views 5Z: the error names the setting and what is accepted, and repeats no more than a line."""
    with pytest.raises(ConfigError, match=r"^zookeeper: .*accepted are 1 to 7 of HOST:PORT") as raised:
        parse_servers(text)
    assert len(str(raised.value)) < 250


def test_kazoo_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 5Z: without the library the error says how to get it."""
    check_kazoo()
    monkeypatch.setattr("holdfast.features.views.zookeeper.servers.find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match=r"^zookeeper: .*kazoo.*pip install '.\[zookeeper\]'"):
        check_kazoo()


def test_a_hidden_library_is_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 5Z: a program may hide a package by putting None in its place."""

    def hidden(name: str) -> object:
        raise ValueError("kazoo.__spec__ is None")

    monkeypatch.setattr("holdfast.features.views.zookeeper.servers.find_spec", hidden)
    with pytest.raises(ExtraMissing):
        check_kazoo()


NAMES = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=64)


@given(NAMES)
def test_names_as_parts_of_paths(name: str) -> None:
    """Views 5Z: any printable name is one part of a path that ZooKeeper takes, and no two names are the same part."""
    part = data.segment(name)
    assert data.name_of(part) == name
    assert part.isascii()
    assert part not in ("", ".", "..")
    assert not set(part) & set("/\0")


@given(st.text(max_size=40))
def test_parts_are_names_or_nothing(part: str) -> None:
    """Views 10: what another process wrote there stands for one name, written in one way, or for none."""
    name = data.name_of(part)
    assert name is None or data.segment(name) == part


@pytest.mark.parametrize(
    "part, order",
    [
        ("m-0000000042", 42),
        ("m-9999999999", 9_999_999_999),
        ("m-42", None),
        ("0000000042", None),
        ("m-00000000\u0664\u0662", None),
        ("m--000000001", None),
    ],
)
def test_orders(part: str, order: int | None) -> None:
    """Views 5Z: ten digits of ZooKeeper's own counting; a counter that ran over is no letter."""
    assert data.order_of(part) == order


def test_data_is_what_was_written() -> None:
    """Foundation F4: what we write we can read."""
    member = data.MemberData(int(WALL) * 1000, Address("10.0.0.1", 7946), {"tag:zone": b"eu"})
    assert data.read_member(data.encode(member), wall) == member
    letter = data.Letter(NodeId("a", 1), NodeId("b", 2), 3, Parcel(b"12345678", b"x" * 36 * 1024))
    assert data.read_letter(data.encode(letter), wall) == letter


def test_data_grows_by_fields_at_its_end() -> None:
    """Foundation 3: a later version may add some, within the size that a znode of ours has."""
    later = [1, ["x", 1], {}, 0, b"more"]
    assert data.read_member(msgspec.msgpack.encode(later), wall) == data.MemberData(1, Address("x", 1))
    later[4] = b"x" * data.MEMBER_BYTES_MAX
    assert data.read_member(msgspec.msgpack.encode(later), wall) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(noise: bytes) -> None:
    """Foundation F4: the bytes of another process raise nothing."""
    data.read_member(noise, wall)
    data.read_letter(noise, wall)
    data.read_member(b"\x93\x01\x92\xa1x\x01" + noise, wall)
