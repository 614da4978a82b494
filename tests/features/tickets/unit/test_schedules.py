"""Schedules by hand that broke earlier designs, each with the rule in place and with the rule taken out.

Spec: tickets 6 (D4, D12, D15, D16, D18), 8 (E4: mutations that need a directed schedule); docs/decisions.md H102, H103.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.desk import Desk
from holdfast.features.tickets.protocol.facts import CellWritten, GuardiansMoved
from holdfast.features.tickets.protocol.messages import Accept, Accepted, AckUpdate, Cjoin, Promised, Query, Refuse
from holdfast.features.tickets.protocol.serving import Waiter
from holdfast.host import Message
from tests.features.tickets import ablations
from tests.features.tickets.ablations import Ablation, without
from tests.features.tickets.stand import Asker, Stand, Which

RING = TicketConfig(period=0.5, lease=2.0, rtx=0.1, guardians="ring", k=1, suspect=1.0, rho=0.0)


def never(source: str, target: str, message: Message) -> bool:
    return False


def common(stand: Stand) -> set[int]:
    """Tickets that two owners coordinate at this moment (I1, I2)."""
    valid = [each for name in stand.names if name not in stand.down for each in stand.coordinators(name) if each.valid]
    return {ticket for i, each in enumerate(valid) for other in valid[i + 1 :] for ticket in set(each.tickets) & set(other.tickets)}


def two_contents(stand: Stand) -> list[object]:
    """Versions of one cell under one ballot and number that differ (I6)."""
    seen: dict[object, object] = {}
    found: list[object] = []
    for _, event in stand.events(CellWritten):
        assert isinstance(event, CellWritten)
        key = event.key, event.ballot, event.val.seq
        if seen.setdefault(key, event.val) != event.val:
            found.append(key)
    return found


def watched(stand: Stand, seconds: float) -> set[int]:
    """Run, looking after every step."""
    found: set[int] = set()
    end = stand.now + seconds
    while stand.now < end:
        stand.run(0.01)
        found |= common(stand)
    return found


def ring_of_three() -> tuple[Stand, Coordinator, Coordinator]:
    """Seats a, b, c; d holds the anchor, e its successor, f the next, which e guards. Then e goes and f needs another guardian."""
    stand = Stand("abcdefg", seats=3, config=RING)
    for name in "def":
        stand.acquire(name, 8, run=1.0)
    anchor = next(each for each in stand.coordinators("d"))
    last = next(each for each in stand.coordinators("f"))
    return stand, anchor, last


def moved(stand: Stand, name: str) -> bool:
    return any(who == name for who, _ in stand.events(GuardiansMoved))


@pytest.mark.parametrize("ablation, broken", [(None, False), (ablations.ignores_nxt, True), (ablations.moves_without_writing, True)])
def test_excluder_follows_the_move(ablation: Ablation | None, broken: bool) -> None:
    """D4: the guardians of f change, its predecessor hears nothing of it and wants to exclude it by the old ones."""
    with without(ablation) if ablation else nullcontext():
        stand, _, last = ring_of_three()
        old = last.places
        stand.lose = lambda source, target, message: source == "f" and isinstance(message, AckUpdate)
        stand.crash("e")
        found = watched(stand, 6 * RING.lease)
        assert last.places != old
        assert bool(found) == broken


def wait_until(stand: Stand, what: Callable[[], bool]) -> None:
    for _ in range(2000):
        if what():
            return
        stand.run(0.01)
    raise AssertionError("it never happens")


@pytest.mark.parametrize("ablation, broken", [(None, False), (ablations.max_deadline_at_move, True)])
def test_old_guardians_extend_nothing_during_a_move(ablation: Ablation | None, broken: bool) -> None:
    """D15, H103: the new set grants at once and answers late, the old one echoes meanwhile; f is cut off, and excluded by the new set."""
    with without(ablation) if ablation else nullcontext():
        stand, anchor, last = ring_of_three()
        stand.crash("e")
        asked: set[str] = set()

        def asked_again(source: str, target: str, message: Message) -> bool:
            """Repeats of the question to the new set get lost: they would grant anew."""
            if source != "f" or not isinstance(message, Accept) or message.key.cfg == last.cfg:
                return False
            again = target in asked
            asked.add(target)
            return again

        def asked_of(new: bool) -> Which:
            """Answers to f's writes, to the set in force or to the new one."""

            def which(source: str, target: str, message: Message) -> bool:
                ops = {each.op: each.key.cfg for who, _, each in stand.sent if who == "f" and isinstance(each, Accept)}
                return target == "f" and isinstance(message, Accepted) and message.op in ops and (ops[message.op] != last.cfg) == new

            return which

        stand.hold, stand.lose = asked_of(new=False), asked_again
        wait_until(stand, lambda: last.busy == "move")
        stand.run(0.3)
        stand.hold = asked_of(new=True)
        stand.release_held()
        stand.run(0.3)  # with a round in it
        stand.hold = never
        stand.release_held()
        assert moved(stand, "f")
        stand.lose = lambda source, target, message: "f" in (source, target)
        found: set[int] = set()
        end = stand.now + 2 * RING.lease
        while stand.now < end:
            if not anchor.busy:
                anchor.care.absorb()
            stand.run(0.02)
            found |= common(stand)
        assert bool(found) == broken


