"""The horizon: until when anything runs that the one seat of a machine promised.  Foundation F12, F13; H154."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.disk.horizon import RECORD_BYTES, STRIDE, Horizon, kernel_stamp
from holdfast.kit.keeper import Keeper
from tests.support.fake_host import FakeHost

KERNEL = "5d0f-1/0_0"


def horizon(path: Path, *, former: int, life: int, stamp: str = KERNEL) -> Horizon:
    found = Horizon.open(path, former=former, life=life, stamp=stamp)
    assert found is not None
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "group.until"


def written(path: Path, until: float = 100.0) -> None:
    """By life 7, the first of its directory, which then died."""
    found = horizon(path, former=0, life=7)
    assert found.cover(until)
    found.close()


def keeper(found: Horizon) -> Keeper:
    """Of the seat that asks before it promises."""
    host = FakeHost("a")
    return Keeper(host, host.storage.part("keeper"), rho=0.001, horizon=found)


def test_on_a_machine_where_nothing_was_promised_nothing_is_waited_for(path: Path) -> None:
    """H154: neither a directory nor a record: no process ever promised anything here."""
    assert horizon(path, former=0, life=7).until == 0.0


def test_the_next_life_finds_the_end_of_what_was_promised(path: Path) -> None:
    """H154: written before the promise leaves, a stride ahead."""
    written(path)
    assert horizon(path, former=7, life=8).until == pytest.approx(100.0 + STRIDE)


def test_it_is_found_when_the_state_directory_is_lost(path: Path) -> None:
    """H154: it stands beside the lock; a new directory has no former life."""
    written(path)
    assert horizon(path, former=0, life=9).until == pytest.approx(100.0 + STRIDE)


@pytest.mark.parametrize(
    "former, stamp", [(6, KERNEL), (8, KERNEL), (7, "other-boot/0_0"), (7, "5d0f-1/90_0"), (0, "other-boot/0_0"), (0, "5d0f-1/90_0")]
)
def test_the_word_of_another_life_kernel_or_clock_does_not_count(path: Path, former: int, stamp: str) -> None:
    """H154: a life in between wrote elsewhere, or the directory is a restored copy; another boot's clock, another namespace's clock."""
    written(path)
    assert horizon(path, former=former, life=10, stamp=stamp).until is None


def test_a_directory_without_a_record_is_not_known(path: Path) -> None:
    """H154: the runtime directory was emptied, or an earlier release ran: F13 decides."""
    assert horizon(path, former=7, life=8).until is None


@pytest.mark.parametrize("damage", [b"", b"x" * 40, b" " * RECORD_BYTES])
def test_a_damaged_record_is_not_known(path: Path, damage: bytes) -> None:
    """H154: what cannot be read is not guessed."""
    written(path)
    path.write_bytes(damage + path.read_bytes()[len(damage) :].replace(b"100.", b"010."))
    assert horizon(path, former=7, life=8).until is None


def test_what_is_not_known_stays_so_until_it_is_settled(path: Path) -> None:
    """H154: a life that died before it knew leaves nothing that the next one would believe."""
    written(path)
    horizon(path, former=6, life=8).close()
    found = horizon(path, former=8, life=9)
    assert found.until is None
    assert found.settle(50.0)
    assert horizon(path, former=9, life=10).until == pytest.approx(50.0)


def test_a_life_that_promised_nothing_hands_on_what_it_found(path: Path) -> None:
    """H154: the record is that of the last life, always."""
    written(path)
    horizon(path, former=7, life=8).close()
    assert horizon(path, former=8, life=9).until == pytest.approx(100.0 + STRIDE)


def test_a_second_life_of_a_process_is_known_to_the_next(path: Path) -> None:
    """F5: the boot number was raised while the process ran."""
    found = horizon(path, former=0, life=7)
    found.begin_again(11)
    assert found.cover(5.0)
    assert horizon(path, former=11, life=12).until == pytest.approx(5.0 + STRIDE)


def test_renewals_cost_few_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H154: a hundred renewals within a stride are one write."""
    seat, writes = keeper(horizon(path, former=0, life=7)), 0
    write = os.pwrite

    def counted(fd: int, data: bytes, offset: int) -> int:
        nonlocal writes
        writes += 1
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", counted)
    assert all(seat.reaches(10.0 + n * STRIDE / 100) for n in range(101))
    assert writes == 1


def test_what_cannot_be_written_must_not_be_promised(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H154: no promise runs longer than what the next life would read."""
    seat = keeper(horizon(path, former=0, life=7))
    assert seat.reaches(10.0)

    def full(*words: object) -> int:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "pwrite", full)
    assert seat.reaches(10.1)
    assert not seat.reaches(11.0)
    assert horizon_after(path, monkeypatch) == pytest.approx(10.0 + STRIDE)


def horizon_after(path: Path, monkeypatch: pytest.MonkeyPatch) -> float | None:
    monkeypatch.undo()
    return horizon(path, former=7, life=8).until


def test_no_record_is_written_through_a_link(path: Path, tmp_path: Path) -> None:
    """H154: a link in its place is none of ours; F13 decides then."""
    path.symlink_to(tmp_path / "elsewhere")
    assert Horizon.open(path, former=0, life=7, stamp=KERNEL) is None


def test_this_kernel_has_a_stamp() -> None:
    """H154: boot_id, and the offset of the clock in this time namespace."""
    stamp = kernel_stamp()
    assert stamp is not None
    assert stamp.startswith(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    assert stamp == kernel_stamp()
