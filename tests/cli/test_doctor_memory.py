"""``doctor`` about what an agent remembers, or knows of its seats: faults that no healthy machine shows on demand."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.agent.feature import Running
from holdfast.agent.membership import Hints
from holdfast.agent.observe.doctor import Examination
from holdfast.agent.observe.sightings import GONE_AFTER, MISMATCHES_MAX, Noticed, Sightings
from holdfast.agent.observe.symptoms import of_seat_lists, of_seats
from holdfast.config import Config
from holdfast.drops import Drop
from holdfast.events import ConfigMismatch, Event, Paused, StorageFailed
from holdfast.features.leadership.running import LeadershipAgent
from holdfast.features.ring.agent import SETTINGS
from holdfast.features.tickets.running import TicketAgent
from holdfast.host import Address, NodeId
from holdfast.kit.delay import JUST_STARTED, Delay
from holdfast.kit.seats import SeatSeen, SeatState
from holdfast.kit.slots import NO_SEATS, Slot, find_slots
from holdfast.local.calls import Finding

SLOTS = tuple(Slot(number, f"s{number}", Address("127.0.0.1", 7000 + number)) for number in range(3))


class Stub:
    """As much of an agent as an examination looks at; time passes when told."""

    def __init__(self, udp: socket.socket, *, seeds: tuple[str, ...] = (), state: str = "member") -> None:
        self.now = 1000.0
        self.timers: list[Callable[[], None]] = []
        address = Address("127.0.0.1", 7946)
        self.me, self.state, self.config = NodeId("me", 1), state, Config(seeds=seeds, preset="lan")
        self.seats: Any = None
        self.seat_watch: Any = None
        self.sightings = Sightings()
        self.features: dict[str, Running] = {}
        self.seats_missing = "seats: who are the seats?"
        self.home = SimpleNamespace(state=None)
        self.seeds: tuple[Address, ...] = ()
        self.membership = SimpleNamespace(members=lambda: (), get=lambda name: None, waits_for="")
        self.side = SimpleNamespace(hints=Hints("", "", SETTINGS, pause=self.config.lease))
        self.host = SimpleNamespace(
            now=self.now,
            address=address,
            bound=address,
            drops=Counter(),
            dropped_from={},
            node=SimpleNamespace(mismatched={}),
            after=lambda delay, step: self.timers.append(step),
            datagrams=udp,
        )
        self.noticed = Noticed(lambda: self.host.now)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"doctor looks at {name}")

    def emit(self, event: Event) -> None:
        assert isinstance(event, Noticed.hears)
        self.noticed.on_event(event)

    def examined(self, doctor: Noticed, meanwhile: Callable[[], None] = lambda: None, since: float = GONE_AFTER) -> list[Finding]:
        """What an examination finds; it watches while ``meanwhile`` happens."""
        self.host.now = self.now
        found: list[Finding] = []
        Examination(self, doctor, 2.0, found.extend, since).start()  # type: ignore[arg-type]
        meanwhile()
        for step in self.timers:
            step()
        self.timers.clear()
        return found


@pytest.fixture
def udp() -> Iterator[socket.socket]:
    """The socket of which the kernel is asked how much room it has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        yield udp


@pytest.fixture
def stub(udp: socket.socket) -> Stub:
    return Stub(udp)


class Remembered:
    """As many promises of a seat."""

    def __init__(self, names: int) -> None:
        self._names = names
        self.unusable: dict[str, str] = {}

    def __len__(self) -> int:
        return self._names


def doctor_of(stub: Stub) -> Noticed:
    stub.host.now = stub.now
    return stub.noticed


def severities(findings: list[Finding]) -> dict[str, str]:
    return {each.code: each.severity for each in findings}


def test_a_disk_that_refused(stub: Stub) -> None:
    """StorageFailed is remembered, with its reason."""
    doctor = doctor_of(stub)
    stub.emit(StorageFailed("No space left on device"))
    (found,) = [each for each in stub.examined(doctor) if each.code == "storage_failed"]
    assert found.severity == "error"
    assert "No space left" in found.text


def test_seeds_without_addresses(udp: socket.socket) -> None:
    """Seeds were given and none of them has an address."""
    stub = Stub(udp, seeds=("nowhere.invalid:7946",), state="joining")
    assert severities(stub.examined(doctor_of(stub))).items() >= {("unresolved_seeds", "error"), ("not_a_member", "error")}


