"""What a user writes, and the addresses behind it.  Spec: foundation F12 (literal addresses and names)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from holdfast.errors import AddressUnusable
from holdfast.host import Address
from holdfast.net import resolve
from holdfast.net.resolve import Endpoint, Resolver, literal, parse
from tests.support.realtime import eventually, run


@pytest.mark.parametrize(
    "text, host, port, is_literal",
    [
        ("10.0.0.5:7946", "10.0.0.5", 7946, True),
        ("[::1]:7946", "::1", 7946, True),
        ("[2001:DB8:0:0::1]:1", "2001:db8::1", 1, True),
        ("[::ffff:10.0.0.5]:7946", "10.0.0.5", 7946, True),
        ("[fe80::1%eth0]:7946", "fe80::1%eth0", 7946, True),
        (" seeds.example.org:65535 ", "seeds.example.org", 65535, False),
        ("localhost:7946", "localhost", 7946, False),
    ],
)
def test_what_is_accepted(text: str, host: str, port: int, is_literal: bool) -> None:
    """F12: a seed is a literal address or a name; one spelling per address."""
    endpoint = parse(text)
    assert endpoint == (host, port)
    assert endpoint.literal == (Address(host, port) if is_literal else None)
    assert parse(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "has no port"),
        ("10.0.0.5", "has no port"),
        (":7946", "has no host"),
        ("my host:7946", "has no host"),
        ("10.0.0.5:", "has no port"),
        ("10.0.0.5:http", "has no port"),
        ("10.0.0.5:-1", "has no port"),
        ("10.0.0.5:²", "has no port"),
        ("[::1]", "has no port"),
        ("[::1]7946", "has no port"),
        ("10.0.0.5:0", "between 1 and 65535"),
        ("10.0.0.5:65536", "between 1 and 65535"),
        ("::1", "written in brackets"),
        ("::1:7946", "written in brackets"),
        ("[::g]:7946", "is no IPv6 address"),
        ("a:b:7946", "has no host"),
    ],
)
def test_what_is_refused_says_why(text: str, why: str) -> None:
    """Bad input gets one line that names what was written and what is accepted."""
    with pytest.raises(AddressUnusable, match=why) as raised:
        parse(text)
    assert repr(text) in str(raised.value)


def test_port_zero_is_for_listening() -> None:
    """Any free port is something one listens on, never something one connects to."""
    assert parse("127.0.0.1:0", listen=True) == ("127.0.0.1", 0)


def test_a_name_is_no_literal() -> None:
    """F12 asks whether every seed is a literal address."""
    assert (literal("example.org"), literal("1.2.3"), literal("0::0001")) == (None, None, "::1")


@pytest.mark.parametrize("scope", ["1", "eth0", "eth0.100", "br-lan", "wlan_0", "a" * 15])
def test_a_scope_looks_like_an_interface(scope: str) -> None:
    """A link-local address needs one, and Linux allows dots and dashes in it."""
    assert literal(f"fe80::1%{scope}") == f"fe80::1%{scope}"


@pytest.mark.parametrize("scope", ["a" * 16, "a" * 80, "a..b", ".a", "a.", "a b", "a\0b", "ü", "٣", "\ud800", "eth0\n"])
def test_any_other_scope_is_no_literal(scope: str) -> None:
    """Python takes any text for a scope, also one that its own getaddrinfo raises UnicodeError for: a peer must not choose that."""
    assert literal(f"fe80::1%{scope}") is None


class FakeNames:
    """A name server that answers what it is told to."""

    def __init__(self, **answers: list[str]) -> None:
        self.answers = answers
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Iterable[str]:
        self.asked += 1
        if host not in self.answers:
            raise OSError("no such name")
        return self.answers[host]


def test_a_name_stands_for_many_seeds_sorted_and_once() -> None:
    """A DNS name may stand for many seeds; the result is a sorted list without repetition."""
    names = FakeNames(seeds=["10.0.0.9", "10.0.0.1", "::1", "::ffff:10.0.0.1"])

    async def ask() -> None:
        resolver = Resolver([parse("seeds:7"), parse("10.0.0.9:7"), parse("10.0.0.9:8")], lookup=names)
        expected = [Address("10.0.0.1", 7), Address("10.0.0.9", 7), Address("10.0.0.9", 8), Address("::1", 7)]
        assert await resolver.start() == expected
        await resolver.close()

    run(ask())


def test_it_asks_again_and_says_what_changed() -> None:
    """Name resolution is repeated; whoever listens hears of changes only."""
    names, heard = FakeNames(seeds=["10.0.0.1"]), list[list[Address]]()

    async def ask() -> None:
        resolver = Resolver([parse("seeds:7")], every=0.01, lookup=names, on_change=heard.append)
        await resolver.start()
        await eventually(lambda: names.asked > 3)
        names.answers["seeds"] = ["10.0.0.2"]
        await eventually(lambda: resolver.addresses == [Address("10.0.0.2", 7)])
        await resolver.close()
        asked = names.asked
        await asyncio.sleep(0.05)
        assert names.asked == asked

    run(ask())
    assert heard == [[Address("10.0.0.1", 7)], [Address("10.0.0.2", 7)]]


@pytest.mark.parametrize("failure", ["gone", "empty", "garbage"])
def test_a_failure_keeps_what_was_known_and_is_counted(failure: str) -> None:
    """A name server that is down for a while must not take the seeds away."""
    names = FakeNames(seeds=["10.0.0.1"], other=["10.0.0.2"])

    async def ask() -> None:
        resolver = Resolver([parse("seeds:7"), parse("other:7")], lookup=names)
        await resolver.refresh()
        if failure == "gone":
            del names.answers["seeds"]
        else:
            names.answers["seeds"] = [] if failure == "empty" else ["not an address"]
        names.answers["other"] = ["10.0.0.3"]
        assert await resolver.refresh() == [Address("10.0.0.1", 7), Address("10.0.0.3", 7)]
        assert resolver.failures == 1

    run(ask())


def test_a_lookup_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a name server without an end."""
    monkeypatch.setattr(resolve, "LOOKUP_TIMEOUT", 0.01)

    async def never(host: str, port: int) -> Iterable[str]:
        await asyncio.get_running_loop().create_future()
        return []

    async def ask() -> None:
        resolver = Resolver([parse("seeds:7")], lookup=never)
        assert await resolver.refresh() == []
        assert resolver.failures == 1

    run(ask())


def test_nothing_resolved_at_the_start_is_an_error_of_one_line() -> None:
    """An address that does not resolve: one clear line that names it and says what to do."""

    async def ask() -> None:
        with pytest.raises(AddressUnusable, match="cannot resolve nowhere:7, nobody:8: check the spelling"):
            await Resolver([Endpoint("nowhere", 7), Endpoint("nobody", 8)], lookup=FakeNames()).start()

    run(ask())


def test_the_system_resolver_knows_localhost() -> None:
    """The default asks getaddrinfo, in a thread."""

    async def ask() -> None:
        resolver = Resolver([parse("localhost:7")])
        found = await resolver.start()
        await resolver.close()
        assert {address.host for address in found} <= {"127.0.0.1", "::1"}

    run(ask())


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table has a limit: a bad answer fills no memory."""
    names = FakeNames(seeds=[f"10.0.{i // 256}.{i % 256}" for i in range(1000)])

    async def ask() -> None:
        assert len(await Resolver([parse("seeds:7")], lookup=names).refresh()) == resolve.ADDRESSES_MAX

    run(ask())
