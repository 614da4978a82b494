"""A seat with its journal, what it is asked, and what it may never forget. ``python -m tests.features.tickets.process.cells kill|full
FOLDER``: one that dies.

The story has owners that follow each other on the anchor, a cell that is split off, moved on and forgotten, renewals, repeats. What matters
is which *answers left*: this seat may be the only one that two majorities have in common, so nobody else remembers what it said.
``kill`` forks one life per operation on the disk and way to die; ``full`` goes on until the kernel lets no file grow any further.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from holdfast.disk import files
from holdfast.disk.journal import Journal
from holdfast.disk.state_directory import State
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.guardian import Guardian, Record
from holdfast.features.tickets.protocol.messages import Accept, Accepted, Alive, Forget, Prepare, Promised, Refuse, Renew
from holdfast.features.tickets.protocol.values import ANCHOR, NOBODY, Ballot, Key, LeaseId, Ptr, Status, Val, seat
from holdfast.host import Address, Message, NodeId, Storage
from holdfast.kit.keeper import Keeper
from tests.disk.disks import DyingDisk
from tests.support.fake_host import FakeHost, FakeStorage

CONFIG = TicketConfig(period=0.5, lease=2.0)
PLACES = (seat(0), seat(1), seat(2))
FIRST_TOKEN = 1_000
OWNERS = 3
HOWS = ("before", "during", "after")
GARBAGE_BYTES = 900  # so that a short life rewrites its journal
FILE_BYTES_MAX = 6000  # for a disk without room
ANCHOR_KEY = Key("gpu", ANCHOR, 0)

Held = dict[Key, Record]
Question = Prepare | Accept | Renew | Forget
Answers = list[tuple[int, Message]]  # of which question, and what


def ballot(number: int) -> Ballot:
    return Ballot(number, lease(number))


def lease(number: int) -> LeaseId:
    return LeaseId(NodeId("owner", number), 1)


def val(key: Key, number: int, seq: int, status: Status = Status.LIVE) -> Val:
    """The owner's number is its token too, counted from the first."""
    holder, token = (lease(number) if status is Status.LIVE else None), FIRST_TOKEN + number
    head, length = (0, 8) if key.rid == ANCHOR else (4, 4)
    return Val(seq, holder, token, token, head, length, Ptr(key.rid, key.cfg, PLACES, NOBODY), status, None, 8, Address("owner", 1))


def story(owners: int = OWNERS) -> list[Question]:
    """Each owner takes the anchor, splits a cell off, renews both, gives both back; the merged cell is forgotten."""
    found: list[Question] = []
    for number in range(1, owners + 1):
        child, mine, seq = Key("gpu", f"cell{number}", 0), ballot(number), 10 * number
        taken, split = val(ANCHOR_KEY, number, seq), val(ANCHOR_KEY, number, seq + 1)
        retired, free = val(child, number, 1, Status.RETIRED), val(ANCHOR_KEY, number, seq + 2, Status.FREE)
        found += [
            Prepare(0, ANCHOR_KEY, mine, None),
            Accept(0, ANCHOR_KEY, mine, taken, grant=True),
            Accept(0, child, mine, val(child, number, 0), grant=True),
            Accept(0, ANCHOR_KEY, mine, split, grant=True),
            Accept(0, ANCHOR_KEY, mine, split, grant=True),  # once more: its answer was lost
            Renew(ANCHOR_KEY, split.who, mine, split.seq, 0.0),
            Renew(child, val(child, number, 0).who, mine, 0, 0.0),
            Accept(0, child, mine, retired, grant=False),
            Accept(0, ANCHOR_KEY, mine, free, grant=False),
            Forget(0, child),
        ]
    return found


class Seat:
    """One life of it."""

    def __init__(self, storage: Storage) -> None:
        self.host = FakeHost("seat0")
        self.host.storage = storage
        self.keeper = Keeper(self.host, storage.part("keeper"), rho=CONFIG.rho)
        self.guardian = Guardian(self.host, CONFIG, self.keeper)

    def open(self) -> None:
        """It has begun, or what it may have promised before is waited for (F13)."""
        self.keeper.open(fresh=False)

    def wait(self) -> None:
        """Until everything that its former life may have granted is over."""
        self.host.clock += self.keeper.wait

    def ask(self, question: Question, reply: Callable[[Message], None]) -> None:
        if isinstance(question, Prepare):
            self.host.clock += CONFIG.lease  # The owner before this one has given back or run out.
        self.guardian.on_message(question, reply)

    @property
    def held(self) -> Held:
        table = self.guardian.table
        return {key: (cell.promised, cell.accepted, cell.val, cell.gone) for key, cell in (table.kept | table.tombstones).items()}


