"""KeyKeeper on fake hosts: a rotation in three steps that never leaves somebody unable to read somebody.  docs/keys.md, H57."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import pytest

from holdfast.errors import ConfigError, NotAMember, Unavailable
from holdfast.features.keys.protocol import warden
from holdfast.features.keys.protocol.keys import KEY_ID_CHARS, LISTS_MAX, SILENT, TIMEOUT_MAX, UNTOUCHED, KeyKeeper, Report
from holdfast.features.keys.protocol.messages import KeyAnswer, KeyChange, KeyList, KeyTurn
from holdfast.features.keys.protocol.warden import TURN_SECONDS, KeysChanged
from holdfast.host import FANOUT_MAX, Message, NodeId
from holdfast.wire.keys import KEY_ID_BYTES
from tests.features.keys.fake_keys import FakeKeys
from tests.features.keys.stand import ALL, NEW, NEW_KEY, NOBODY, OLD, A, B, C, Group, done
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers


@pytest.fixture
def group() -> Group:
    return Group()


def test_a_rotation(group: Group) -> None:
    """docs/keys.md: install, use, remove; each member reports what it holds after each step."""
    assert {report.keys for report in group.step("list").values()} == {(OLD,)}
    for action, key, held in [("install", NEW_KEY, (OLD, NEW)), ("use", NEW, (NEW, OLD)), ("remove", OLD, (NEW,))]:
        reports = group.step(action, key)
        assert done(reports) == ALL
        assert {report.keys for report in reports.values()} == {held}
        assert {keys.ids() for keys in group.keys.values()} == {held}


def test_steps_may_be_repeated(group: Group) -> None:
    """docs/keys.md: whoever is not sure does it again."""
    for action, key in [("install", NEW_KEY), ("use", NEW), ("remove", OLD)]:
        for _ in range(2):
            assert done(group.step(action, key)) == ALL


def test_use_needs_everybody_to_hold_it(group: Group) -> None:
    """docs/keys.md: nobody writes what somebody cannot read; the report names who lacks it, and nothing was changed."""
    group.keys["a"].install(NEW_KEY)
    group.keys["b"].install(NEW_KEY)
    reports = group.step("use", NEW)
    assert done(reports) == NOBODY
    assert reports["c"].text == f"does not hold key {NEW}; install it first"
    assert reports["a"].text == reports["b"].text == UNTOUCHED
    assert [keys.ids()[0] for keys in group.keys.values()] == [OLD] * 3


def test_silent_members_are_named(group: Group) -> None:
    """docs/keys.md: use and remove wait for everybody; install goes on with those who are there."""
    group.mesh.down.add("c")
    reports = group.step("install", NEW_KEY)
    assert done(reports) == {"a": True, "b": True, "c": False}
    assert reports["c"] == Report(C, False, SILENT, ())
    for action, key in (("use", NEW), ("remove", NEW)):
        reports = group.step(action, key)
        assert done(reports) == NOBODY
        assert reports["c"].text == SILENT


def test_force_goes_on_without_them(group: Group) -> None:
    """docs/keys.md: an operator who knows that a machine is gone for good."""
    group.mesh.down.add("c")
    group.step("install", NEW_KEY)
    reports = group.step("use", NEW, force=True)
    assert done(reports) == {"a": True, "b": True, "c": False}
    assert [group.keys[name].ids() for name in "ab"] == [(NEW, OLD)] * 2
    assert done(group.step("remove", OLD, force=True)) == {"a": True, "b": True, "c": False}


def test_remove_waits_until_nobody_writes_with_it(group: Group) -> None:
    """docs/keys.md: removing the key that somebody writes with would make it unreadable."""
    group.step("install", NEW_KEY)
    group.step("use", NEW)
    group.keys["b"].use(OLD)
    reports = group.step("remove", OLD)
    assert done(reports) == NOBODY
    assert reports["b"].text == f"writes with key {OLD}; use another one first"
    assert all(OLD in keys.ids() for keys in group.keys.values())


def test_who_lists_others_is_not_overruled(group: Group) -> None:
    """docs/keys.md: an agent that joined a moment ago may not know everybody; whoever knows more says so, and nothing is changed."""
    group.step("install", NEW_KEY)
    group.members["b"].join(NodeId("d", 1))
    for action, key in (("use", NEW), ("remove", NEW)):
        reports = group.step(action, key)
        assert done(reports) == NOBODY
        assert reports["b"].text.startswith("lists other members")
    assert done(group.step("install", NEW_KEY)) == ALL
    group.members["b"].fail(NodeId("d", 1))
    assert done(group.step("use", NEW)) == ALL


def test_what_this_agent_refuses_is_sent_to_nobody(group: Group) -> None:
    """docs/keys.md: a key that does not parse stays here."""
    group.keys["a"].refuse = "key: is neither base64 nor hexadecimal"
    reports = group.step("install", "rubbish")
    assert done(reports) == NOBODY
    assert reports["a"].text == "key: is neither base64 nor hexadecimal"
    assert [message for _, _, message in group.mesh.sent if isinstance(message, KeyChange)] == []


def test_a_long_reason_is_cut_and_not_lost(group: Group) -> None:
    """A path may be long. Whoever refuses with it is not shown as silent."""
    group.keys["b"].refuse = "cannot write " + "/folder" * 100
    reports = group.step("install", NEW_KEY)
    assert reports["b"].text == group.keys["b"].refuse[: warden.TEXT_CHARS_MAX]


def test_what_a_member_refuses_is_in_its_report(group: Group) -> None:
    """docs/keys.md: a full disk at one member."""
    group.keys["b"].refuse = "disk full"
    reports = group.step("install", NEW_KEY)
    assert done(reports) == {"a": True, "b": False, "c": True}
    assert reports["b"] == Report(B, False, "disk full", (OLD,))


def test_whoever_joins_meanwhile_is_asked_or_named(group: Group) -> None:
    """docs/keys.md: newcomers read an old key file, and must not be forgotten."""
    group.members["a"].keep([A, B])
    group.ask("install", NEW_KEY)
    group.members["a"].join(C)
    group.mesh.deliver()
    assert {report.member.name for report in group.reports.pop()} == {"a", "b", "c"}
    for members in group.members.values():
        members.keep([A, B])
    group.ask("use", NEW)
    group.mesh.lose = lambda message: isinstance(message, KeyChange)
    group.mesh.deliver()
    group.members["a"].join(C)
    group.mesh.lose = lambda message: False
    group.mesh.pass_time(1.0)
    group.mesh.deliver()
    assert group.reports.pop()[2] == Report(C, False, "joined meanwhile and was not asked; do it again", ())


def test_lost_messages_are_said_again(group: Group) -> None:
    """F17, docs/keys.md: a lost question, or a lost answer, costs half a second; a change is made once."""
    lost: set[type[Message]] = set()

    def lose(message: Message) -> bool:
        first = type(message) not in lost
        lost.add(type(message))
        return first

    group.mesh.lose = lose
    assert done(group.step("install", NEW_KEY)) == ALL
    assert lost == {KeyTurn, KeyChange, KeyAnswer}
    assert [len(keys.changes) for keys in group.keys.values()] == [1, 1, 1]


def test_two_operators_do_not_cross(group: Group) -> None:
    """H57: while one changes keys, a second one is refused by whoever gave the first its turn."""
    group.step("install", NEW_KEY)
    group.mesh.lose = lambda message: isinstance(message, KeyChange)
    group.ask("use", NEW)
    group.mesh.deliver()
    group.mesh.lose = lambda message: False
    reports = group.step("remove", NEW, by="b")
    assert done(reports) == NOBODY
    assert "is changing keys" in reports["b"].text
    assert {report.done for report in group.reports.pop()} == {True}


def test_a_change_outside_of_its_turn_is_refused() -> None:
    """H57: what is late, or of an asker that was stopped, changes nothing."""
    host, keys = FakeHost("a"), FakeKeys(OLD)
    keeper = KeyKeeper(host, FakeMembers(A, B, C), keys, sealed=True)

    def say(message: Message, source: NodeId = B) -> KeyAnswer:
        keeper.on_message(source, message)
        ((_, answer),) = host.take(KeyAnswer)
        return answer

    change = KeyChange(1, 1, "install", NEW_KEY)
    assert not say(change).done
    assert say(KeyTurn(2, 1, 1e9)).done
    assert not say(change, C).done
    assert not say(KeyChange(1, 2, "install", NEW_KEY)).done
    host.pass_time(TURN_SECONDS)
    assert not say(change).done
    assert keys.changes == []
    assert say(KeyTurn(3, 2, TURN_SECONDS)).done
    assert say(KeyChange(4, 2, "install", NEW_KEY)).done
    assert say(KeyTurn(5, 1, TURN_SECONDS), C).done  # The change is made: the next may have its turn.
    assert not say(KeyChange(6, 2, "remove", NEW)).done
    keeper.on_message(B, KeyTurn(7, 1, TURN_SECONDS))
    assert host.take(KeyAnswer) == []  # late
    assert keys.changes == [("install", NEW_KEY)]


def test_a_turn_that_is_not_needed_is_given_back(group: Group) -> None:
    """H57: after a step that was refused, or that somebody did not hear of, the next operator need not wait."""
    group.mesh.down.add("c")
    assert done(group.step("use", NEW)) == NOBODY
    group.mesh.down.clear()
    assert done(group.step("install", NEW_KEY, by="b")) == ALL
    keeper = group.keeper()
    keeper.on_message(B, KeyTurn(1, 90, TURN_SECONDS))
    for source, turn in ((C, 90), (B, 89)):
        keeper.on_message(source, KeyTurn(0, turn, 0.0))
        keeper.on_message(C, KeyTurn(1, 95, TURN_SECONDS))
    assert [answer.done for _, answer in group.mesh.hosts["a"].take(KeyAnswer)] == [True, False, False]
    keeper.on_message(B, KeyTurn(0, 90, 0.0))
    keeper.on_message(C, KeyTurn(1, 95, TURN_SECONDS))
    keeper.on_message(B, KeyChange(2, 90, "install", NEW_KEY))
    assert [answer.done for _, answer in group.mesh.hosts["a"].take(KeyAnswer)] == [True, False]


def test_a_turn_is_good_for_one_change() -> None:
    """H57: repeated, it gets the same answer and is not made again."""
    host, keys = FakeHost("a"), FakeKeys(OLD)
    keeper = KeyKeeper(host, FakeMembers(A, B), keys, sealed=True)
    keeper.on_message(B, KeyTurn(1, 1, TURN_SECONDS))
    keeper.on_message(B, KeyChange(2, 1, "install", NEW_KEY))
    keeper.on_message(B, KeyChange(3, 1, "install", NEW_KEY))
    keeper.on_message(B, KeyChange(4, 1, "remove", NEW))
    assert [answer.serial for _, answer in host.take(KeyAnswer)] == [1, 2, 3, 4]
    assert keys.changes == [("install", NEW_KEY)]


def test_an_asker_that_was_stopped_changes_nothing(group: Group) -> None:
    """H57: turns run out while it sleeps, so it does not act on what they said."""
    group.step("install", NEW_KEY)
    group.ask("use", NEW)
    held = [item for item in group.mesh._collect() if isinstance(item[2], KeyTurn)]
    for source, target, message in held:
        group.mesh._receive(source, target, message)
    host = group.mesh.hosts["a"]
    host.clock += TIMEOUT_MAX + 1.0
    group.mesh.deliver()  # The answers that waited come before the timers (F10).
    assert {report.done for report in group.reports.pop()} == {False}
    assert [keys.ids()[0] for keys in group.keys.values()] == [OLD] * 3


def test_large_groups_are_asked_in_parts() -> None:
    """F17: no callback reaches more than 64 peers, and everybody is asked."""
    host = FakeHost("a")
    lives = [NodeId(f"n{number:03}", 1) for number in range(150)]
    reports: list[tuple[Report, ...]] = []
    keeper = KeyKeeper(host, FakeMembers(A, *lives), FakeKeys(OLD), sealed=True)
    keeper.ask("list", "", 2.0, reports.append)
    assert host.sent == []
    sizes = []
    while len(keeper.outbox):
        timer = next(each for _, _, each in sorted(host._timers, key=lambda item: item[:2]) if each.callback)
        callback, timer.callback = timer.callback, None
        assert callback is not None
        callback()
        sizes.append(len(host.take(KeyList)))
    assert sizes == [FANOUT_MAX, FANOUT_MAX, 150 - 2 * FANOUT_MAX]
    host.pass_time(3.0)
    assert [report.text for report in reports[0]] == ["", *[SILENT] * 150]


BAD: list[tuple[str, str, str]] = [
    ("rotate", "", "accepted: list, install, use, remove"),
    ("install", "", "accepted: 1 to 128"),
    ("install", "x" * 129, "accepted: 1 to 128"),
    ("install", "a\nb", "accepted: 1 to 128"),
    ("use", "zz", "8 hexadecimal digits"),
    ("remove", "", "8 hexadecimal digits"),
]


@pytest.mark.parametrize("action, key, told", BAD)
def test_bad_input(group: Group, action: str, key: str, told: str) -> None:
    """Bad input: field and accepted values, and nothing is sent; the key is not repeated."""
    with pytest.raises(ConfigError, match=told):
        group.ask(action, key)
    assert KEY_ID_CHARS == 2 * KEY_ID_BYTES


def test_without_a_key_nothing_is_asked_or_told() -> None:
    """docs/keys.md: a key in plain text would be everybody's."""
    host, keys = FakeHost("a"), FakeKeys(OLD)
    keeper = KeyKeeper(host, FakeMembers(A, B), keys, sealed=False)
    with pytest.raises(ConfigError, match="no key"):
        keeper.ask("install", NEW_KEY, 1.0, lambda reports: None)
    keeper.on_message(B, KeyTurn(1, 1, TURN_SECONDS))
    keeper.on_message(B, KeyChange(1, 1, "install", NEW_KEY))
    assert (keys.changes, host.sent) == ([], [])


