"""A ticket whose guardians are lost for good, and the operator who says that its holder is dead.  Spec: tickets 9.5, D27; G3.

Ring placement: the guardians of a ticket are the three agents before it on the circle. d holds the first ticket, whose cell the seat keeps;
then come e, f and g, and each has the others and d as its guardians. When e, f and g crash together, one of three is left to each: d.
"""

from __future__ import annotations

import pytest

from holdfast.features.tickets.protocol.abandoning import ABANDONED_FENCE
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.cview import Entry
from holdfast.features.tickets.protocol.facts import CellLost
from holdfast.features.tickets.protocol.messages import AckUpdate, Update
from holdfast.features.tickets.protocol.values import Key
from tests.features.tickets.stand import POOL, Asker, Stand

CONFIG = TicketConfig(period=0.5, lease=2.0, rtx=0.1, k=1, guardians="ring")
N = 16
NOTICED = 10.0  # seconds in which d has found out that it cannot take in its successor


def ring() -> tuple[Stand, dict[str, Asker]]:
    """Everybody holds a ticket, and the guardians are where the paper wants them."""
    stand = Stand("adefgh", seats=1, config=CONFIG)
    users = {name: stand.acquire(name, N, run=3.0) for name in "defg"}
    stand.run(10.0)
    assert all(user.acting for user in users.values())
    return stand, users


def guardians(stand: Stand, name: str) -> set[str]:
    (it,) = stand.coordinators(name)
    return {"a" if place.slot == 0 else place.agent.life.name for place in it.places}


def lost() -> tuple[Stand, dict[str, Asker]]:
    """The majority of the guardians of e is gone, and e with them; so it is with f and g."""
    stand, users = ring()
    assert [guardians(stand, name) for name in "efg"] == [{"d", "f", "g"}, {"d", "e", "g"}, {"d", "e", "f"}]
    for name in "efg":
        stand.crash(name)
    stand.run(NOTICED)
    return stand, users


def abandoned(stand: Stand, at: str, number: int, seconds: float = 10.0) -> list[str]:
    answers: list[str] = []
    stand.tickets[at].abandon(POOL, number, answers.append)
    stand.run(seconds)
    return answers


def test_exclusivity_is_not_traded_for_it() -> None:
    """D27, H127: while nobody speaks for it, its arc has no owner and gets none; that is said once, and counted. The rest of the pool
    works, although d takes the dead ones for its predecessors still."""
    stand, _ = lost()
    (holder,) = stand.coordinators("d")
    assert (holder.val.succ.agent.life.name, holder.val.length) == ("e", N // 2)
    assert len([event for name, event in stand.events(CellLost) if name == "d"]) == 1
    assert stand.tickets["d"].counts["cells_lost"] == 1
    more = [stand.acquire("h", N, run=1.0) for _ in range(N)]
    had = {user.number for user in more if user.acting}
    assert len(had) == N // 2 - 1
    assert had.isdisjoint(range(1, N // 2 + 1))  # the arcs of e, f and g


@pytest.mark.parametrize("at", ["d", "h"])
def test_abandoned_and_used_again(at: str) -> None:
    """9.5: after the operator's word the arc is its predecessor's, and whatever is in it has tokens beyond any that the lost guardians may
    have seen (fence + 2^20). Asked for at the predecessor's own agent, and at one that holds nothing; one lost ticket after the other."""
    stand, users = lost()
    for done, name in enumerate("efg", 1):
        assert abandoned(stand, at, users[name].number) == [""]
        assert stand.tickets["d"].counts["abandoned"] == done
    (holder,) = stand.coordinators("d")
    assert (holder.val.length, holder.val.succ.rid, users["d"].acting) == (N, holder.rid, True)
    again = {user.number: user for user in [stand.acquire("h", N, run=1.0) for _ in range(N - 1)]}
    assert sorted(again) == list(range(1, N))
    assert all(user.acting for user in again.values())
    assert min(user.token for user in again.values()) > max(user.token for user in users.values()) + ABANDONED_FENCE


def test_who_comes_back_has_nothing() -> None:
    """9.5, G1: if the holder lives after all, it cannot renew what was abandoned: it has stopped by its own clock."""
    stand, users = ring()
    mute = {"e", "f", "g"}
    stand.lose = lambda source, target, message: source in mute or target in mute
    stand.run(NOTICED)
    assert not users["e"].acting
    assert abandoned(stand, "h", users["e"].number) == [""]
    taken = [stand.acquire("h", N, run=1.0) for _ in range(N // 2)]
    stand.lose = lambda source, target, message: False
    stand.run(20.0)
    assert len(stand.holder(users["e"].number)) <= 1
    assert all(user.acting for user in taken if user.number >= 0)
    assert users["e"].lost != []


def test_refused_while_it_can_be_read() -> None:
    """9.5: a ring whose cells all answer needs no operator; the dead are excluded by themselves."""
    stand, users = ring()
    assert abandoned(stand, "h", users["e"].number) == ["every cell of the pool answers; a dead holder is excluded by itself"]


def test_refused_for_another_ticket() -> None:
    """9.5: nobody knows what lies behind a cell that cannot be read; that one comes first."""
    stand, users = lost()
    told = abandoned(stand, "h", users["f"].number)
    assert told == [f"ticket {users['e'].number} is the one whose guardians do not answer; abandon that one first"]


def test_refused_while_a_guardian_has_a_grant() -> None:
    """9.5: e is still renewed at d, which hears nobody else: one guardian that is busy is word enough that the holder may live."""
    stand, users = ring()
    stand.lose = lambda source, target, message: (
        ({source, target} & {"f", "g"} != set() and {source, target} & {"a", "d", "h"} != set()) or isinstance(message, Update | AckUpdate)
    )
    stand.run(3.0)
    assert users["e"].acting
    told = abandoned(stand, "d", users["e"].number)
    assert told == ["one of its guardians granted it lately: the holder lives, or wait for the end of the lease"]
    assert stand.tickets["d"].counts["abandoned"] == 0


def test_refused_when_the_copy_that_is_left_is_too_old() -> None:
    """9.5: what is left of the cell may be of before a split. If somebody is known to own a ticket inside that arc, nothing is done."""
    stand, users = lost()
    (holder,) = stand.coordinators("d")
    val = stand.tickets["d"].guardian.cells[Key(POOL, holder.val.succ.rid, holder.val.succ.cfg)].val
    assert val is not None
    inside, d = val.arc[1], stand.tickets["d"]
    d.cview.announce(POOL, inside, Entry(val.fence + 1, False, 1, stand.hosts["h"].me, stand.hosts["h"].address, 0, N))
    answers = abandoned(stand, "d", users["e"].number)
    assert answers == [f"tickets [{inside}] of its arc have owners: the copy that is left is too old"]
    assert d.counts["abandoned"] == 0
