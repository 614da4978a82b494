"""KeyKeeper: the keys of the whole group, asked and changed from one place.  Spec: foundation F17; docs/keys.md; docs/decisions.md H57.

A rotation has three steps, each asked of every member and reported by every member: ``install`` (all can read the new key), ``use`` (all
write with it), ``remove`` (no member reads the old one any more). A step that could leave a member unable to read another is refused:
``use`` unless every member said that it holds the key, ``remove`` while a member writes with it, or is silent. The key itself travels in
sealed messages only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from holdfast.errors import ConfigError, NotAMember, Unavailable, shown
from holdfast.events import Internal
from holdfast.features.keys.protocol.lists import NAMES_TIMEOUT, SAME, OtherLists, WeakList, page_of
from holdfast.features.keys.protocol.messages import KeyAnswer, KeyChange, KeyList, KeyNamed, KeyNames, KeyTurn
from holdfast.features.keys.protocol.survey import Answers, Survey
from holdfast.features.keys.protocol.warden import TEXT_CHARS_MAX, TURN_SECONDS, KeyringPort, Warden
from holdfast.host import Host, Member, Membership, Message, NodeId
from holdfast.kit.outbox import Outbox
from holdfast.kit.phase import Questions

ACTIONS = ("list", "install", "use", "remove")
TIMEOUT_MAX = TURN_SECONDS / 2  # the other half is for clocks, and for what is late on the road (H57)
LISTS_MAX = 16  # open at a time
KEY_CHARS_MAX = 128  # as base64 or hexadecimal, with room
KEY_ID_CHARS = 8
IDS_MAX = 16  # in one answer: twice what a keyring holds
SILENT = "no answer"
UNTOUCHED = "ready; nothing was changed"


class Report(NamedTuple):
    """What one member did."""

    member: NodeId
    done: bool
    text: str
    keys: tuple[str, ...]  # ids, the one it writes with first; empty if it did not say


Done = Callable[[tuple[Report, ...]], None]


class KeysAsked(Internal, frozen=True):
    """An operator here changes the keys of these; they were found ready, or ``force`` was said. The key itself is not in it."""

    family: ClassVar[str] = "care"
    action: str
    members: tuple[NodeId, ...]
    force: bool


class KeyKeeper:
    """Asks every member, and answers those who ask. ``sealed``: this group has a key; without one nothing here works."""

    handles = (KeyList, KeyTurn, KeyChange, KeyAnswer, KeyNames, KeyNamed)
    fingerprint = b""

    def __init__(self, host: Host, membership: Membership, ring: KeyringPort, *, sealed: bool) -> None:
        self.host, self.membership, self.sealed = host, membership, sealed
        self.weak = membership if isinstance(membership, WeakList) else None  # lists that may differ (H354)
        self.warden = Warden(host, membership, ring)
        self.questions = Questions()
        self.outbox = Outbox(host)
        self.counts: Counter[str] = Counter()  # asked, malformed, unsealed
        self._last_turn = 0
        self._open: dict[int, Inquiry] = {}
        self._last = 0

    def ask(self, action: str, key: str, timeout: float, done: Done, *, force: bool = False) -> None:
        """One step, for the whole group. ``key`` is the key itself for install, its id for use and remove, "" for list.

        ``done`` runs once, with a report for every member, by name. Raises ConfigError for bad input, Unavailable while another step of
        this agent is under way, NotAMember while this agent does not know who is. ``force`` goes on without those who are silent or not
        ready, and may cut them off.
        """
        assert timeout > 0
        key = self._checked(action, key)
        self._check_free(action)
        self._last += 1
        number = self._last

        def end(reports: tuple[Report, ...]) -> None:
            del self._open[number]
            done(reports)

        inquiry = self._open[number] = Inquiry(self, action, key, force=force, done=end)
        inquiry.start(min(timeout, TIMEOUT_MAX))

    def obstacle(self, action: str, key: str, held: KeyAnswer | None) -> str:
        """Why a member that answered so, in its turn, is not ready; "" if it is."""
        if held is None:
            return SILENT
        if not held.done:
            return held.text
        if held.listed != self.warden.listed():
            return "lists other members than this agent; try again when both know the same"
        if action == "use" and key not in held.ids:
            return f"does not hold key {key}; install it first"
        if action == "remove" and held.ids[:1] == (key,):
            return f"writes with key {key}; use another one first"
        return ""

    def next_turn(self) -> int:
        self._last_turn += 1
        return self._last_turn

    def start(self) -> None:
        """Nothing is asked before an operator does."""

    def on_away(self, seconds: float) -> None:
        """A step that was under way ends by its own deadline; what it still says is refused outside of its turn."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if not self.sealed:
            self.counts["unsealed"] += 1
        elif isinstance(message, KeyAnswer):
            self._on_answer(source, message)
        elif isinstance(message, KeyNamed):
            self.questions.answer(message.serial, source, message)
        else:
            self._on_question(source, message)

    def stop(self) -> None:
        self.outbox.clear()
        for inquiry in self._open.values():
            inquiry.cancel()

    def _on_question(self, source: NodeId, message: Message) -> None:
        self.counts["asked"] += 1
        if isinstance(message, KeyList):
            answer: Message | None = self.warden.say(message.serial)
        elif isinstance(message, KeyNames):
            answer = page_of(self.membership, message, self.warden.listed())
        elif isinstance(message, KeyTurn):
            answer = self.warden.on_turn(source, message)
        else:
            assert isinstance(message, KeyChange)
            answer = self.warden.on_change(source, message)
        if answer is not None:
            self.host.send(source, answer)

    def _on_answer(self, source: NodeId, message: KeyAnswer) -> None:
        ids = len(message.ids) <= IDS_MAX and all(is_key_id(each) for each in message.ids)
        if not ids or len(message.text) > TEXT_CHARS_MAX or not message.text.isprintable():
            self.counts["malformed"] += 1  # It is shown as silent: what it says cannot be shown.
            return
        if self.weak is not None and message.listed == self.warden.listed():
            message = replace(message, listed=SAME)  # Now: either list may change before all have answered.
        self.questions.answer(message.serial, source, message)

    def _check_free(self, action: str) -> None:
        lists = sum(each.action == "list" for each in self._open.values())
        if action == "list" and lists >= LISTS_MAX:
            raise Unavailable(f"keys: {LISTS_MAX} lists are being made already")
        if action != "list" and len(self._open) > lists:
            raise Unavailable("keys: another change is under way here; wait for its report")
        me = self.membership.get(self.host.me.name)
        if action != "list" and (me is None or me.id != self.host.me):
            raise NotAMember("keys: this agent is in no group now, so it cannot ask all members; try again when it is")

    def _checked(self, action: str, key: str) -> str:
        if not self.sealed:
            raise ConfigError("keys: this group has no key, and a key is sent in sealed messages only; start all agents with a key first")
        if action not in ACTIONS:
            raise ConfigError(f"action: {shown(action)}; accepted: {', '.join(ACTIONS)}")
        if action == "install" and not (0 < len(key) <= KEY_CHARS_MAX and key.isprintable()):
            raise ConfigError(f"key: {len(key)} characters; accepted: 1 to {KEY_CHARS_MAX}, as `holdfast keys generate` prints it")
        if action in {"use", "remove"}:
            key = key.lower()
            if not is_key_id(key):
                raise ConfigError(f"key: not the id of a key; accepted: {KEY_ID_CHARS} hexadecimal digits, as `holdfast keys list` shows")
        return key


