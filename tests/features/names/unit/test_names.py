"""Names on fake hosts: one process per name, whoever starts when.  Spec: foundation F1, F5, F6; docs/decisions.md H56."""

from __future__ import annotations

import pytest

from holdfast.features.names.protocol import names
from holdfast.features.names.protocol.messages import Known, Sighting, WhoIs
from holdfast.features.names.protocol.names import ADDRESSES_MAX, ASK_EVERY, ASKED_MAX, BOOT_MAX, LOOK_PERIOD, TRIES, Names
from holdfast.host import Address, NodeId
from tests.support.fake_host import FakeHost, Sent
from tests.support.fake_members import FakeMembers

ME = NodeId("web", 50)
HOME, ELSEWHERE, SEED = Address("home", 1), Address("elsewhere", 1), Address("seed", 1)
SEED_LIFE = NodeId("seed", 1)
PATIENCE = ASK_EVERY * TRIES


class Stand:
    """One process of the name, and what it was told."""

    def __init__(self, *greeted: Address, me: NodeId = ME, address: Address = HOME) -> None:
        self.host = FakeHost(me.name, me.boot)
        self.host.address = address
        self.members = FakeMembers()
        self.said: list[object] = []
        self.names = Names(
            self.host,
            self.members,
            greeted,
            clear=lambda: self.said.append("clear"),
            conflict=lambda life, address: self.said.append((life, address)),
            behind=self.said.append,
        )
        self.names.start()
        self.host.pass_time(0.0)

    def asked(self) -> list[Address]:
        return [to for to, _ in self.host.take(WhoIs) if isinstance(to, Address) and not isinstance(to, NodeId)]

    def answer(self, source: NodeId, *others: Sighting, clear: bool = True, to: Address = SEED) -> None:
        """An answer to the latest question to that address."""
        question = self._latest(to)
        self.names.on_message(source, Known(question.serial, source, clear, others))
        if self._latest(to) != question:  # Asked once more, for a proof that it has our name: whoever lives there answers that too.
            self.names.on_message(source, Known(self._latest(to).serial, source, clear, others))

    def _latest(self, to: Address) -> WhoIs:
        return next(sent.message for sent in reversed(self.host.sent) if sent.to == to and isinstance(sent.message, WhoIs))


def test_nobody_to_ask() -> None:
    """F5: the first of a group has its name; it hears so after start, not inside."""
    stand = Stand()
    assert stand.said == ["clear"]
    assert Stand(HOME).said == ["clear"]  # its own address in its list of seeds


def test_nobody_knows_another_life() -> None:
    """F5: clear as soon as everybody has answered."""
    stand = Stand(SEED, ELSEWHERE)
    stand.answer(SEED_LIFE)
    assert stand.said == []
    stand.answer(NodeId("x", 1), to=ELSEWHERE)
    assert stand.said == ["clear"]
    assert stand.names.is_clear


def test_everybody_is_silent() -> None:
    """F5: clear when all had time to answer, each asked several times."""
    stand = Stand(SEED)
    stand.host.pass_time(PATIENCE - 0.01)
    assert stand.said == []
    assert stand.asked() == [SEED] * TRIES
    stand.host.pass_time(0.02)
    assert stand.said == ["clear"]


@pytest.mark.parametrize("boot", [10, 90])
def test_a_living_member_keeps_its_name(boot: int) -> None:
    """F5: the starting one goes, whichever boot is higher; it says who has the name and where."""
    stand = Stand(SEED)
    stand.answer(SEED_LIFE, Sighting(boot, ELSEWHERE))
    assert stand.said == []
    stand.answer(NodeId("web", boot), to=ELSEWHERE)
    assert stand.said == [(NodeId("web", boot), ELSEWHERE)]
    stand.host.pass_time(100)
    assert len(stand.said) == 1
    assert stand.host.timers == 0


def test_the_wall_clock_went_back() -> None:
    """F5: a higher boot is remembered and its address is silent: boot := that + 1."""
    stand = Stand(SEED)
    stand.answer(SEED_LIFE, Sighting(90, ELSEWHERE), Sighting(70, Address("third", 1)))
    stand.host.pass_time(PATIENCE + 0.01)
    assert stand.said == [90]