def test_who_is_no_member_changes_nothing(group: Group) -> None:
    """docs/keys.md: whoever was put out of the group knows nobody, and "all members agreed" would mean itself alone."""
    group.members["a"].keep([])
    for action, key in (("install", NEW_KEY), ("use", OLD), ("remove", NEW)):
        with pytest.raises(NotAMember):
            group.ask(action, key)
    assert set(group.step("list")) == {"a"}


def test_one_change_and_a_few_lists_at_a_time(group: Group) -> None:
    """F17: a constant, and the overflow is told."""
    group.mesh.down |= set("bc")
    group.ask("install", NEW_KEY)
    with pytest.raises(Unavailable):
        group.ask("use", NEW)
    for _ in range(LISTS_MAX):
        group.ask("list")
    with pytest.raises(Unavailable):
        group.ask("list")
    group.keeper().stop()


@pytest.mark.parametrize("ids", [("x" * 8,), ("ABCDEF01",), (OLD,) * 17, ("\x1b[2J    ",)])
def test_ids_that_are_none_are_not_shown(group: Group, ids: tuple[str, ...]) -> None:
    """Foundation 2: a peer's words end on a terminal; what does not fit is counted, and its member shown as silent."""
    _forge(group, lambda serial: KeyAnswer(serial, True, "", ids, 0))