class Inquiry:
    """One step, from the first question to the last report."""

    def __init__(self, keeper: KeyKeeper, action: str, key: str, *, force: bool, done: Done) -> None:
        self.action = action
        self._keeper, self._key, self._force, self._done = keeper, key, force, done
        self._turn = 0
        self._began_at = self._deadline = 0.0
        self._asked: dict[NodeId, Member] = {}
        self._held: dict[NodeId, KeyAnswer] = {}  # what they hold, in the turn that they gave us
        self._survey: Survey | None = None
        self._lists = None if keeper.weak is None else OtherLists(keeper.host.me, keeper.weak)

    def start(self, timeout: float) -> None:
        keeper = self._keeper
        me = keeper.host.me
        self._began_at = keeper.host.now
        self._deadline = self._began_at + timeout
        if self.action == "list":
            self._held[me] = keeper.warden.say(0)
        else:
            self._turn = keeper.next_turn()
            own = keeper.warden.on_turn(me, KeyTurn(0, self._turn, TURN_SECONDS))
            assert own is not None
            self._held[me] = own
        self._ask_all(keeper.host.now + timeout / 2)

    def cancel(self) -> None:
        if self._survey is not None:
            self._survey.cancel()

    def _others(self) -> list[Member]:
        """Listed here or by another member, and not asked yet."""
        keeper = self._keeper
        listed = [each for each in keeper.membership.members() if each.id.name != keeper.host.me.name]
        if self._lists is not None:
            known = {each.id for each in listed}
            listed += [each for life, each in sorted(self._lists.strangers.items()) if life not in known and not self._gave_up(life)]
        return [each for each in listed if each.id not in self._asked]

    def _gave_up(self, life: NodeId) -> bool:
        weak = self._keeper.weak
        return weak is not None and weak.gave_up(life)

    def _ask_all(self, deadline: float) -> None:
        """Until no member joined in the meantime, or half of the time is over."""
        others = self._others()
        self._asked.update((member.id, member) for member in others)

        def end(answers: Answers) -> None:
            self._note(answers)
            self._go_on(deadline)

        self._begin(others, self._question, deadline, end)

    def _go_on(self, deadline: float) -> None:
        """Until all that any of them lists were asked, or the time is over."""
        in_time = self._keeper.host.now < deadline
        if in_time and self._others():
            self._ask_all(deadline)
        elif not in_time or not self._ask_for_names(deadline):
            self._decide()

    def _ask_for_names(self, deadline: float) -> bool:
        """False: every list of those that answered was asked to its end."""
        lists = self._lists
        if lists is None or self.action == "list":
            return False
        page, lives = lists.to_ask({life: held for life, held in self._held.items() if life in self._asked and not self._gave_up(life)})

        def end(answers: Answers) -> None:
            lists.take(self._held, lives, answers)
            self._go_on(deadline)

        soon = min(deadline, self._keeper.host.now + NAMES_TIMEOUT)
        if lives:
            self._begin([self._asked[life] for life in lives], lists.question(page), soon, end)
        return bool(lives)

    def _question(self, serial: int) -> Message:
        return KeyList(serial) if self.action == "list" else KeyTurn(serial, self._turn, TURN_SECONDS)

    def _begin(self, members: list[Member], request: Callable[[int], Message], deadline: float, done: Callable[[Answers], None]) -> None:
        keeper = self._keeper
        gone = None if keeper.weak is None else keeper.weak.gave_up
        self._survey = Survey(keeper.host, keeper.questions, keeper.outbox, members, request, deadline=deadline, done=done, gone=gone)
        self._survey.start()

    def _note(self, answers: Answers) -> None:
        for life, answer in answers.items():
            assert isinstance(answer, KeyAnswer)
            self._held[life] = answer

    def _decide(self) -> None:
        if self.action == "list":
            self._report({}, "")
            return
        keeper = self._keeper
        obstacles = {life: why for life in self._all() if (why := self._obstacle(life)) and not self._gave_up(life)}
        # Installing takes nothing from a member: one that cannot be reached now is asked again later.
        if obstacles and not self._force and self.action != "install":
            self._report(obstacles, UNTOUCHED)
        elif keeper.host.now - self._began_at > TIMEOUT_MAX:
            self._report({}, "this agent was stopped; nothing was changed")
        else:
            self._change(obstacles)

    def _obstacle(self, life: NodeId) -> str:
        keeper, held = self._keeper, self._held.get(life)
        if self._lists is not None:
            listed = keeper.warden.listed()
            held = replace(held, listed=listed) if held is not None and life == keeper.host.me else self._lists.aligned(held, listed)
        return keeper.obstacle(self.action, self._key, held)

    def _change(self, obstacles: dict[NodeId, str]) -> None:
        keeper = self._keeper
        own = self._held[keeper.host.me]
        if own.done:
            keeper.host.emit(KeysAsked(self.action, tuple(self._all()), self._force))
            own = keeper.warden.on_change(keeper.host.me, KeyChange(0, self._turn, self.action, self._key))
        if not own.done:
            self._report({keeper.host.me: own.text}, "not asked: the first member, this one, refused")
            return
        # Our own answer stands for "this can be done": a key that does not parse is sent to no member.
        turns = [member for life, member in self._asked.items() if (held := self._held.get(life)) is not None and held.done]

        def end(answers: Answers) -> None:
            silent = {member.id: SILENT for member in turns if member.id not in answers}
            self._note(answers)
            self._held[keeper.host.me] = own
            unasked = {life: why for life, why in obstacles.items() if life not in answers}
            refused = {life: answer.text for life, answer in answers.items() if isinstance(answer, KeyAnswer) and not answer.done}
            self._report(unasked | silent | refused, "")

        self._begin(turns, lambda serial: KeyChange(serial, self._turn, self.action, self._key), self._deadline, end)

    def _end_turn(self) -> None:
        """The next operator need not wait; if this is lost, it waits until the time is over."""
        if self.action != "list":
            over = KeyTurn(0, self._turn, 0.0)
            self._keeper.warden.on_turn(self._keeper.host.me, over)
            for member in self._asked.values():
                self._keeper.outbox.put_member(member, over)

    def _all(self) -> list[NodeId]:
        return sorted([self._keeper.host.me, *self._asked])

    def _report(self, failed: dict[NodeId, str], text: str) -> None:
        """The members in ``failed`` did not; with a ``text`` none did."""
        self._end_turn()
        reports = []
        for life in self._all():
            held = self._held.get(life)
            why = failed.get(life) or (SILENT if held is None else text)
            if why and self._gave_up(life):
                continue  # It was listed when the step began.
            reports.append(Report(life, not why, why, () if held is None else held.ids))
        joined = [Report(member.id, False, "joined meanwhile and was not asked; do it again", ()) for member in self._others()]
        self._done(tuple(sorted([*reports, *joined])))


def is_key_id(text: str) -> bool:
    return len(text) == KEY_ID_CHARS and all(each in "0123456789abcdef" for each in text)