def test_at_our_own_address_it_was_ourselves() -> None:
    """F5, F6: two cannot listen at one address; a former life there is not asked, and its boot counts at once."""
    stand = Stand(SEED)
    stand.answer(SEED_LIFE, Sighting(40, HOME))
    assert stand.said == ["clear"]
    stand = Stand(SEED)
    stand.answer(SEED_LIFE, Sighting(60, HOME))
    assert stand.said == [60]


def test_a_former_life_elsewhere_that_is_silent() -> None:
    """F5: a process that moved; its former place is silent, or has another process."""
    stand = Stand(SEED)
    stand.answer(SEED_LIFE, Sighting(40, ELSEWHERE))
    stand.answer(NodeId("other", 7), to=ELSEWHERE)
    assert stand.said == ["clear"]


def test_the_same_boot_elsewhere() -> None:
    """F1: two that started in one millisecond are one to the network; both take another boot."""
    stand = Stand(SEED)
    stand.answer(SEED_LIFE, Sighting(ME.boot, ELSEWHERE))
    stand.host.pass_time(PATIENCE + 0.01)
    assert stand.said == [ME.boot]


def test_of_two_that_start_together_the_later_goes() -> None:
    """H56: both still starting: the higher boot goes. The lower one need not wait for that: clear or not, it stays."""
    later = Stand(SEED)
    later.answer(SEED_LIFE, Sighting(40, ELSEWHERE))
    later.answer(NodeId("web", 40), clear=False, to=ELSEWHERE)
    assert later.said == [(NodeId("web", 40), ELSEWHERE)]
    former = Stand(SEED)
    former.answer(SEED_LIFE, Sighting(60, ELSEWHERE))
    former.answer(NodeId("web", 60), clear=False, to=ELSEWHERE)
    assert former.said == ["clear"]


def ask(stand: Stand, source: NodeId, address: Address, *, clear: bool) -> Known:
    stand.names.on_message(source, WhoIs(9, address, clear))
    ((to, answer),) = stand.host.take(Known)
    assert to == source
    return answer


def test_whoever_asks_tells_that_it_lives() -> None:
    """H56: of two members the higher boot goes, whichever of them found the other; a starting one goes by itself."""
    for clear, boot, goes in [(True, 40, True), (True, 60, False), (False, 40, False), (False, 60, False)]:
        stand = Stand()
        answer = ask(stand, NodeId("web", boot), ELSEWHERE, clear=clear)
        assert answer == Known(9, ME, True, ())
        if goes:
            stand.answer(NodeId("web", boot), clear=clear, to=ELSEWHERE)  # the proof
        assert stand.said == ["clear", *([(NodeId("web", boot), ELSEWHERE)] if goes else [])]


@pytest.mark.parametrize("boot", [40, 60])
def test_a_question_during_our_own(boot: int) -> None:
    """H56: another one starts while we do: its question tells as much as its answer would."""
    stand = Stand(SEED)
    stand.host.pass_time(0.1)
    ask(stand, NodeId("web", boot), ELSEWHERE, clear=False)
    if boot == 40:
        stand.answer(NodeId("web", boot), clear=False, to=ELSEWHERE)  # the proof
    stand.host.pass_time(PATIENCE)
    assert stand.said == [(NodeId("web", 40), ELSEWHERE)] if boot == 40 else ["clear"]


def test_whom_to_ask_is_known_later() -> None:
    """F5: names of seeds are looked up first; until then nobody's name is clear."""
    host, said = FakeHost("web", 50), list[str]()
    late = Names(
        host, FakeMembers(), None, clear=lambda: said.append("clear"), conflict=lambda life, address: None, behind=lambda boot: None
    )
    late.start()
    host.pass_time(10.0)
    late.greet([SEED])
    assert (said, host.sent) == ([], [])
    host.pass_time(PATIENCE + 0.01)
    assert said == ["clear"]
    assert len(host.take(WhoIs)) == TRIES