def test_an_error_while_it_goes_on(stub: Stub) -> None:
    """Drops that grow during the examination are an error, those from before a warning, none no finding (H68)."""
    doctor = doctor_of(stub)
    assert "forged" not in severities(stub.examined(doctor))
    stub.host.drops[Drop.FORGED] += 5
    assert severities(stub.examined(doctor))["forged"] == "warning"
    assert severities(stub.examined(doctor, lambda: stub.host.drops.update({Drop.FORGED: 1})))["forged"] == "error"


def test_findings_are_forgotten(stub: Stub) -> None:
    """H184: what was seen within a minute is wrong now, after that it is a note that says how long ago, after ten minutes it is gone.
    ``--since`` shows older ones. Errors are what the exit code 1 counts."""
    doctor = doctor_of(stub)
    stub.host.drops[Drop.WRONG_KEY] += 3
    stub.host.dropped_from[Drop.WRONG_KEY] = Address("10.0.0.9", 7946)
    stub.emit(ConfigMismatch(NodeId("slow", 1), "T_l", "1.0", "2.0"))
    stub.host.node.mismatched["slow"] = 1
    now = {each.code: each for each in stub.examined(doctor)}
    assert "the last from 10.0.0.9:7946" in now["wrong_key"].text
    assert (now["config_mismatch"].severity, now["config_mismatch"].seen_ago) == ("error", 0.0)
    stub.now += 59
    assert severities(stub.examined(doctor)).items() >= {("wrong_key", "warning"), ("config_mismatch", "error")}
    stub.now += 2
    later = {each.code: each for each in stub.examined(doctor)}
    assert (later["wrong_key"].severity, later["config_mismatch"].severity) == ("note", "note")
    assert later["wrong_key"].seen_ago == 61.0
    stub.host.node.mismatched["slow"] = 2
    assert severities(stub.examined(doctor))["config_mismatch"] == "error"
    stub.now += 601
    assert {"wrong_key", "config_mismatch"} & severities(stub.examined(doctor)).keys() == set()
    assert severities(stub.examined(doctor, since=3600.0))["wrong_key"] == "note"


def test_a_lost_journal_is_no_full_disk(stub: Stub) -> None:
    """F13: the advice for a seat without its journal is not to make room; the finding about the seat has the right one."""
    doctor = doctor_of(stub)
    stub.seats = seats_stub(stub, (Slot(0, "s0", stub.host.address),))
    stub.seats.state, stub.seats.why = SeatState.SILENT, "seat 0 lost its journal"
    stub.seats.greet = lambda: None
    stub.emit(StorageFailed("seat 0 lost its journal"))
    codes = severities(stub.examined(doctor))
    assert "storage_failed" not in codes
    assert codes["seat_silent"] == "error"


def test_pauses_are_forgotten(stub: Stub) -> None:
    """A pause of less than half a lease is a warning, a longer one an error, one of an hour ago nothing."""
    doctor = doctor_of(stub)
    stub.emit(Paused(0.3))
    assert severities(stub.examined(doctor))["pauses"] == "warning"
    stub.emit(Paused(0.6))
    assert severities(stub.examined(doctor))["pauses"] == "error"
    stub.now += 3600
    assert "pauses" not in severities(stub.examined(doctor))


def test_memory_is_bounded(stub: Stub) -> None:
    """Whoever has many names does not fill an agent's memory."""
    doctor = doctor_of(stub)
    for number in range(MISMATCHES_MAX + 10):
        stub.emit(ConfigMismatch(NodeId(f"n{number}", 1), "T_l", "1.0", "2.0"))
    assert len(doctor.mismatches) == MISMATCHES_MAX
    assert ("n9", "T_l") not in doctor.mismatches


def leadership_stub(promises: Remembered) -> Running:
    """As much of the running feature as has findings."""
    running: Any = object.__new__(LeadershipAgent)
    running.me, running.leadership = NodeId("me", 1), SimpleNamespace(seat=SimpleNamespace(promises=promises))
    assert isinstance(running, Running)
    return running


def seats_stub(stub: Stub, slots: tuple[Slot, ...] = SLOTS, own: int | None = 0) -> Any:
    """Three seats that are heard and serve; a test changes what ``said`` says of them."""
    said: dict[int, SeatSeen | None] = {slot.number: SeatSeen(stub.now, SeatState.SERVING, 0.0, "") for slot in slots}
    stub.host.now = stub.now
    stub.seat_watch = None
    return SimpleNamespace(
        slots=slots,
        own=own,
        state=SeatState.SERVING,
        why="",
        delay=lambda: None,
        keeper=SimpleNamespace(wait=0.0),
        said=said,
        seen=said.get,
        life=lambda slot: NodeId(f"s{slot}", 1) if said[slot] else None,
        is_heard=lambda slot: (seen := said[slot]) is not None and stub.now < seen.heard_at + 12.5,
    )


