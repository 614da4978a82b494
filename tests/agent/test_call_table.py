"""The table of calls is open: a feature brings its own, and they are imported when a client uses one.  docs/decisions.md H215."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from holdfast.agent import feature
from holdfast.agent.feature import Calls, Running
from holdfast.agent.socket.table import Table
from holdfast.events import Event
from holdfast.features import FEATURES
from holdfast.features.limits import calls as limit_calls
from holdfast.features.mail import calls as mail_calls
from holdfast.features.mail.agent import MailAgent
from holdfast.features.views import calls as view_calls
from holdfast.local import calls, news
from holdfast.local.frame import framed
from tests.agent.live import Live
from tests.agent.raw_client import RawClient, Sent
from tests.support.agents import until
from tests.support.calls import CALLS

ROOT = Path(__file__).parents[2]
LOADED = """
import sys
from pathlib import Path
from tests.agent.live import Live
from tests.agent.raw_client import RawClient
from holdfast.local.calls import Info, Look

def loaded():
    print(*sorted(name.split(".")[2] for name in sys.modules if name.startswith("holdfast.features.") and name.endswith(".calls")))

with Live(Path(sys.argv[1])) as live, RawClient(live.path) as client:
    client.ask(Look), client.ask(Info)
    loaded()
    client.sock.sendall(bytes.fromhex(sys.argv[2]))
    client.next()
    loaded()
"""


STEPS = """
import json, sys
from pathlib import Path
from holdfast.agent.socket import table
from tests.agent.live import Live
from tests.agent.raw_client import RawClient
from holdfast.local.calls import Look

steps, known = {}, set()
def counted(name):
    before = set(sys.modules)
    import_module(name)
    steps[name] = len(sys.modules.keys() - before)
    known.update(sys.modules.keys() - before)
import_module, table.import_module = table.import_module, counted

with Live(Path(sys.argv[1])) as live, RawClient(live.path) as client:
    client.ask(Look)
    live.until_member()
    before = set(sys.modules)
    client.sock.sendall(bytes.fromhex(sys.argv[2]))
    client.next()
    at_once = sorted(name for name in sys.modules.keys() - before - known if name.startswith("holdfast."))
print(json.dumps([steps, at_once]))
"""
STEP_MAX = 4  # modules of one step: about 4 ms of CPU
SMALL = (".calls", ".tickets.pools")  # of features that are asked before, all in one step
RUNG = ("doorbell", "protocol", "protocol.choke", "protocol.config", "protocol.links", "protocol.messages")
DOORBELL = tuple(f".limits.{name}" for name in RUNG)  # where views begin


class Pinging(Running):
    """Offers one call."""

    asked = 0

    def calls(self) -> Calls:
        self.asked += 1
        return Calls(at_once={Ping: lambda client, call: None})


class Ping(calls.Call, frozen=True, tag=250):
    """Of a feature."""

    text: str = ""


def table(*features: Running) -> Table:
    return Table({calls.Look: lambda client, call: None}, {}, features)


def test_a_feature_is_asked_when_its_call_is_used() -> None:
    """H215: before, the call cannot be read; then it can, and the feature is not asked again."""
    pinging = Pinging()
    found = table(Running(), pinging, Running())
    assert (found.decode(b"\x92\x02\x07"), pinging.asked) == (calls.Look(7), 0)
    with pytest.raises(msgspec.ValidationError):
        found.decode(msgspec.msgpack.encode(Ping(7)))
    assert found.find(250)
    assert found.decode(msgspec.msgpack.encode(Ping(7, "x"))) == Ping(7, "x")
    assert not found.find(251)
    assert (pinging.asked, list(found.at_once)) == (1, [calls.Look, Ping])
    assert found.unread(251, "") == f"call: 251; accepted are the calls 2 and 250 of version {calls.VERSION}"
    assert found.unread(250, "Expected `str`, got `int` - at `$[2]`") == "Ping: text: Expected `str`, got `int`"


def test_two_calls_with_one_tag_are_a_bug() -> None:
    """H215: the second one would be read as the first."""
    with pytest.raises(AssertionError, match="its tag 2 belongs to another call"):
        table().add([type("Copy", (calls.Call,), {"__annotations__": {}}, frozen=True, tag=2)])


def test_a_call_of_a_feature_that_is_not_there_costs_that_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H215, H171: an agent without mail says so to a client that sends some, and the connection and its streams go on."""
    monkeypatch.setattr(feature, "FEATURES", tuple(place for place in FEATURES if ".mail." not in place))
    with Live(tmp_path) as live, RawClient(live.path) as client:
        watching = client.say(calls.Watch)
        client.answer(calls.Watch, watching)
        for _ in range(2):
            with pytest.raises(Sent, match="ConfigError: call: 11; accepted are the calls 1 to 10 and 14 to 39 of version"):
                client.ask(mail_calls.Send, "a", b"letter", 1.0)
        until(lambda: client.ask(calls.Look).state == "member", "it is a member")
        client.ask(calls.SetTags, {"still": "here"})
        while client.item(watching, calls.EventItem).name != "Updated":
            pass


