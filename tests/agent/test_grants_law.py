"""F14-F16 one by one, without sockets and processes.  Spec: foundation 4 (Grants); docs/grants.md has the table."""

from __future__ import annotations

from typing import Any, cast

import pytest

from holdfast.agent.grants.bodies import Asked, Body
from holdfast.agent.grants.granted import TOKEN_FIRST_MIN, TOKEN_MAX
from holdfast.agent.grants.grants import BODIES_MAX, GRANTS_PER_SESSION_MAX, READING_INTERVAL
from holdfast.errors import ConfigError, Forked, HoldLost, Unavailable
from holdfast.events import AtRisk, Granted, Lost, Released, TokenRefused
from holdfast.kit.hold import Deposed
from holdfast.local import ends
from holdfast.local.calls import Acquire
from holdfast.local.ends import UNREAD, UNTAKEN
from tests.agent.law import KIND, Because, FakeBody, FakeHeld, FakeSession, Stand


def test_a_deadline_is_published_and_extended() -> None:
    """F14: the client hears token and deadline when it is granted, and each new deadline; the events name them."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    assert session.last.what == "granted"
    assert (session.last.token, session.last.deadline) == (stand.token, 1010.0)
    stand.host.pass_time(5.0)
    held.holder.on_extended(1015.0)
    assert (session.last.what, session.last.deadline) == ("extended", 1015.0)
    assert [event.grant.deadline for event in stand.host.events(Granted)] == [1010.0]
    assert stand.law.published_until == 1015.0


def test_stopped_releases_at_once() -> None:
    """F14: the client's own word, for all its bodies; saying it again, or too late, is no error."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session)
    stand.law.stopped(session, 1)
    assert held.calls == ["release"]
    assert session.said == ["granted", "released"]
    assert len(stand.host.events(Released)) == 1
    stand.law.stopped(session, 1)
    assert held.calls == ["release"]
    assert stand.host.timers == 0


def test_a_closed_socket_is_not_a_death() -> None:
    """F14: nothing is extended any more, and it is released when the published deadline has passed, not before."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    stand.leave(session)
    assert not held.renewing
    held.holder.on_extended(1100.0)  # A renewal that was under way: nobody was told, so it counts for nobody.
    stand.host.pass_time(9.999)
    assert held.calls == []
    stand.host.pass_time(0.001)
    assert held.calls == ["release"]
    assert session.forgets > 0


def test_a_confirmed_death_releases_at_once() -> None:
    """F14: the kernel's word about the only body, also while its socket is open in a child that it forked."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session)
    stand.kill(session)
    assert held.calls == ["release"]
    assert stand.law.counts["released: dead"] == 1


def test_a_death_is_seen_when_the_socket_closes() -> None:
    """F9: the kernel is asked, not a flag: a body that is dead by the time of the disconnect binds nobody."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session)
    assert session.client is not None
    session.client.dead = True
    stand.leave(session)
    assert held.calls == ["release"]


def test_a_command_outlives_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: the death of every body. The command that `holdfast run` started goes on: so does the grant, up to its deadline."""
    stand, body = Stand(), FakeBody(77)
    monkeypatch.setattr("holdfast.agent.grants.grants.body_of", lambda pid: cast(Body, body))
    session = stand.session()
    held = stand.hold(session, 10.0)
    stand.law.add_body(session, 1, 77)
    stand.kill(session)
    stand.leave(session)
    assert held.calls == []
    assert not held.renewing
    body.die()
    stand.host.settle()
    assert held.calls == ["release"]
    assert body.closed