def test_the_list_before_our_first_question() -> None:
    """H56: whatever comes before the first timer, nobody has its name before everybody it knows was asked."""
    host, said, members = FakeHost("web", 50), list[str](), FakeMembers()
    host.address = HOME
    early = Names(host, members, [SEED], clear=lambda: said.append("clear"), conflict=lambda life, address: None, behind=lambda boot: None)
    early.start()
    members.join(NodeId("web", 40), ELSEWHERE)
    ((_, question),) = host.take(WhoIs)
    early.on_message(NodeId("x", 1), Known(question.serial, NodeId("x", 1), True, ()))
    assert said == []
    host.pass_time(0.0)
    assert [to for to, _ in host.take(WhoIs)] == [SEED]
    host.pass_time(PATIENCE + 0.01)
    assert said == ["clear"]


def test_what_is_known_is_told() -> None:
    """F5: the member list, and who asked before; never the asker's own life."""
    stand = Stand()
    stand.members.join(NodeId("db", 3), ELSEWHERE)
    assert ask(stand, NodeId("db", 5), SEED, clear=False).others == (Sighting(3, ELSEWHERE),)
    assert ask(stand, NodeId("db", 5), SEED, clear=False).others == (Sighting(3, ELSEWHERE),)
    assert set(ask(stand, NodeId("db", 7), HOME, clear=False).others) == {Sighting(3, ELSEWHERE), Sighting(5, SEED)}


def test_of_one_place_the_highest_boot_is_told() -> None:
    """F5: whoever starts there again must be above all of them."""
    stand = Stand()
    for boot in (5, 9, 7):
        ask(stand, NodeId("db", boot), ELSEWHERE, clear=False)
    assert ask(stand, NodeId("db", 8), ELSEWHERE, clear=False).others == (Sighting(9, ELSEWHERE),)


def test_the_member_list_shows_another() -> None:
    """H56: found afterwards: ask it, and the higher boot goes."""
    stand = Stand()
    stand.members.join(NodeId("web", 40), ELSEWHERE)
    stand.answer(NodeId("web", 40), to=ELSEWHERE)
    assert stand.said == ["clear", (NodeId("web", 40), ELSEWHERE)]


def test_a_listed_life_at_our_own_address() -> None:
    """F1, H330: who has its name hears of a later life at its own address, where no process can be asked, and begins again above it."""
    stand = Stand()
    stand.members.join(NodeId("web", 90), HOME)
    assert stand.said == ["clear", 90]
    stand = Stand()
    stand.members.join(NodeId("web", 10), HOME)
    assert stand.said == ["clear"]


def test_a_listed_life_that_is_over() -> None:
    """H56: silent, or at our own address, or ourselves: nothing follows."""
    stand = Stand()
    for life, address in [(NodeId("web", 40), ELSEWHERE), (NodeId("web", 60), ELSEWHERE), (NodeId("web", 45), HOME), (ME, HOME)]:
        stand.members.join(life, address)
        assert set(stand.asked()) <= {ELSEWHERE}
        stand.host.pass_time(PATIENCE + 0.01)
    assert stand.said == ["clear"]


def test_the_list_is_looked_at_again() -> None:
    """H56: a question that was lost is asked again while the list shows another life."""
    stand = Stand()
    stand.members.join(NodeId("web", 60), ELSEWHERE)
    stand.host.pass_time(PATIENCE + 1.0)
    stand.asked()
    stand.host.pass_time(LOOK_PERIOD)
    assert stand.asked()


BAD = [
    Sighting(0, ELSEWHERE),
    Sighting(-5, ELSEWHERE),
    Sighting(BOOT_MAX, ELSEWHERE),
    Sighting(9, Address("", 1)),
    Sighting(9, Address("x", 0)),
]


@pytest.mark.parametrize(
    "bad", [*BAD, Sighting(9, Address("x" * 256, 1)), Sighting(9, Address("\n", 1)), Sighting(9, Address("x", 1 << 16))]
)
def test_what_no_life_can_be(bad: Sighting) -> None:
    """Foundation 2: what a peer says is looked at; a boot beyond all years would end every later start of the name."""
    stand = Stand(SEED)
    stand.answer(SEED_LIFE, bad)
    assert stand.said == ["clear"]
    assert stand.names.counts["malformed"] == 1


def test_an_answer_in_somebody_elses_name() -> None:
    """F3: who answers is said by the envelope."""
    stand = Stand(SEED)
    question = stand.host.take(WhoIs)[0][1]
    stand.names.on_message(SEED_LIFE, Known(question.serial, NodeId("web", 40), True, ()))
    stand.names.on_message(SEED_LIFE, WhoIs(1, Address("", 0), False))
    assert stand.said == []
    assert stand.names.counts["malformed"] == 2


