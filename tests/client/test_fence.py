"""A fence in front of a resource: in memory, in a file, in the caller's transaction.  Spec: foundation F16; election 10."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import ConfigError, StaleToken, StorageError


@pytest.mark.parametrize("kind", ["memory", "file", "connection"])
def test_a_smaller_token_is_stale(tmp_path: Path, kind: str) -> None:
    """F16: the highest is kept; the same one is admitted again, a smaller one never."""
    store = {"memory": None, "file": tmp_path / "fence.db", "connection": sqlite3.connect(tmp_path / "own.db")}[kind]
    with holdfast.Fence(store, name="scheduler") as fence:
        assert fence.highest == 0
        for token in (5, 5, 8, 2**53 - 1):
            fence.admit(token)
        with pytest.raises(StaleToken, match=r"^fence 'scheduler': token 8 is below 9007199254740991, which was admitted before") as found:
            fence.admit(8)
        assert (found.value.token, found.value.highest, fence.highest) == (8, 2**53 - 1, 2**53 - 1)
    if isinstance(store, sqlite3.Connection):
        store.close()


def test_a_file_outlives_the_process(tmp_path: Path) -> None:
    """Election 10: the durable variant. Another fence of the file has the same highest token, another name has its own."""
    path = str(tmp_path / "fence.db")
    with holdfast.Fence(path, name="a") as first:
        first.admit(7)
    with holdfast.Fence(path, name="a") as second, holdfast.Fence(path, name="b") as other:
        other.admit(1)
        with pytest.raises(StaleToken):
            second.admit(6)
        second.admit(7)


def test_an_admission_is_part_of_the_transaction(tmp_path: Path) -> None:
    """Election 10: over a connection the token and the change are committed together, or neither is."""
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.execute("CREATE TABLE jobs (job TEXT)")
    fence = holdfast.Fence(connection)
    with connection:
        fence.admit(3)
        connection.execute("INSERT INTO jobs VALUES ('first')")
    fence.admit(9)
    connection.execute("INSERT INTO jobs VALUES ('second')")
    connection.rollback()
    assert fence.highest == 3
    connection.execute("INSERT INTO jobs VALUES ('late')")
    with pytest.raises(StaleToken), connection:
        fence.admit(2)
    assert connection.execute("SELECT job FROM jobs").fetchall() == [("first",)]
    fence.close()
    assert connection.execute("SELECT 1").fetchone() == (1,)  # the caller's stays open
    connection.close()


def test_of_two_writers_the_older_one_is_refused(tmp_path: Path) -> None:
    """Election 10: the older writer waits for the newer one's transaction, and is refused then; no write of it comes later."""
    path = tmp_path / "store.db"
    newer = sqlite3.connect(path, isolation_level="IMMEDIATE")
    fence = holdfast.Fence(newer)
    newer.commit()
    fence.admit(20)
    refused: list[str] = []

    def late() -> None:
        older = sqlite3.connect(path, timeout=30)
        try:
            holdfast.Fence(older).admit(10)
        except StaleToken as error:
            refused.append(type(error).__name__)
        older.close()

    thread = threading.Thread(target=late)
    thread.start()
    newer.commit()
    thread.join()
    newer.close()
    assert refused == ["StaleToken"]


def test_threads_share_a_fence() -> None:
    """Election 10: any thread may use it; the highest that was admitted is the highest of all."""
    fence = holdfast.Fence()
    admitted: list[int] = []

    def admit(first: int) -> None:
        for token in range(first, 2000, 4):
            try:
                fence.admit(token)
                admitted.append(token)
            except StaleToken:
                pass

    threads = [threading.Thread(target=admit, args=(first,)) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fence.highest == max(admitted) == 1999


@pytest.mark.parametrize("token", [0, -1, True, 2**53, 1.5, "7", None])
def test_what_is_no_token(token: Any) -> None:
    """F16: a token is an int from 1 to 2^53 - 1."""
    with pytest.raises(ConfigError, match=r"^token: .*; accepted is the token of a grant, 1 to 9007199254740991$"):
        holdfast.Fence().admit(token)


@pytest.mark.parametrize(
    "store, name, error, text",
    [
        (5, "", ConfigError, r"^store: 5; accepted are a path, an open sqlite3.Connection, and None$"),
        ("", "", ConfigError, r"^store: ''; accepted are"),
        (None, "x" * 129, ConfigError, r"^name: .*; accepted are up to 128 bytes of printable text$"),
        (None, "a\nb", ConfigError, r"^name: 'a\\nb'; accepted are"),
        (".", "", StorageError, r"^fence \.: unable to open database file; accepted is a file that SQLite can open and write$"),
    ],
)
def test_what_is_no_fence(store: Any, name: str, error: type[Exception], text: str) -> None:
    """PRODUCT (bad input): the field, what it was, what is accepted."""
    with pytest.raises(error, match=text):
        holdfast.Fence(store, name=name)