def test_a_command_that_ends_before_its_client_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: the client is a body too, and goes on."""
    stand, body = Stand(), FakeBody(77)
    monkeypatch.setattr("holdfast.agent.grants.grants.body_of", lambda pid: cast(Body, body))
    session = stand.session()
    held = stand.hold(session)
    stand.law.add_body(session, 1, 77)
    body.die()
    stand.host.settle()
    assert held.calls == []
    assert held.renewing


@pytest.mark.parametrize("of", ["client", "command"])
def test_without_a_pidfd_only_the_deadline_counts(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: a body that the kernel cannot name is never confirmed dead, whatever is known of the others."""
    monkeypatch.setattr("holdfast.agent.grants.grants.body_of", lambda pid: None)
    stand = Stand()
    session = stand.session(named=of != "client")
    held = stand.hold(session, 10.0)
    if of == "command":
        stand.law.add_body(session, 1, 77)
        stand.kill(session)
    stand.leave(session)
    assert held.calls == []
    stand.host.pass_time(10.0)
    assert held.calls == ["release"]


def test_what_has_ended_is_not_extended() -> None:
    """F9: a renewal that comes in after the published deadline revives nothing: the client has stopped for good."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    stand.host.clock += 10.0  # Stopped for so long: the answer is read before any timer runs (F10).
    held.holder.on_extended(1100.0)
    assert session.said == ["granted", "lost"]
    assert held.calls == ["release"]
    assert len(stand.host.events(Lost)) == 1
    assert stand.host.events(Released) == []


def test_a_grant_that_is_not_renewed_is_lost_at_its_deadline() -> None:
    """F9: also if its kind says nothing."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    stand.host.pass_time(10.0)
    assert session.said == ["granted", "lost"]
    assert session.last.why == ends.LAPSED
    assert held.calls == ["release"]


def test_lost_by_its_protocol() -> None:
    """F15: the client is told; what it was told stands until its deadline, or until it stopped."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    held.holder.on_at_risk()
    held.holder.on_at_risk()
    held.holder.on_lost(Deposed())
    assert session.said == ["granted", "at_risk", "lost"]
    assert (session.last.why, session.last.deadline) == (ends.DEPOSED, 1010.0)
    assert held.calls == []
    assert len(stand.host.events(AtRisk)) == 1
    held.holder.on_extended(1100.0)
    stand.host.pass_time(10.0)
    assert held.calls == ["release"]
    assert [type(event) for event in stand.host.emitted] == [Granted, AtRisk, Lost]


def test_lost_before_it_was_granted() -> None:
    """A kind may give up: the client hears why, and nothing has to be given back."""
    stand = Stand()
    session = stand.session()
    held = stand.ask(session)
    held.holder.on_lost(Because("nobody votes"))
    assert (session.last.what, session.last.why, session.last.token) == ("lost", "nobody votes", 0)
    assert held.calls == []
    assert len(stand.law) == 0


def test_closing_the_stream_is_not_stopping() -> None:
    """Close: a grant ends as by Stopped only if that was said; else at its deadline, unheard."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    stand.law.close(session, 1)
    assert held.calls == []
    assert not held.renewing
    stand.law.stopped(session, 1)
    assert held.calls == ["release"]
    assert session.said == ["granted"]


@pytest.mark.parametrize("how", ["close", "disconnect", "stopped", "die"])
def test_asking_ends_without_a_grant(how: str) -> None:
    """What was not granted binds nobody: it is cancelled, once; a grant that comes too late is not published."""
    stand = Stand()
    session = stand.session()
    held = stand.ask(session)
    if how == "close":
        stand.law.close(session, 1)
    elif how == "disconnect":
        stand.leave(session)
    elif how == "stopped":
        stand.law.stopped(session, 1)
    else:
        stand.kill(session)
    held.holder.on_granted(TOKEN_FIRST_MIN, 2000.0)
    assert held.calls == ["cancel"]
    assert session.said == []
    assert len(stand.law) == 0