@pytest.mark.parametrize("text", ["\x1b[2J", "x" * 201, "two\nlines"])
def test_text_that_does_not_fit_is_not_shown(group: Group, text: str) -> None:
    """Foundation 2: as above."""
    _forge(group, lambda serial: KeyAnswer(serial, False, text, (OLD,), 0))


def _forge(group: Group, make: Callable[[int], KeyAnswer]) -> None:
    group.ask("list")
    group.mesh.hosts["a"].pass_time(0)
    serial = group.mesh.hosts["a"].take(KeyList)[0][1].serial
    group.keeper().on_message(B, make(serial))
    assert group.keeper().counts["malformed"] == 1


@pytest.mark.parametrize("turn, seconds", [(-1, 1.0), (0, -1.0), (1, nan), (1 << 53, 1.0), (1, 0.0)])
def test_turns_that_are_none(turn: int, seconds: float) -> None:
    """Foundation 2: numbers of peers are bounded where they come in."""
    host = FakeHost("a")
    keeper = KeyKeeper(host, FakeMembers(A, B), FakeKeys(OLD), sealed=True)
    keeper.on_message(B, KeyTurn(1, turn, seconds))
    keeper.on_message(B, KeyChange(2, turn, "install", NEW_KEY))
    assert [answer.done for _, answer in host.take(KeyAnswer)] == [False]


