"""``holdfast keys``: a key of one's own, and a rotation across a group with a report for each member."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.features.keys import calls as key_calls
from holdfast.wire.keys import load_key, parse_key
from tests.cli.command import Run
from tests.cli.fake_agent import FakeAgent
from tests.support.agents import AgentProcess, Fleet


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    with Fleet(tmp_path_factory.mktemp("keys")) as fleet:
        yield fleet.group(2)[0]


def test_generate(holdfast: Run, tmp_path: Path) -> None:
    """A key on stdout, or in a file with mode 0600 that was not there before; its id and never the key is shown then."""
    printed = holdfast("keys", "generate").out
    assert parse_key(printed) != parse_key(holdfast("keys", "generate").out)
    file = tmp_path / "key"
    ended = holdfast("keys", "generate", "-o", file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert ended.out == f"key {load_key(file).id.hex()} is in {file}\n"
    holdfast("keys", "generate", "-o", file).refused(2, "File exists", "not there yet")
    assert holdfast("keys", "generate", "--json").json.keys() == {"id", "key"}


def test_rotation(holdfast: Run, agent: AgentProcess, tmp_path: Path) -> None:
    """Install, use, remove: each member reports, the key it writes with first."""
    where = ("--agent", agent.socket)
    (first,) = {member["keys"][0] for member in holdfast("keys", "list", *where, "--json").json["members"]}
    file = tmp_path / "new"
    second = holdfast("keys", "generate", "-o", file, "--json").json["id"]
    ended = holdfast("keys", "install", file, *where, "--json")
    assert ended.code == 0
    assert {member["name"]: member["keys"] for member in ended.json["members"]} == {"a0": [first, second], "a1": [first, second]}
    assert {tuple(member["keys"]) for member in holdfast("keys", "use", second, *where, "--json").json["members"]} == {(second, first)}
    ended = holdfast("keys", "remove", first, *where)
    assert (ended.code, [line.split() for line in ended.out.splitlines()[1:]]) == (0, [["a0", "done", second], ["a1", "done", second]])


def test_a_member_that_failed(holdfast: Run, tmp_path: Path) -> None:
    """Exit code 1, and its own words; what it says about itself is escaped. --force is passed on."""
    reports = (key_calls.MemberReport("a", True, "", ("11", "22")), key_calls.MemberReport("b\x1b[2J", False, "no\nanswer"))
    with FakeAgent(tmp_path / "a.sock") as agent:
        agent.answers[key_calls.Keys] = reports
        ended = holdfast("keys", "remove", "11", "--agent", agent.path, "--force")
        assert ended.code == 1
        assert ended.out.splitlines()[1:] == ["a         done    11 22", "b\\x1b[2J  FAILED         no\\nanswer"]
        ended = holdfast("keys", "list", "--agent", agent.path, "--json")
        assert (ended.code, ended.json["done"], ended.json["members"][1]["done"]) == (1, False, False)
        assert [(call.action, call.key, call.force) for call in agent.asked(key_calls.Keys)] == [
            ("remove", "11", True),
            ("list", "", False),
        ]


def test_install_reads_stdin(holdfast: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key need not be in a file of this machine."""
    key = holdfast("keys", "generate").out
    with FakeAgent(tmp_path / "a.sock") as agent:
        agent.answers[key_calls.Keys] = ()
        monkeypatch.setattr("sys.stdin", io.StringIO(key))
        assert holdfast("keys", "install", "-", "--agent", agent.path).code == 0
        assert agent.asked(key_calls.Keys)[0].key == key.strip()


def test_what_is_no_key(holdfast: Run, tmp_path: Path) -> None:
    """Exit code 2, before the agent is asked; the text itself is never repeated."""
    (tmp_path / "bad").write_text("hunter2hunter2")
    (tmp_path / "bad").chmod(0o600)
    ended = holdfast("keys", "install", tmp_path / "bad", "--agent", tmp_path / "none")
    ended.refused(2, "bad")
    assert "hunter2" not in ended.err
    holdfast("keys", "install", tmp_path / "missing").refused(2, "No such file")
    holdfast("keys", "list", "--timeout", "0").refused(2, "--timeout 0", "above 0")