def test_a_client_that_does_not_read_is_not_extended() -> None:
    """Published is what was handed to the socket: while the client is paused its deadline stands, and the newest follows when it reads."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    session.paused = True
    stand.host.pass_time(5.0)
    held.holder.on_extended(1015.0)
    held.holder.on_extended(1016.0)
    assert session.said == ["granted"]
    session.paused = False
    stand.law.readable(session)
    assert (session.said, session.last.deadline) == (["granted", "extended"], 1016.0)
    session.paused = True
    stand.host.pass_time(6.0)
    held.holder.on_extended(1030.0)
    stand.host.pass_time(5.0)
    assert session.said == ["granted", "extended", "lost"]
    assert session.last.why == ends.UNREAD
    assert held.calls == ["release"]


def test_a_client_that_never_reads_its_grant_loses_it() -> None:
    """Limits: a grant that nobody heard of is not renewed for ever."""
    stand = Stand()
    session = stand.session()
    session.paused = True
    held = stand.hold(session, 10.0)
    for _ in range(3):
        stand.host.pass_time(3.0)
        held.holder.on_extended(stand.host.now + 10.0)
    assert held.calls == []
    stand.host.pass_time(1.0)
    assert held.calls == ["release"]
    assert stand.host.emitted == []


def test_what_nobody_was_told_needs_no_wait() -> None:
    """F14 binds by what was published: a grant that the client never heard of goes back as soon as it is not wanted."""
    stand = Stand()
    session = stand.session(named=False)
    session.paused = True
    held = stand.hold(session, 10.0)
    stand.leave(session)
    assert held.calls == ["release"]


def test_drain_waits_for_those_who_do_not_stop() -> None:
    """F14: all clients are asked to stop, nothing is extended, and it is over when the last one stopped, died or came to its deadline."""
    stand = Stand()
    stubborn, polite, waiting = stand.session(), stand.session(), stand.session()
    held = [stand.hold(stubborn, 10.0, name="x"), stand.hold(polite, 20.0, name="y"), stand.ask(waiting, name="z")]
    done: list[float] = []
    stand.law.drain(lambda: done.append(stand.host.now))
    assert stubborn.said == polite.said == ["granted", "stop"]
    assert waiting.ended == [(1, "Unavailable")]
    assert [each.calls for each in held] == [[], [], ["cancel"]]
    held[0].holder.on_extended(1100.0)
    stand.law.stopped(polite, 1)
    stand.host.pass_time(9.0)
    assert done == []
    with pytest.raises(Unavailable, match="leaving"):
        stand.ask(stand.session())
    stand.host.pass_time(1.0)
    assert done == [1010.0]
    assert [each.calls for each in held] == [["release"], ["release"], ["cancel"]]
    stand.law.reopen()
    stand.hold(stand.session())


def test_drain_of_nothing() -> None:
    """It is over at once, every time it is asked."""
    stand = Stand()
    done: list[int] = []
    stand.law.drain(lambda: done.append(1))
    stand.law.drain(lambda: done.append(2))
    assert done == [1, 2]


def test_a_grant_is_never_revived_by_another_connection() -> None:
    """F14: what one session held is nothing to the next; it gets its own token when it gets anything."""
    stand = Stand()
    first, second = stand.session(), stand.session()
    held = stand.hold(first, 10.0)
    stand.leave(first)
    stand.law.stopped(second, 1)
    with pytest.raises(HoldLost):
        stand.law.add_body(second, 1, 1)
    assert held.calls == []
    stand.host.pass_time(10.0)
    again = stand.hold(second)
    assert again is not held
    assert second.last.token > first.items[0][1].token


@pytest.mark.parametrize("token", [TOKEN_FIRST_MIN - 1, 0, -1, TOKEN_MAX + 1, 1 << 60])
def test_tokens_are_wall_clock_and_below_2_53(token: int) -> None:
    """F16, H175: what peers and seats said costs this hold, and not the agent: nobody acts under it, it goes back, and that is said."""
    stand = Stand()
    session = stand.session()
    held = stand.ask(session)
    held.holder.on_granted(token, 2000.0)
    assert (session.said, held.calls) == (["lost"], ["release"])
    assert f"its token {token} is not above {TOKEN_FIRST_MIN - 1}" in session.last.why
    assert stand.host.events(TokenRefused) == [TokenRefused(KIND, "x", 0, token, TOKEN_FIRST_MIN - 1)]
    assert stand.law.counts["token_refused"] == 1
    stand.hold(session, serial=2)
    assert session.last.what == "granted"


def test_tokens_grow() -> None:
    """F16: strictly, per kind, name and number; another number has its own."""
    stand = Stand()
    session = stand.session()
    stand.ask(session, 1).holder.on_granted(TOKEN_FIRST_MIN + 5, 2000.0, 3)
    stand.ask(session, 2).holder.on_granted(TOKEN_FIRST_MIN + 5, 2000.0, 4)
    stand.ask(session, 3, "y").holder.on_granted(TOKEN_FIRST_MIN + 5, 2000.0, 3)
    for serial, token in ((4, TOKEN_FIRST_MIN + 5), (5, TOKEN_FIRST_MIN + 4)):
        stand.ask(session, serial).holder.on_granted(token, 2000.0, 3)
        assert session.last.what == "lost"
    stand.ask(session, 6).holder.on_granted(TOKEN_FIRST_MIN + 6, 2000.0, 3)
    assert session.last.what == "granted"


def test_a_kind_may_answer_at_once() -> None:
    """The client hears that its call was taken before it hears that it was granted."""
    stand = Stand()
    session = stand.session()
    order: list[str] = []
    stand.kind.at_once = lambda holder: holder.on_granted(TOKEN_FIRST_MIN, 2000.0)
    stand.law.acquire(session, Acquire(1, KIND, "x", {}), lambda: order.append("answered"))
    order += session.said
    stand.host.settle()
    assert (order, session.said) == (["answered"], ["granted"])


def test_what_cannot_be_asked() -> None:
    """Bad input: one clear error that names the field; nothing is kept of it."""
    stand = Stand()
    session = stand.session()
    for error, kind, name, options in (
        (Unavailable, "moon", "x", {}),
        (ConfigError, KIND, "", {}),
        (ConfigError, KIND, "x" * 129, {}),
        (ConfigError, KIND, "a\nb", {}),
        (ConfigError, KIND, "x", {"bad": True}),
    ):
        with pytest.raises(error):
            stand.law.acquire(session, Acquire(1, kind, name, cast(dict[str, Any], options)), lambda: None)
    assert len(stand.law) == 0


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grants of one session and bodies of one grant are counted; another session is not concerned."""
    monkeypatch.setattr("holdfast.agent.grants.grants.body_of", lambda pid: cast(Body, FakeBody(pid)))
    stand = Stand()
    session = stand.session()
    for serial in range(GRANTS_PER_SESSION_MAX):
        stand.ask(session, serial + 1)
    with pytest.raises(Unavailable, match="too many"):
        stand.ask(session, 1000)
    other = stand.session()
    stand.hold(other)
    for pid in range(BODIES_MAX):
        stand.law.add_body(other, 1, pid + 10)
    with pytest.raises(Unavailable, match="bodies"):
        stand.law.add_body(other, 1, 99)