def test_questions_are_limited() -> None:
    """F17: so many addresses in one inquiry; the overflow is counted."""
    stand = Stand(*(Address(f"s{number}", 1) for number in range(ASKED_MAX + 3)))
    assert len(stand.asked()) == ASKED_MAX
    assert stand.names.counts["too_many"] == 3


def test_what_is_kept_in_mind_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: names, places of each, and what we were told of our own; the oldest goes first."""
    stand = Stand()
    for number in range(ADDRESSES_MAX + 2):
        stand.members.join(NodeId("db", 3), Address(f"p{number}", 1))
    others = ask(stand, NodeId("db", 9), SEED, clear=False).others
    assert [each.address.host for each in others] == [f"p{number}" for number in range(2, ADDRESSES_MAX + 2)]
    monkeypatch.setattr(names, "NAMES_MAX", 2)
    for name in ("x", "y", "z"):
        stand.members.join(NodeId(name, 1), ELSEWHERE)
    stand.members.keep([])
    assert ask(stand, NodeId("db", 9), SEED, clear=False).others == ()
    monkeypatch.setattr(names, "TOLD_MAX", 0)
    stand.members.join(NodeId("web", 60), ELSEWHERE)
    assert stand.names.counts["too_many"] == 1


def test_stop_leaves_nothing() -> None:
    """Machine: no timer, no question."""
    stand = Stand(SEED)
    stand.names.stop()
    assert stand.host.timers == 0
    assert stand.said == []


@pytest.mark.parametrize("first_clear", [False, True])
@pytest.mark.parametrize("second_clear", [False, True])
@pytest.mark.parametrize("order", [0, 1])
def test_exactly_one_goes(first_clear: bool, second_clear: bool, order: int) -> None:
    """H56: however far both are, and whoever asks first: one goes, one stays."""
    pair = [Stand(ELSEWHERE), Stand(HOME, me=NodeId("web", 60), address=ELSEWHERE)]
    for stand, clear in zip(pair, (first_clear, second_clear), strict=True):
        stand.names.is_clear = clear
    alive = list(pair) if order == 0 else list(reversed(pair))
    for _ in range(60):
        for stand in list(alive):
            sent, stand.host.sent = stand.host.sent, []
            for other in alive:
                _carry(stand, other, sent)
        alive = [stand for stand in alive if not any(isinstance(each, tuple) for each in stand.said)]
        for stand in alive:
            stand.host.pass_time(0.1)
    assert len(alive) == 1
    assert alive[0] is pair[1 if second_clear and not first_clear else 0]


def _carry(source: Stand, target: Stand, sent: list[Sent]) -> None:
    for to, message in sent:
        if source is not target and to in (target.host.me, target.host.address):
            target.names.on_message(source.host.me, message)


def test_a_forged_word_ends_nobody() -> None:
    """H175: whoever has the key can say that it has our name, as an answer or as a question. It is asked where it says that it listens,
    under a serial that only whoever reads there knows; one that does not answer costs nothing, and a guess at the serial nothing either."""
    starting, member = Stand(SEED), Stand()
    question = starting.host.take(WhoIs)[0][1]
    starting.names.on_message(NodeId("web", 10), Known(question.serial, NodeId("web", 10), True, ()))
    ask(member, NodeId("web", 10), ELSEWHERE, clear=True)
    for stand in (starting, member):
        for serial in range(1, 100):
            stand.names.on_message(NodeId("web", 10), Known(serial, NodeId("web", 10), True, ()))
        stand.host.pass_time(PATIENCE + 0.01)
        assert stand.said == ["clear"]
        assert stand.names.counts["unproved"] == 1


def test_a_proof_by_another_name() -> None:
    """H175: somebody lives there, and has a name of its own."""
    stand = Stand()
    ask(stand, NodeId("web", 10), ELSEWHERE, clear=True)
    stand.answer(NodeId("other", 3), to=ELSEWHERE)
    stand.host.pass_time(PATIENCE + 0.01)
    assert stand.said == ["clear"]
    assert stand.names.counts["unproved"] == 1