async def live(journal: Journal, say: Callable[[int, Message], None], questions: Iterable[Question]) -> Seat:
    """One life that is asked all this; several questions may wait for the same sync."""
    it = Seat(journal)
    it.open()
    for number, question in enumerate(questions):
        it.ask(question, partial(say, number))
        if number % 3 == 0:
            await journal.drain()
            await asyncio.sleep(0)
    await journal.drain()
    await asyncio.sleep(0)
    return it


def states(questions: list[Question]) -> list[Held]:
    """What a seat holds after none, one, two ... of them."""
    it = Seat(FakeStorage(auto=True))
    it.open()
    found = [it.held]
    for question in questions:
        it.ask(question, lambda answer: None)
        found.append(it.held)
    return found


def check(journal: Journal, questions: list[Question], answers: Answers) -> None:
    """What a life that opens this journal must still know, when these answers had left."""
    it = Seat(journal)
    answered = max((number for number, _ in answers), default=-1) + 1
    # An answer waits for its own cell only, and all cells share one queue: nothing later is known without what was before.
    assert it.held in states(questions)[answered:], f"{answered} questions were answered, and this is left: {it.held}"
    it.open()
    granted = [answer for _, answer in answers if (isinstance(answer, Alive) and answer.ok) or isinstance(answer, Accepted)]
    assert not granted or it.keeper.wait >= CONFIG.lease, "a grant that may be running is forgotten"


async def check_next_owner(journal: Journal, questions: list[Question], answers: Answers) -> None:
    """The next one to ask with this seat in its majority: not before every grant is over, and under a larger token."""
    it, said = Seat(journal), list[Message]()
    it.open()
    tokens = [_token(questions[number]) for number, answer in answers if isinstance(answer, Accepted)]
    stranger = Prepare(0, ANCHOR_KEY, ballot(OWNERS + 90), None)
    if tokens:
        it.guardian.on_message(stranger, said.append)
        await journal.drain()
        await asyncio.sleep(0)
        assert [type(answer) for answer in said] == [Refuse], "somebody else was promised what may still be owned"
        said.clear()
    it.wait()
    it.guardian.on_message(stranger, said.append)
    await journal.drain()
    await asyncio.sleep(0)
    (promised,) = said
    assert isinstance(promised, Promised)
    anchored = [token for token in tokens if token]
    assert not anchored or (promised.val is not None and promised.val.fence >= max(anchored)), "a token would be given out twice"


def _token(question: Question) -> int:
    return question.val.token if isinstance(question, Accept) and question.key == ANCHOR_KEY else 0


# A process that dies.


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "full":
        asyncio.run(fill(folder))
        return
    files.GARBAGE_BYTES_MIN = GARBAGE_BYTES
    at, died = 0, True
    while died:
        at += 1
        for how in HOWS:
            died = one_life(folder / f"{at}-{how}", at, how)
            if not died and how == "before":
                break


def one_life(folder: Path, at: int, how: str) -> bool:
    """Fork, answer, die; True if it was killed."""
    folder.mkdir()
    pid = os.fork()
    if pid == 0:
        asyncio.run(answer_and_die(folder, DyingDisk(at, how)))
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    if killed or how == "before":
        sys.stdout.write(json.dumps({"folder": folder.name, "killed": killed}) + "\n")
        sys.stdout.flush()
    return killed


async def answer_and_die(folder: Path, disk: DyingDisk) -> None:
    state = State.open(folder / "state", wall=lambda: 7.0, disk=disk)
    left = os.open(folder / "left", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(number: int, answer: Message) -> None:
        ok = answer.ok if isinstance(answer, Alive) else True
        os.write(left, json.dumps([number, type(answer).__name__, ok]).encode() + b"\n")

    await live(state.journal, say, story())
    state.close()


async def fill(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    journal = Journal.open(folder / "journal")
    left, failed = list[int](), list[object]()
    journal.on_failed = failed.append
    await live(journal, lambda number, answer: left.append(number), story(40))
    journal.close()
    sys.stdout.write(json.dumps({"left": left, "failed": [str(each) for each in failed]}))


if __name__ == "__main__":
    main()
