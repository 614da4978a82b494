"""The real agent with a membership that is not the ring: the seam is ``host.Standing``.  H202; foundation 3 (Membership)."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from holdfast.agent.membership import Kind, Side
from holdfast.agent.observe.http import HttpServer
from holdfast.config import CHOICES
from holdfast.events import Updated
from holdfast.features import MEMBERSHIPS
from holdfast.features.mail import calls as mail_calls
from holdfast.features.mail.calls import MessageItem
from holdfast.features.ring import agent as ring_side
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, Keyed, Standing
from holdfast.lab.fake_host import FakeHost
from holdfast.local import calls
from holdfast.local.calls import EventItem
from holdfast.local.news import event_of
from tests.agent.live import WAIT, Live
from tests.agent.raw_client import RawClient, Sent
from tests.support import static_membership
from tests.support.agents import until
from tests.support.static_membership import plugged_in


class Group(NamedTuple):
    """Two agents, and where the first one serves HTTP."""

    a: Live
    b: Live
    url: str

    def refused(self, path: str) -> tuple[int, str]:
        """The status and the text of a refusal."""
        with pytest.raises(HTTPError) as refused, urlopen(f"{self.url}{path}", timeout=WAIT):
            pass
        with refused.value as answer:
            return answer.code, json.load(answer)["text"]

    def read(self, path: str) -> Any:
        with urlopen(f"{self.url}{path}", timeout=WAIT) as answer:
            return json.load(answer)


def free_address() -> Address:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", probe.getsockname()[1])


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """Agents a and b of one group, each with its local socket."""
    addresses = {"a": free_address(), "b": free_address()}
    seeds = [str(addresses["a"])]
    with pytest.MonkeyPatch.context() as monkeypatch, ExitStack() as stack:
        plugged_in(monkeypatch, addresses)
        lives = {}
        for name, address in addresses.items():
            folder = tmp_path_factory.mktemp(name)
            live = Live(folder, name=name, bind=str(address), seeds=seeds, state_dir=str(folder / "state"), http="127.0.0.1:0")
            lives[name] = stack.enter_context(live)
        a, b = lives["a"], lives["b"]
        until(lambda: all(len(each.call(each.agent.view).members) == 2 for each in (a, b)), "both list both")
        http = asyncio.run_coroutine_threadsafe(HttpServer.start(a.agent), a.loop).result(WAIT)
        try:
            yield Group(a, b, http.url)
        finally:
            asyncio.run_coroutine_threadsafe(http.close(), a.loop).result(WAIT)


def test_both_kinds_offer_what_an_agent_asks() -> None:
    """H202: the type checker reads this. The settings accept the kinds that there are, and no other."""
    kind: Kind = ring_side
    other: Kind = static_membership
    ring = standalone(FakeHost("a"), RingConfig()).ring
    side: Side = ring_side.RingSide(ring)
    standing: Standing = ring
    keyed: Keyed = ring
    assert (side.standing, side.keyed) == (standing, keyed)
    assert kind is not other
    assert tuple(MEMBERSHIPS) == CHOICES["membership"]


def test_members_and_state(group: Group) -> None:
    """Look: who is here, sorted by id; members have no positions, and no position is made up."""
    with RawClient(group.a.path) as client:
        view = client.ask(calls.Look)
        assert (view.state, [member.name for member in view.members]) == ("member", ["a", "b"])
        assert view.positions == ()
        assert client.ask(calls.Info)["state"] == "member"


def test_tags_are_watched_by_others(group: Group) -> None:
    """SetTags and Watch: what one agent publishes the other one's clients hear."""
    with RawClient(group.a.path) as a, RawClient(group.b.path) as b:
        stream = b.say(calls.Watch, False)
        b.answer(calls.Watch, stream)
        a.ask(calls.SetTags, {"colour": "red"})
        while True:
            event = event_of(b.item(stream, EventItem))
            if isinstance(event, Updated) and event.member.tags.get("colour") == "red":
                break
        assert event.member.name == "a"