def test_a_child_cannot_acquire_on_its_dead_parents_connection() -> None:
    """A fork is not the body: whoever asks on the connection of a dead process is told so."""
    stand = Stand()
    session = stand.session()
    assert session.client is not None
    session.client.dead = True
    with pytest.raises(Forked):
        stand.ask(session)


def test_keys_are_withdrawn_when_nobody_acts() -> None:
    """F14 for the ring: departing need not wait as soon as all clients that were told have stopped or died, and not before."""
    stand = Stand()
    withdrawn: list[float] = []
    stand.law.keys.withdrawn = lambda: withdrawn.append(stand.host.now)
    first, second, third = stand.session(), stand.session(), stand.session()
    for session, until in ((first, 1010.0), (second, 1020.0), (third, 1001.0)):
        stand.law.keys.tell(session, until)
    stand.law.keys.stopped(first)
    assert withdrawn == []
    stand.host.pass_time(2.0)  # The third one's time is over.
    stand.leave(second)
    assert withdrawn == []
    assert second.forgets == 0, "its death still matters"
    stand.kill(second)
    assert withdrawn == [1002.0]
    stand.host.pass_time(30.0)
    assert second.forgets > 0
    stand.law.keys.stopped(second)
    assert withdrawn == [1002.0]


def test_clients_that_are_gone_are_forgotten() -> None:
    """A process that asks for a key on one short connection after the other costs nothing once its answers have ended."""
    stand = Stand()
    for _ in range(50):
        session = stand.session()
        stand.law.keys.tell(session, stand.host.now + 0.5)
        stand.leave(session)
        stand.host.pass_time(1.0)
        assert session.forgets
    assert not stand.law.keys._told