def found(stub: Stub) -> list[tuple[str, str]]:
    """Codes and severities of what is said about seats that were all asked a second ago."""
    of_features = [each for feature in stub.features.values() for each in feature.findings()]
    return [(each.code, each.severity) for each in (*of_features, *of_seats(stub, stub.now - 1.0))]  # type: ignore[arg-type]


def test_seats(stub: Stub) -> None:
    """F12, F13: a seat that lost its journal is an error, one that was never heard a warning, three that were heard are fine."""
    stub.seats = seats_stub(stub)
    assert found(stub) == []
    stub.seats.state = SeatState.SILENT
    stub.seats.said[2] = None
    assert found(stub) == [("seat_silent", "error"), ("seat_unheard", "warning"), ("few_seats", "error")]


@pytest.mark.parametrize(
    "heard_ago, state, codes",
    [
        (0.5, SeatState.SERVING, []),
        (3.0, SeatState.SERVING, [("seat_gone", "error"), ("few_seats", "warning")]),
        (600.0, SeatState.SERVING, [("seat_gone", "error"), ("few_seats", "warning")]),
        (0.5, SeatState.FAILED, [("seat_failed", "error"), ("few_seats", "warning")]),
        (0.5, SeatState.SILENT, [("seat_failed", "error"), ("few_seats", "warning")]),
        (0.5, SeatState.WAITING, [("seats_waiting", "note")]),
        (0.5, SeatState.ASKING, [("seats_waiting", "note")]),
    ],
)
def test_another_seat_does_not_vote(stub: Stub, heard_ago: float, state: SeatState, codes: list[tuple[str, str]]) -> None:
    """H189: doctor asks every seat; one that does not answer, or answers that its disk failed, is said, and what one more would cost."""
    stub.seats = seats_stub(stub)
    stub.seats.said[1] = SeatSeen(stub.now - heard_ago, state, 60.0, "No space left on device")
    assert found(stub) == codes
    texts = [each.text for each in of_seats(stub, stub.now - 1.0)]  # type: ignore[arg-type]
    assert not codes or texts[-1] == "2 of 3 vote: one fewer, and nothing is granted."
    assert state is not SeatState.FAILED or "No space left on device" in texts[0]
    if codes:
        stub.seats.said[2] = None
        assert found(stub)[-1] == ("few_seats", "warning" if state is SeatState.WAITING else "error")


def test_seats_that_only_wait_are_no_error(stub: Stub) -> None:
    """F13, H196: after a start the seats wait for what they may have promised. Nothing is wrong, so there is no error and no exit code 1; a
    seat that is missing beside them is said as ever, as an error if those that wait are no majority."""
    stub.seats = seats_stub(stub)
    stub.seats.state, stub.seats.keeper.wait = SeatState.WAITING, 9.0
    for number in (1, 2):
        stub.seats.said[number] = SeatSeen(stub.now - 0.5, SeatState.WAITING, 5.0 + number, "")
    stub.seats.delay = lambda: Delay(JUST_STARTED, 6.5)
    assert found(stub) == [("seats_waiting", "note")]
    (waiting,) = of_seats(stub, stub.now - 1.0)  # type: ignore[arg-type]
    assert waiting.text.startswith("Nothing exclusive is granted for another 6.5 s: ")
    stub.seats.said[2] = SeatSeen(stub.now - 3.0, SeatState.SERVING, 0.0, "")
    assert found(stub) == [("seat_gone", "error"), ("seats_waiting", "note"), ("few_seats", "warning")]
    (*_, few) = of_seats(stub, stub.now - 1.0)  # type: ignore[arg-type]
    assert few.text == "0 of 3 vote: 2 are needed, and nothing exclusive is granted for another 9.0 s."
    stub.seats.said[1], stub.seats.delay = None, lambda: Delay("1 of 3 seats answer and may vote", None)
    assert found(stub)[-1] == ("few_seats", "error")


def test_an_agent_in_no_group_says_what_it_waits_for(stub: Stub) -> None:
    """Ring D23, H164: ``doctor`` has a finding with the sentence that JoinTimeout and ``members`` have; a member has none."""
    doctor = doctor_of(stub)
    assert "not_joined" not in severities(stub.examined(doctor))
    stub.state, stub.membership.waits_for = "joining", "it had to leave 9 times lately (lapse); it comes back within 50 s"
    (found,) = [each for each in stub.examined(doctor) if each.code == "not_joined"]
    assert (found.severity, found.about) == ("warning", "me")
    assert found.text == "This agent is in no group: it had to leave 9 times lately (lapse); it comes back within 50 s."