def test_messages(group: Group) -> None:
    """Send reaches a member by name, Cast every member that listens, over rumours and topics of this membership."""
    with RawClient(group.a.path) as a, RawClient(group.b.path) as b:
        letters, news = b.say(mail_calls.Messages), b.say(mail_calls.Messages, "news")
        b.answer(mail_calls.Messages, letters)
        b.answer(mail_calls.Messages, news)
        a.ask(mail_calls.Send, "b", b"letter", WAIT)
        assert b.item(letters, MessageItem).payload == b"letter"
        with pytest.raises(Sent, match="no member is called"):
            a.ask(mail_calls.Send, "c", b"letter", WAIT)
        until(lambda: any("topic:u:news" in member.rows for member in a.ask(calls.Look).members), "a knows who listens")
        a.ask(mail_calls.Cast, "news", b"cast")
        assert b.item(news, MessageItem).payload == b"cast"


def test_keys_have_no_owners(group: Group) -> None:
    """H202: a refusal that names the setting; None would look like another member's key, for ever."""
    with RawClient(group.a.path) as client:
        with pytest.raises(Sent, match="ConfigError: membership: 'static' has no owners of keys"):
            client.ask(calls.Owns, b"cart:42")
    code, text = group.refused("v1/owner?key=cart:42")
    assert code == 400
    assert "no owners of keys" in text


def test_doctor_examines_it(group: Group) -> None:
    """Doctor: seeds and members are pinged, neither leases nor a ring are mentioned, and the membership has findings of its own."""
    with RawClient(group.b.path) as client:
        findings = client.ask(calls.Doctor, 2.0)
    assert [each for each in findings if each.code in ("not_a_member", "not_joined", "unreachable", "closed_port")] == []
    assert [each.about for each in findings if each.code == "static"] == ["members"]
    assert not any("lease" in each.text + each.advice for each in findings if each.code != "seats_waiting")


def test_info_and_metrics_have_its_names(group: Group) -> None:
    """Info and /metrics: the numbers of this kind under its own prefix, none of the ring's."""
    with RawClient(group.a.path) as client:
        numbers = client.ask(calls.Info)["metrics"]
    assert numbers["static_members"] == 2.0
    with urlopen(f"{group.url}metrics", timeout=WAIT) as answer:
        text = answer.read().decode()
    assert "holdfast_static_members 2" in text
    assert 'holdfast_agent_state{state="member"} 1' in text
    assert "ring_" not in text + " ".join(numbers)


def test_http(group: Group) -> None:
    """HTTP: the member list without positions, health, recent events; the ring's own route and its part of a beat are not there."""
    members = group.read("v1/members")["members"]
    assert [(each["name"], each["position"], each["since"]) for each in members] == [("a", None, None), ("b", None, None)]
    assert group.read("v1/members/b")["boot"] > 0
    assert group.read("healthz") == {"state": "ok"}
    with RawClient(group.a.path) as client:
        client.ask(calls.SetTags, {"seen": "over HTTP"})
    until(lambda: "Updated" in [event["name"] for event in group.read("v1/events?internal=true")["events"]], "the event is there")
    assert group.refused("v1/ring")[0] == 404
    assert "/v1/ring" not in group.read("v1/openapi.json")["paths"]
    with urlopen(f"{group.url}events?pulse=true", timeout=WAIT) as stream:
        while not (line := stream.readline()).startswith(b"event: pulse"):
            assert line
        while not (line := stream.readline()).startswith(b"data:"):
            assert line
        beat = json.loads(line.removeprefix(b"data:"))
    assert (beat["state"], "ring" in beat, beat["health"]["safe_for_most"]) == ("member", False, None)


def test_it_leaves_and_joins_again(group: Group) -> None:
    """Leave and Join pass through Standing: the state, the list and a join that answers when the agent is a member again."""
    with RawClient(group.b.path) as client:
        client.ask(calls.Leave, False)
        view = client.ask(calls.Look)
        assert (view.state, view.members, view.me.name) == ("left", (), "b")
        client.ask(calls.Join, (str(group.a.agent.host.address),), WAIT)
        assert client.ask(calls.Look).state == "member"
    asked = group.b.call(lambda: group.b.agent.membership)
    assert isinstance(asked, static_membership.StaticMembership)
    assert asked.asked[-1] == (group.a.agent.host.address,)
