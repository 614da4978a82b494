"""A seat's journal of cells under crashes: nothing is granted twice, and what is unreadable is said.  Spec: tickets 5.1, 5.2; G1, G3, D20.

Kill -9 of a real process at every operation on its disk, a power failure after every operation, a file cut at every byte, bytes that
changed, a disk without room. Whatever of it happens: of all that left as an answer, the next life knows everything.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from holdfast.disk import files
from holdfast.disk.files import MAGIC
from holdfast.disk.journal import PENDING_SAVES_MAX, Journal
from holdfast.disk.state_directory import State
from holdfast.errors import StorageDamaged
from holdfast.features.tickets.protocol.messages import Accepted, Alive, Forget, Promised, Refuse
from holdfast.features.tickets.protocol.values import NO_BALLOT, Key, Status
from holdfast.host import Message
from tests.disk.disks import RememberingDisk
from tests.features.tickets.process.cells import (
    ANCHOR_KEY,
    CONFIG,
    GARBAGE_BYTES,
    OWNERS,
    Answers,
    Question,
    Seat,
    ballot,
    check,
    check_next_owner,
    live,
    states,
    story,
    val,
)
from tests.support.fake_host import FakeStorage
from tests.support.realtime import run

ROOT = Path(__file__).parents[4]
MEMORY = "/dev/shm"
NAMED: dict[str, Message] = {
    "Promised": Promised(0, NO_BALLOT, None, 0),
    "Accepted": Accepted(0, 0),
    "Refuse": Refuse(0, NO_BALLOT, None, 0.0, False, 0),
}


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory where there is one: kill -9 takes nothing from the kernel, so nothing has to be on a disk."""
    with TemporaryDirectory(dir=MEMORY if Path(MEMORY).is_dir() else None) as name:
        yield Path(name)


def child(*args: str) -> str:
    command = [sys.executable, "-m", "tests.features.tickets.process.cells", *args]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def left_in(folder: Path, questions: list[Question]) -> Answers:
    """The answers that a life had given when it was killed."""
    file = folder / "left"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [(number, _answer(name, ok, questions[number])) for number, name, ok in lines]


def _answer(name: str, ok: bool, question: Any) -> Message:
    if name == "Alive":
        return Alive(question.key, question.who, 0.0, ok, question.ballot, False, False)
    return NAMED[name]


def test_kill_at_every_operation(quick: Path) -> None:
    """5.2, G1, G3: a seat killed with -9 at any operation on its disk knows every promise, version and end that it had answered, holds
    every grant to be running, and lets the next owner have a larger token."""
    lives = [json.loads(line) for line in child("kill", str(quick)).splitlines()]
    questions, counts = story(), []
    for one in lives:
        folder = quick / one["folder"]
        answers = left_in(folder, questions)
        counts.append(len(answers))
        state = State.open(folder / "state", wall=lambda: 0.0)
        check(state.journal, questions, answers)
        run(check_next_owner(state.journal, questions, answers))
        state.close()
    assert len(lives) > 60, "far fewer would mean that nothing was killed"
    assert sum(one["killed"] for one in lives) == len(lives) - 1
    assert (min(counts), max(counts)) == (0, len(questions))
    assert len({*counts}) > 8


def test_power_failure_after_every_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """5.2: an answer leaves when what it rests on is synced; whatever a power failure takes of the rest, it was not answered."""
    monkeypatch.setattr(files, "GARBAGE_BYTES_MIN", GARBAGE_BYTES)
    disk, questions = RememberingDisk(), story()
    said: list[tuple[int, int, Message]] = []  # after which operation each answer left

    async def life() -> None:
        journal = Journal.open(tmp_path / "journal", disk)
        await live(journal, lambda number, answer: said.append((len(disk.images), number, answer)), questions)
        journal.close()

    run(life())
    checked = 0
    for operation, images in enumerate(disk.images, start=1):
        answers = [(number, answer) for at, number, answer in said if at <= operation]
        for image in images:
            checked += 1
            journal = opened(tmp_path / f"crash{checked}", image)
            check(journal, questions, answers)
            journal.close()
    assert checked > 60
    assert disk.replaced > 1, "the journal was never rewritten"
    assert len(said) == len(questions)


def opened(folder: Path, image: dict[str, bytes]) -> Journal:
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)
    return Journal.open(folder / "journal")


def written(folder: Path, questions: list[Question]) -> bytes:
    """A journal of a life that ended in good order."""

    async def life() -> None:
        journal = Journal.open(folder / "journal")
        await live(journal, lambda number, answer: None, questions)
        journal.close()

    run(life())
    return (folder / "journal").read_bytes()


def test_a_file_cut_at_every_byte(quick: Path) -> None:
    """5.2: a torn tail was never answered and is cut off: what is left is what the seat held at some moment, never a mixture, never a cell
    that was not. A file without its beginning is refused."""
    questions = story(1)
    whole, possible = written(quick, questions), states(questions)
    seen: list[int] = []
    for size in range(len(whole) + 1):
        path = quick / "cut"
        path.write_bytes(whole[:size])
        if size < len(MAGIC):
            with pytest.raises(StorageDamaged, match=re.escape(str(path))):
                Journal.open(path)
            continue
        journal = Journal.open(path)
        seen.append(possible.index(Seat(journal).held))
        journal.close()
    assert all(one <= other for one, other in pairwise(seen))
    assert (seen[0], seen[-1]) == (0, possible.index(possible[-1]))
    assert len({*seen}) > 3