def test_two_agents_have_one_seat_and_are_told(stub: Stub) -> None:
    """Fast-detection 10 (n = 2 warns), F12: two voters tolerate no more than one. A list of two is refused, two seeds are one seat, and
    doctor warns of it."""
    seeds = ("10.0.0.1:7946", "10.0.0.2:7946")
    stub.config = Config(seeds=seeds)
    slots = find_slots(seats=(), seeds=seeds, key=True, loopback=False, own_name="a", own_address=Address("10.0.0.2", 7946))
    stub.seats = seats_stub(stub, slots, None)
    (finding,) = of_seats(stub, stub.now - 1.0)  # type: ignore[arg-type]
    assert (finding.code, finding.severity, finding.about) == ("one_seat", "warning", "10.0.0.1:7946")


def test_a_record_that_no_clock_comes_to(stub: Stub) -> None:
    """H174: a seat that starts with such a number in its journal names the key; ``doctor`` does as well."""
    stub.seats = seats_stub(stub)
    promises = Remembered(2)
    promises.unusable["lead:scheduler"] = "term"
    stub.features["leadership"] = leadership_stub(promises)
    (finding,) = of_seats(stub, stub.now - 1.0)  # type: ignore[arg-type]
    assert (finding.code, "'scheduler'" in finding.about) == ("record_unusable", True)


@pytest.mark.parametrize("names, codes", [(3071, []), (3072, [("names_full", "warning")]), (4096, [("names_full", "error")])])
def test_a_seat_full_of_names(stub: Stub, names: int, codes: list[tuple[str, str]]) -> None:
    """F16: a seat forgets no number; that its table fills is said long before a name is refused."""
    stub.seats = seats_stub(stub)
    stub.features["leadership"] = leadership_stub(Remembered(names))
    assert found(stub) == codes


@pytest.mark.parametrize(
    "anchors, others, tombstones, codes",
    [
        (12_287, 12_287, 49_151, []),
        (12_288, 0, 0, [("pools_full", "warning")]),
        (16_384, 0, 0, [("pools_full", "error")]),
        (0, 12_288, 0, [("cells_full", "warning")]),
        (0, 16_384, 0, [("cells_full", "error")]),
        (0, 0, 49_152, [("cells_full", "warning")]),
        (16_384, 16_384, 65_536, [("pools_full", "error"), ("cells_full", "error"), ("cells_full", "error")]),
    ],
)
def test_a_seat_full_of_cells(stub: Stub, anchors: int, others: int, tombstones: int, codes: list[tuple[str, str]]) -> None:
    """H133: that a guardian's table fills is said long before a ticket is refused, and of which kind it is too full."""
    stub.seats = seats_stub(stub)
    table = SimpleNamespace(anchors=anchors, others=others, tombstones=range(tombstones))
    tickets: Any = object.__new__(TicketAgent)
    tickets.me, tickets.tickets = stub.me, SimpleNamespace(guardian=SimpleNamespace(table=table, unusable={}))
    stub.features["tickets"] = tickets
    assert found(stub) == codes


def lists(**counted: str) -> list[Finding]:
    return list(of_seat_lists(counted, "me"))


def test_one_list_of_seats_is_no_finding() -> None:
    """F12: the same list everywhere, or none anywhere."""
    assert lists(me="s1@10.0.0.1:7946", b="s1@10.0.0.1:7946") == []
    assert lists(me=NO_SEATS, b=NO_SEATS) == []


def test_lists_of_seats_that_differ() -> None:
    """F12: the finding names the agents by the list that they count; what most agents count is what the others have to set, and among
    as many, what this one counts."""
    (found,) = lists(me="10.0.0.1:1", a="10.0.0.2:1", b="10.0.0.2:1", c=NO_SEATS)
    assert (found.code, found.severity, found.about) == ("seats_differ", "error", "c, me")
    assert "a, b count 10.0.0.2:1; c counts none; me counts 10.0.0.1:1." in found.text
    assert found.advice.startswith('Set seats = ["10.0.0.2:1"] on c, me and restart')
    (found,) = lists(me="x@10.0.0.1:1, y@10.0.0.3:1, z@10.0.0.4:1", a="10.0.0.2:1")
    assert found.advice.startswith('Set seats = ["x@10.0.0.1:1", "y@10.0.0.3:1", "z@10.0.0.4:1"] on a and restart')
    (found,) = lists(me=NO_SEATS, a=NO_SEATS, b="10.0.0.2:1")
    assert found.about == "a, me"
    (found,) = lists(me="10.0.0.2:1", **{f"n{number}": NO_SEATS for number in range(9)})
    assert found.about == "n0, n1, n2, n3, n4 and 4 more"
