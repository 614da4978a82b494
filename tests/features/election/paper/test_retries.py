"""Would-be leaders that do not answer: flaky, deaf, dying.  Spec: election 5.5, D12; paper 004, IV.A ("Non-responsive would-be
leaders")."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.features.election.protocol.facts import ElectionFailed
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.messages import Leader, NotifyLeader, OfElection
from holdfast.features.election.protocol.rules import Rules
from holdfast.host import Message
from tests.features.election.stand import BASE, HYBRID, NAME, OPTIMISTIC, PREFERRED, TIMEOUT, Stand, Town, life, ranked_names

ALL = [BASE, OPTIMISTIC, PREFERRED, HYBRID]
NODES = ranked_names(5)


class Lossy:
    """Loses the first ``times`` messages of some kinds to and from one member."""

    def __init__(self, member: str, times: int, *kinds: type[OfElection]) -> None:
        self.member, self.left, self.kinds = member, times, kinds

    def __call__(self, source: str, target: str, message: Message) -> bool:
        if self.left == 0 or self.member not in (source, target) or not isinstance(message, self.kinds):
            return False
        self.left -= 1
        return True


@pytest.mark.parametrize("made", ALL)
@pytest.mark.parametrize("kind", [NotifyLeader, Leader])
def test_a_flaky_leader_is_elected_all_the_same(made: Manner, kind: type[OfElection]) -> None:
    """IV.A: "It still elects the same would-be leader since it is present in at least one" RESPONSE: its first messages are lost."""
    town = Town(5, made=made, c=2, f=1).stand()
    town.lost = Lossy(town.names[0], 2, kind)
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[0]]


@pytest.mark.parametrize("made", ALL)
def test_a_leader_that_stays_deaf_is_replaced_when_lists_drop_it(made: Manner) -> None:
    """IV.A: "If the would-be leader continues being flaky/lossy, then the failure detector will detect it"; until then none leads."""
    town = Town(5, made=made, c=2, f=1)
    town.lost = Lossy(town.names[0], 1 << 30, OfElection)
    town.stand(*town.names)
    town.run(0.6)
    assert town.leaders() == []
    for viewer in town.names[1:]:
        town.lists[viewer].lose(town.names[0])
    town.run_until(lambda: town.leaders() == [town.names[1]])


@pytest.mark.parametrize("made", ALL)
def test_a_leader_that_dies_before_it_multicasts(made: Manner) -> None:
    """IV.A: "If the would-be leader itself crashes during the election (before it multicasts a LEADER message)": the next leads."""
    town = Town(5, made=made, c=2, f=1)
    first = town.names[0]

    def lost(source: str, target: str, message: Message) -> bool:
        if isinstance(message, NotifyLeader) and target == first:
            town.crash(first)
        return source == first and isinstance(message, Leader)

    town.lost = lost
    town.stand(*town.names)
    town.run_until(lambda: first in town.down)
    town.run(0.3)
    town.detect(first)
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[1]]


def silent(*, rules: Rules | None = None, **changes: Any) -> Stand:
    """An initiator whose nominee never answers."""
    stand = Stand(*NODES[:4], me=NODES[4], made=BASE, rules=rules, c=1, f=0, **changes).stand().quiet()
    stand.begin()
    stand.answer(NODES[1], [NODES[0]])
    return stand


def test_notifyleader_is_said_again_then_the_election() -> None:
    """5.5: two repeats, 1.5 TIMEOUT apart, then the detector is told to look (D12), and the election begins again after a pause."""
    stand = silent(notify_retries=2)
    assert len(stand.notified()) == 1
    for _ in range(2):
        stand.host.pass_time(1.5 * TIMEOUT + 0.001)
        assert [(name, final) for name, _, final in stand.notified()] == [(NODES[0], True)]
    assert stand.lists.probed == []
    stand.host.pass_time(1.5 * TIMEOUT + 0.001)
    assert stand.lists.probed == [life(NODES[0])]
    assert len(stand.facts(ElectionFailed)) == 1


def test_the_pause_doubles() -> None:
    """D12: U(0, 2 TIMEOUT), doubled per failure in a row, up to 16 times; without the rule it stays, and the detector is not told."""
    longest = {}
    for backoff in (True, False):
        stand = silent(notify_retries=0, rules=Rules(backoff=backoff))
        pauses = []
        for _ in range(4):
            stand.host.pass_time(1.5 * TIMEOUT + 0.001)
            state = stand.machine._core.contests[NAME]
            assert state.start is not None
            pauses.append(state.start.due_at - stand.host.now)
            stand.host.pass_time(pauses[-1] + 0.001)
            if state.run is not None and not state.run.done:
                stand.answer(NODES[1], [NODES[0]])
        longest[backoff] = max(pauses)
        assert max(pauses) <= (16 if backoff else 1) * 2 * TIMEOUT
        assert bool(stand.lists.probed) is backoff
    assert longest[True] > 2 * TIMEOUT