def test_a_change_that_is_none() -> None:
    """Foundation 2: an unknown action is refused by name."""
    host = FakeHost("a")
    keeper = KeyKeeper(host, FakeMembers(A, B), FakeKeys(OLD), sealed=True)
    keeper.on_message(B, KeyTurn(1, 1, TURN_SECONDS))
    keeper.on_message(B, KeyChange(2, 1, "explode", ""))
    assert host.take(KeyAnswer)[1][1].text == "'explode' is no change"


def test_askers_are_forgotten_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: the oldest goes first, never the one whose turn it is."""
    monkeypatch.setattr(warden, "ASKERS_MAX", 1)
    host = FakeHost("a")
    keeper = KeyKeeper(host, FakeMembers(A, B, C), FakeKeys(OLD), sealed=True)
    for source in (B, C):
        keeper.on_message(source, KeyTurn(1, 1, TURN_SECONDS))
        keeper.on_message(source, KeyChange(2, 1, "install", NEW_KEY))
    assert [answer.done for _, answer in host.take(KeyAnswer)] == [True] * 4


def test_keys_are_not_shown() -> None:
    """docs/keys.md: no key in a trace, an event or an error."""
    host = FakeHost("a")
    keeper = KeyKeeper(host, FakeMembers(A, B), FakeKeys(OLD), sealed=True)
    keeper.on_message(B, KeyTurn(1, 1, TURN_SECONDS))
    change = KeyChange(2, 1, "install", NEW_KEY)
    keeper.on_message(B, change)
    assert "secret" not in repr(change)
    assert host.events(KeysChanged) == [KeysChanged(B, "install", (OLD, NEW), "")]
    assert NEW in repr(KeyChange(2, 1, "use", NEW))
