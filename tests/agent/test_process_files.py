"""Files and journals of a real agent that others changed: what it says when it starts.  docs/security.md; docs/decisions.md H174, H176."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.disk.files import JournalFile
from holdfast.disk.state_directory import State
from holdfast.features.tickets.protocol.values import ANCHOR, NO_LEASE, Ballot, Key
from holdfast.local import calls
from holdfast.wire.keys import generate
from tests.agent.raw_client import RawClient
from tests.support.agents import Fleet


def open_to_all(state: Path) -> None:
    state.chmod(0o777)


def of_another_user(state: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(state, 12_345, -1)


def with_a_symlink(state: Path) -> None:
    (state / "journal").rename(state.parent / "elsewhere")
    (state / "journal").symlink_to(state.parent / "elsewhere")


@pytest.mark.parametrize("spoil", [open_to_all, of_another_user, with_a_symlink])
def test_a_state_directory_that_others_may_change_is_refused(tmp_path: Path, spoil: Any) -> None:
    """H176: one line that says which file and what to do, nothing is written, and no port is taken."""
    state = tmp_path / "state"
    State.open(state).close()
    spoil(state)
    before = sorted((each.name, each.lstat().st_mtime_ns) for each in state.iterdir())
    with Fleet(tmp_path) as fleet:
        agent = fleet.start(name="a", state_dir=str(state), expect_ready=False)
        assert agent.wait() != 0
        assert agent.ready["error"] == "StorageError"
        assert str(state) in agent.ready["text"]
        assert len(agent.stderr.splitlines()) == 1
    assert sorted((each.name, each.lstat().st_mtime_ns) for each in state.iterdir()) == before


def test_what_only_a_group_or_a_reader_can_do_is_a_warning(tmp_path: Path) -> None:
    """H176: the agent starts, and says it once for each file."""
    state, key = tmp_path / "state", tmp_path / "key"
    State.open(state).close()
    state.chmod(0o770)
    key.write_text(generate())
    key.chmod(0o640)
    with Fleet(tmp_path) as fleet:
        quiet = fleet.start(name="a", state_dir=str(state), key=None, key_file=str(key))
        assert [line["text"].split(":")[0] for line in quiet.log() if line.get("event") == "files"] == [f"{state} (the state directory)"]
        assert quiet.stop() == 0
        key.chmod(0o660)
        warned = fleet.start(name="a", state_dir=str(state), key=None, key_file=str(key))
        assert sorted(line["text"].split()[0] for line in warned.log() if line.get("event") == "files") == [str(state), "key"]
        key.chmod(0o602)
        refused = fleet.start(name="b", key=None, key_file=str(key), expect_ready=False)
        assert refused.ready["error"] == "KeyUnusable"


def taken(path: str, pool: str) -> None:
    """A client gets a ticket, and gives it back."""
    with RawClient(path) as client:
        serial = client.say(calls.Acquire, "ticket", pool, {"of": 1})
        client.grant(serial, "granted")
        client.ask(calls.Stopped, serial)


def spoil(state: Path, pool: str) -> None:
    """As if the seat had taken a ballot that a peer made up, before there were bounds."""
    file, key = JournalFile.open(state / "journal"), f"cells/{msgspec.json.encode(Key(pool, ANCHOR, 0)).decode()}"
    record = msgspec.msgpack.decode(file.values[key])
    file.append([(key, msgspec.msgpack.encode([Ballot((1 << 64) - 1, NO_LEASE), *record[1:]]))])
    file.close()


def test_a_journal_with_a_ballot_that_nobody_can_go_beyond(tmp_path: Path) -> None:
    """H174: the agent starts, names the key in its log, and serves every other pool; a client that wants this one waits in vain, and
    nothing ends. Before, whoever asked for the pool ended of an OverflowError, in this life and in all that followed."""
    state = tmp_path / "state"
    with Fleet(tmp_path, key=None, longest_grant=1.0) as fleet:
        first = fleet.start(name="a", state_dir=str(state), runtime=tmp_path / "run")
        taken(first.socket, "gpus")
        assert first.stop() == 0
        spoil(state, "gpus")
        again = fleet.start(name="a", state_dir=str(state), runtime=tmp_path / "run")
        assert again.until_said("RecordUnusable")["key"] == "gpus/anchor/0"
        with RawClient(again.socket) as client:
            client.say(calls.Acquire, "ticket", "gpus", {"of": 1})
            taken(again.socket, "other")
        assert again.process.poll() is None
        assert again.stop() == 0