@pytest.mark.parametrize("ablation, broken", [(None, False), (ablations.leave_builds_on_val, True)])
def test_leave_builds_on_what_was_sent(ablation: Ablation | None, broken: bool) -> None:
    """D16: the user releases while the write of a split is in flight; two guardians must not have two contents of one version."""
    with without(ablation) if ablation else nullcontext():
        stand = Stand("abcd", seats=3)
        user = stand.acquire("a", 4, run=1.0)
        key = stand.coordinators("a")[0].key

        def split_write(source: str, target: str, message: Message) -> bool:
            if isinstance(message, Accept) and message.key == key and message.val.length < 4:
                return target == "c"
            return isinstance(message, Accepted) and target == "a" and stand.coordinators("a")[0].shrunk > 0

        stand.lose = split_write
        stand.acquire("d", 4, run=0.3)
        assert stand.coordinators("a")[0].busy == "split"
        user.release()
        stand.lose = never
        stand.run(2.0)
        assert bool(two_contents(stand)) == broken
        if not broken:
            stand.acquire("b", 4, run=4.0)
            assert common(stand) == set()


def lost_release() -> tuple[Stand, Asker]:
    """The agent a has released the lock and does not hear that this is written; b took it, and hands it to a's next attempt."""
    stand = Stand("abc", seats=3)
    first = stand.acquire("a", 1, run=1.0)
    stand.lose = lambda source, target, message: target == "a" and isinstance(message, Accepted | Refuse | Promised)
    first.release()
    second = stand.acquire("b", 1, run=0.3)
    stand.acquire("a", 1, run=1.0)
    stand.lose = lambda source, target, message: (
        target == "a" and isinstance(message, Accepted | Refuse | Promised) and message.op <= last_op
    )
    last_op = stand.tickets["a"].desk.questions._last_serial
    second.release()
    stand.run(0.1)
    return stand, first


@pytest.mark.parametrize(
    "ablation, broken",
    [(None, False), (ablations.identity_without_token, False), (ablations.ignores_foreign, False), (ablations.no_identity, True)],
)
def test_former_attempt_does_not_take_the_cell_for_its_own(ablation: Ablation | None, broken: bool) -> None:
    """D12: an older attempt under the same lease id, still writing its last word, meets the cell that was handed to a newer one.

    Token in the identity and H102 both keep it away; only without either is the new owner overwritten.
    """
    with without(ablation) if ablation else nullcontext():
        stand, _ = lost_release()
        owner = next(each for each in stand.coordinators("a") if each.valid)
        stand.lose = never
        key = owner.key
        for _ in range(300):
            stand.run(0.01)
            if not owner.valid:
                break
            best = max(
                (stand.tickets[name].guardian.cells[key] for name in "abc"), key=lambda cell: (cell.accepted, cell.val and cell.val.seq)
            )
            assert broken or (best.val is not None and best.val.holder == owner.lease)
        overwritten = not owner.valid or stand.tickets["b"].guardian.cells[key].val != owner.val
        assert overwritten == broken


@pytest.mark.parametrize("ablation, broken", [(None, False), (ablations.ignores_foreign, True)])
def test_leaver_does_not_take_a_move_back(ablation: Ablation | None, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """H102: f leaves in the middle of a move and is cut off; d follows the move and merges it; then f's last write comes through.

    Found by reading: the leaver's words are in the cell, so its identity alone does not tell it that it was excluded.
    """
    with without(ablation) if ablation else nullcontext():
        stand, anchor, last = ring_of_three()
        stand.acquire("g", 8)
        stand.crash("e")

        def always_lost(source: str, target: str, message: Message) -> bool:
            """The agent g hears only of what it is given, and f does not reach its new guardians."""
            of_g = source == "g" and isinstance(message, Query | Cjoin)
            return of_g or (source == "f" and isinstance(message, Accept) and message.key.cfg != last.cfg)

        monkeypatch.setattr(Desk, "forget", lambda self, key, places, but=(): None)  # a datagram that nobody answers
        stand.lose = always_lost
        wait_until(stand, lambda: last.busy == "move" and last.val.nxt is not None)
        candidate = stand.tickets["g"].pool_table["pool"].candidates[0]
        last.server._enter(Waiter(candidate._lease, stand.tickets["g"].desk.me, stand.now + 1000.0, wait=True))
        last.leave()
        stand.lose = lambda source, target, message: "f" in (source, target) or always_lost(source, target, message)
        stand.run(3 * RING.lease)
        assert anchor.val.length == 8
        stand.lose = always_lost
        assert bool(watched(stand, 2 * RING.lease)) == broken


@pytest.mark.parametrize("confused", [False, True], ids=["F3", "confused"])
def test_answers_to_a_former_life_are_not_counted(confused: bool) -> None:
    """D18, F3: op ids begin at 1 in every life. Old answers to the former life's ACCEPT must not win the new one's."""
    stand = Stand("abcd", seats=3)
    stand.confused = confused
    answer = (Accepted,)
    stand.hold = lambda source, target, message: target == "a" and isinstance(message, answer)
    stand.acquire("a", 1, run=0.05)
    stand.crash("a")
    stand.run(2 * stand.config.lease)
    stand.restart("a")
    stand.run(2 * stand.config.lease)
    old, stand.held = [item for item in stand.held if item[3] == 1], []
    assert {item[2].op for item in old if isinstance(item[2], Accepted)} == {3}
    stand.lose = lambda source, target, message: source == "a" and isinstance(message, Accept)
    stand.hold = never
    second = stand.acquire("a", 1)
    wait_until(stand, lambda: stand.tickets["a"].desk.questions._last_serial == 3)
    stand.held = old
    stand.release_held()
    stand.lose = lambda source, target, message: "a" in (source, target)
    other = stand.acquire("d", 1, run=1.0)
    assert other.acting
    assert second.acting == confused