def test_a_feature_that_cannot_be_imported_costs_that_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H215: Holdfast was installed anew while the agent ran. The client is told, its connection goes on, and the next call asks again."""

    def broken(mail: MailAgent) -> Calls:
        raise ImportError("cannot import name 'Postcard'")

    with Live(tmp_path) as live, RawClient(live.path) as client:
        with monkeypatch.context() as patched:
            patched.setattr(MailAgent, "calls", broken)
            with pytest.raises(Sent, match="Unavailable: call: 12: cannot import name 'Postcard'; was Holdfast installed anew"):
                client.ask(mail_calls.Cast, "news", b"x")
        client.ask(mail_calls.Cast, "news", b"x")


def test_a_call_before_hello_is_no_greeting(tmp_path: Path) -> None:
    """docs/local-api.md: Hello comes first, whatever feature the first call belongs to."""
    with Live(tmp_path) as live, RawClient(live.path, greet=False) as client:
        client.sock.sendall(framed(msgspec.msgpack.encode(mail_calls.Messages(1))))
        ended = client.next()
        assert isinstance(ended, calls.Closed)
        assert "Hello comes first" in ended.text


def test_an_agent_answers_every_call(tmp_path: Path) -> None:
    """H215: each call that a feature declares has a handler, also where the feature is missing."""
    with Live(tmp_path) as live:
        offered = live.server.table
        while live.call(lambda: offered.find(0)) is None:
            pass  # One module more is there (H382).
        assert set(CALLS) == {*offered.at_once, *offered.in_turn}


class Counted(Event, frozen=True):
    """A public event of a feature."""

    name: str
    value: int


def test_an_event_of_a_feature_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """H216: a client finds the class of a public event in the ``events.py`` of a feature; a fact is none, and imports none."""
    room, asked = ModuleType("toy.events"), list[str]()
    room.Counted = Counted  # type: ignore[attr-defined]

    def rooms(name: str) -> list[ModuleType]:
        asked.append(name)
        return [room]

    monkeypatch.setattr("holdfast.features.rooms", rooms)
    news._of_features.cache_clear()
    item = calls.EventItem(1, 0.0, "Counted", msgspec.Raw(news.encoded_fields(Counted("visits", 3))))
    assert news.event_of(calls.EventItem(1, 0.0, "toy.Added", msgspec.Raw(b"\x80"))) is None
    assert (news.event_of(item), news.event_of(item), asked) == (Counted("visits", 3), Counted("visits", 3), ["events"])
    news._of_features.cache_clear()


def test_calls_are_imported_when_a_client_uses_them(tmp_path: Path) -> None:
    """H215: memory grows with what is used; a client that looks and watches brings no feature into the agent."""
    frame = framed(msgspec.msgpack.encode(mail_calls.Cast(9, "news", b"x"))).hex()
    code = [sys.executable, "-c", LOADED, str(tmp_path), frame]
    said = subprocess.run(code, capture_output=True, text=True, check=True, cwd=ROOT).stdout.splitlines()
    assert said == ["", "mail"]


@pytest.mark.parametrize("call", [limit_calls.AttachLimit(9, "api", None, 1.0, 1), view_calls.WatchViews(9)], ids=["limit", "views"])
def test_what_a_first_call_needs_is_loaded_in_small_steps(tmp_path: Path, call: calls.Call) -> None:
    """H382: 60 modules at once are a part of a lease, on a busy machine all of it. Each step brings a few, and the agent goes on between
    two of them; nothing is left for the call itself to load."""
    frame = framed(msgspec.msgpack.encode(call)).hex()
    code = [sys.executable, "-c", STEPS, str(tmp_path), frame]
    said = subprocess.run(code, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    steps, at_once = json.loads(said)
    assert len(steps) >= 10
    assert {name: count for name, count in steps.items() if count > STEP_MAX} == {}
    assert [name for name in at_once if not name.endswith((*SMALL, *DOORBELL))] == []