# What the agent ends itself.


class FakeReaper:
    """Notes when it is begun; is over when the test says so."""

    def __init__(self, *parts: Any, **named: Any) -> None:
        self.before, self.begun, self.over, self.left = 0.0, False, False, False
        self.looked: Any = None

    def add(self, body: Body | None, asked: Asked) -> None:
        self.before = asked.before

    def note(self, now: float) -> None:
        pass

    def begin(self, looked: Any) -> None:
        self.begun, self.looked = True, looked

    def leave(self) -> None:
        self.left = True


@pytest.fixture
def reaped(monkeypatch: pytest.MonkeyPatch) -> tuple[Stand, FakeSession, FakeHeld, FakeBody, FakeReaper]:
    """A hold of ten seconds whose command the agent is to end half a second before its deadline."""
    monkeypatch.setattr("holdfast.agent.grants.reaper.Reaper", FakeReaper)
    stand, body = Stand(), FakeBody(77)
    monkeypatch.setattr("holdfast.agent.grants.grants.body_of", lambda pid: cast(Body, body))
    session = stand.session()
    held = stand.hold(session, 10.0)
    stand.law.add_body(session, 1, 77, Asked(0.5, "", 0))
    reaper = stand.law.all[0].reaper
    return stand, session, held, body, cast(FakeReaper, reaper)


Reaped = tuple[Stand, FakeSession, FakeHeld, FakeBody, FakeReaper]


def test_the_agent_ends_a_command_before_the_deadline(reaped: Reaped) -> None:
    """H150: so long before the deadline as the client asked for; an extension moves that instant, and none is told once it has begun."""
    stand, session, held, _, reaper = reaped
    stand.host.pass_time(5.0)
    held.holder.on_extended(1015.0)
    begun = []
    for step in (9.4, 0.1):
        stand.host.pass_time(step)
        begun.append(reaper.begun)
    assert begun == [False, True]
    held.holder.on_extended(1030.0)
    assert session.last.deadline == 1015.0
    assert held.calls == []
    stand.host.pass_time(0.5)
    assert (held.calls, reaper.left) == (["release"], True)


def test_a_dead_client_leaves_its_command_to_the_agent(reaped: Reaped) -> None:
    """F14, H150: its command is ended at once, and the hold is free when all bodies are dead and nothing else of the command was found."""
    stand, session, held, body, reaper = reaped
    stand.kill(session)
    assert reaper.begun
    body.die()
    stand.host.settle()
    assert held.calls == []
    reaper.over = True
    reaper.looked()
    stand.host.settle()
    assert held.calls == ["release"]


def test_a_command_that_has_stopped_is_left_alone(reaped: Reaped) -> None:
    """H150: after Stopped the agent ends nobody."""
    stand, session, held, _, reaper = reaped
    stand.law.stopped(session, 1)
    stand.host.pass_time(20.0)
    assert (held.calls, reaper.begun, reaper.left) == (["release"], False, True)


def test_who_did_not_ask_is_never_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """H150: a body that was only registered to be watched, and a client that merely holds something, outlive their deadline."""
    stand = Stand()
    monkeypatch.setattr("holdfast.agent.grants.grants.body_of", lambda pid: cast(Body, FakeBody(77)))
    session = stand.session()
    stand.hold(session, 10.0)
    stand.law.add_body(session, 1, 77)
    assert stand.law.all[0].reaper is None


def test_what_is_not_confirmed_is_not_extended() -> None:
    """H146, F14: a client that does not say that it took a grant up (it is stopped, and reads nothing) has its first deadline and no other;
    then it is lost and goes back, however often it was renewed."""
    stand = Stand()
    session = stand.session(confirms=False)
    held = stand.hold(session, 10.0)
    for _ in range(4):
        stand.host.pass_time(2.0)
        held.holder.on_extended(stand.host.now + 10.0)
    assert (session.said, held.calls) == (["granted"], [])
    stand.host.pass_time(2.0)
    assert (session.said, held.calls) == (["granted", "lost"], ["release"])
    assert session.last.why == UNTAKEN
    with pytest.raises(HoldLost):
        stand.law.confirm(session, 1, stand.token)


