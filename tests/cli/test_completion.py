"""Shell completion: scripts for three shells, verbs and flags without importing what they do, names from the agent if it is quick."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.cli import completion
from holdfast.host import Address, Member, NodeId
from holdfast.local import calls
from tests.cli.fake_agent import GROUP_VIEW, FakeAgent

NAMES = ("web-1", "web-2", "db", "odd name", "$(reboot)")
MEMBERS = tuple(Member(NodeId(name, 1), Address("127.0.0.1", 1), {}) for name in NAMES)
VIEW = calls.GroupView(1, "member", GROUP_VIEW.me, MEMBERS, (0,) * len(MEMBERS))


def completed(line: str, *, words: int) -> list[str]:
    """What bash is offered for the last word of a line."""
    environ = {**os.environ, "_HOLDFAST_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(words)}
    ended = subprocess.run([sys.executable, "-m", "holdfast"], env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.parametrize("shell,mark", [("bash", "complete"), ("zsh", "#compdef holdfast"), ("fish", "complete --command holdfast")])
def test_scripts(shell: str, mark: str) -> None:
    """`--show-completion SHELL`: exit code 0 and the script; nobody takes its end for a mistake."""
    environ = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "--show-completion", shell], env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert mark in ended.stdout
    assert "_HOLDFAST_COMPLETE" in ended.stdout


def test_verbs_and_flags() -> None:
    """Verbs at every level, and the flags of one."""
    assert completed("holdfast me", words=1) == ["members", "messages"]
    assert completed("holdfast keys ", words=2) == ["generate", "list", "install", "use", "remove"]
    assert completed("holdfast members --st", words=2) == ["--status"]


def test_names_of_members(tmp_path: Path) -> None:
    """`holdfast send we<TAB>`: from the agent of --agent; names that a shell would read as something else are left out."""
    with FakeAgent(tmp_path / "a.sock") as agent:
        agent.answers[calls.Look] = VIEW
        assert completed(f"holdfast send --agent {agent.path} we", words=4) == ["web-1", "web-2"]
        assert completion.members(agent.path, "", "") == ["web-1", "web-2", "db"]


def test_nobody_waits_for_an_agent(tmp_path: Path) -> None:
    """No agent, or one that does not answer in 100 ms: no names, and no noise."""
    assert completion.members(str(tmp_path / "none"), "", "") == []
    with FakeAgent(tmp_path / "a.sock", silent=True) as agent:
        began = time.monotonic()
        assert completion.members(agent.path, "", "") == []
        assert time.monotonic() - began >= completion.PATIENCE