def test_a_byte_that_changed(quick: Path) -> None:
    """D20: damage is not a torn tail. A seat that cannot read its journal does not start, names the file and the place, changes nothing."""
    whole = bytearray(written(quick, story(2)))
    path, refused = quick / "damaged", 0
    for at in range(0, len(whole) // 2, 7):
        changed = bytearray(whole)
        changed[at] ^= 0x40
        path.write_bytes(changed)
        with pytest.raises(StorageDamaged, match=r"damaged.*restore"):
            Journal.open(path)
        assert path.read_bytes() == changed
        refused += 1
    assert refused > 20


def test_more_tombstones_than_the_disk_takes_at_once(quick: Path) -> None:
    """5.2, H133: after a restart all tombstones are of one age. They bind, and are deleted without the disk being taken for failed."""
    many = PENDING_SAVES_MAX + 100

    async def lives() -> None:
        journal = Journal.open(quick / "journal")
        await live(journal, lambda number, answer: None, [Forget(0, Key("gpu", f"cell{number}", 0)) for number in range(many)])
        journal.close()
        journal = Journal.open(quick / "journal")
        it = Seat(journal)
        it.open()
        it.guardian.start()
        assert len(it.guardian.table.tombstones) == many
        it.host.pass_time(CONFIG.tombstone_ttl)
        while journal.load_below("cells/") and not journal.failed:
            await journal.drain()
            await asyncio.sleep(0)
        assert not journal.failed
        assert not it.guardian.table.tombstones
        journal.close()

    run(lives())


@pytest.mark.parametrize(
    "key, value",
    [
        (msgspec.json.encode(ANCHOR_KEY).decode(), b"\xc1"),
        (msgspec.json.encode(ANCHOR_KEY).decode(), msgspec.msgpack.encode("a text")),
        ("no key", msgspec.msgpack.encode((NO_BALLOT, NO_BALLOT, None, False))),
    ],
)
def test_a_cell_that_cannot_be_read(key: str, value: bytes) -> None:
    """D20: a journal that is whole, with something in it that is no cell: the seat does not begin without it."""
    storage = FakeStorage(auto=True)
    storage.part("cells").save(key, value, lambda: None)
    with pytest.raises(StorageDamaged, match=r"the cell .* is unreadable"):
        Seat(storage)


def test_a_disk_without_room(tmp_path: Path) -> None:
    """5.2: the kernel refuses a write in the middle. It is said once, no answer leaves after it, and all before it is kept."""
    report, questions = json.loads(child("full", str(tmp_path))), story(40)
    (failure,) = report["failed"]
    assert "File too large" in failure
    left: Answers = [(number, Accepted(0, 0)) for number in report["left"]]
    assert 0 < len(left) < len(questions)
    assert [number for number, _ in left] == [*range(len(left))], "an answer left after the disk had refused"
    journal = Journal.open(tmp_path / "journal")
    check(journal, questions, left)
    journal.close()


def test_who_answers_before_the_sync_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ablation: a seat that answers first and saves then is found by the same check."""
    disk, questions = RememberingDisk(), story(2)
    said: list[tuple[int, int, Message]] = []

    async def life() -> None:
        journal = Journal.open(tmp_path / "journal", disk)
        it = Seat(journal)
        it.open()
        monkeypatch.setattr(it.guardian, "_say", _at_once(it))
        for number, question in enumerate(questions):
            it.ask(question, lambda answer, number=number: said.append((len(disk.images), number, answer)))  # type: ignore[misc]
        await journal.drain()
        await asyncio.sleep(0)
        journal.close()

    run(life())
    caught = 0
    for operation, images in enumerate(disk.images, start=1):
        answers = [(number, answer) for at, number, answer in said if at <= operation]
        for number, image in enumerate(images):
            journal = opened(tmp_path / f"crash{operation}-{number}", image)
            try:
                check(journal, questions, answers)
            except AssertionError:
                caught += 1
            journal.close()
    assert caught > 0


def _at_once(it: Seat) -> Any:
    def say(key: Key, cell: Any, reply: Any, answer: Message, *, changed: bool = False, grant: bool = False) -> None:
        reply(answer)
        if changed:
            it.guardian._save(key, cell)

    return say


def test_the_story_is_one_that_seats_agree_to() -> None:
    """What the tests above ask is answered with yes, so there is something to forget: each owner has a larger token than the one before."""
    it, answers = Seat(FakeStorage(auto=True)), list[Message]()
    it.open()
    for question in story():
        it.ask(question, answers.append)
    assert len(answers) == len(story())
    assert not any(isinstance(answer, Refuse) or (isinstance(answer, Alive) and not answer.ok) for answer in answers)
    last = ballot(OWNERS), ballot(OWNERS), val(ANCHOR_KEY, OWNERS, 10 * OWNERS + 2, Status.FREE), False
    assert it.held[ANCHOR_KEY] == last