def test_what_is_confirmed_is_extended_at_once() -> None:
    """H146: with the confirmation comes what was renewed meanwhile, and all later renewals. Said twice it changes nothing."""
    stand = Stand()
    session = stand.session(confirms=False)
    held = stand.hold(session, 10.0)
    stand.host.pass_time(9.0)
    held.holder.on_extended(stand.host.now + 10.0)
    for _ in range(2):
        stand.law.confirm(session, 1, stand.token)
        assert session.said == ["granted", "extended"]
        assert session.last.deadline == stand.host.now + 10.0
    stand.host.pass_time(5.0)
    held.holder.on_extended(stand.host.now + 10.0)
    assert (session.said, held.calls) == (["granted", "extended", "extended"], [])


def test_a_confirmation_after_the_deadline_is_none() -> None:
    """F9: the word of a client comes in when its deadline has passed, before any timer had its turn. Nothing is revived."""
    stand = Stand()
    session = stand.session(confirms=False)
    held = stand.hold(session, 10.0)
    held.holder.on_extended(stand.host.now + 20.0)
    stand.host.pause(11.0)
    with pytest.raises(HoldLost):
        stand.law.confirm(session, 1, stand.token)
    assert (session.said, held.calls) == (["granted", "lost"], ["release"])


def test_only_what_was_read_is_confirmed() -> None:
    """H146: who names the token has read it. A confirmation in advance, or a guess, is refused and confirms nothing."""
    stand = Stand()
    session = stand.session(confirms=False)
    held = stand.ask(session)
    with pytest.raises(ConfigError, match="not granted yet"):
        stand.law.confirm(session, 1, 0)
    session.paused = True
    held.holder.on_granted(stand.token + 1, stand.host.now + 10.0)
    with pytest.raises(ConfigError, match="not granted yet"):
        stand.law.confirm(session, 1, stand.token + 1)
    session.paused = False
    stand.law.readable(session)
    with pytest.raises(ConfigError, match="token: 5; accepted is the one that was granted"):
        stand.law.confirm(session, 1, 5)
    held.holder.on_extended(stand.host.now + 20.0)
    assert session.said == ["granted"]


def test_a_late_reader_is_told_how_long_it_was() -> None:
    """H146: the item has the length of the hold, so that a client that reads it late takes its rest for its rest."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    assert session.last.length == 10.0
    held.holder.on_extended(stand.host.now + 12.0)
    assert session.last.length == 0.0


def test_a_client_that_is_stopped_loses_what_it_holds() -> None:
    """H148, F14: no deadline is published to a client that has not read the one before. Renewals go on, and it is lost and goes back when
    the last published one has passed; it says so."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    session.read = session.sent
    for _ in range(6):
        stand.host.pass_time(2.0)
        if not held.calls:
            held.holder.on_extended(stand.host.now + 10.0)
    assert session.said == ["granted", "extended", "lost"]
    assert held.calls == ["release"]
    assert session.last.why == UNREAD
    assert stand.host.now == session.items[1][1].deadline


def test_a_client_that_reads_again_is_extended_at_once() -> None:
    """H148: the newest deadline follows within READING_INTERVAL of its reading, without waiting for the next renewal."""
    stand = Stand()
    session = stand.session()
    held = stand.hold(session, 10.0)
    session.read = session.sent
    for _ in range(3):
        stand.host.pass_time(2.0)
        held.holder.on_extended(stand.host.now + 10.0)
    assert session.said == ["granted", "extended"]
    session.read = None
    stand.host.pass_time(READING_INTERVAL)
    assert session.said == ["granted", "extended", "extended"]
    assert session.last.deadline == 1016.0
    stand.law.stopped(session, 1)
    assert held.calls == ["release"]
