"""The command line: the help of every verb, the exit codes, the variables of the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from click import Context

from tests.pins.conftest import Pinned
from tests.pins.doors import exit_codes, root_command, settings, source_texts

VARIABLE = re.compile(r"\b_?HOLDFAST_[A-Z_]*[A-Z]\b")


def helps(command: Any, *words: str, above: Any = None) -> Iterator[str]:
    """The help of a command, then of all below it, in the order in which they are listed."""
    with Context(command, info_name=words[-1], parent=above, max_content_width=100, terminal_width=100) as context:
        yield f"$ {' '.join(words)} --help"
        yield from command.get_help(context).split("\n")
        yield ""
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            yield from helps(command.get_command(context, name), *words, name, above=context)


def test_help(pinned: Pinned, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/cli.md: scripts call verbs with these words and flags; the texts are what people read."""
    monkeypatch.setenv("COLUMNS", "100")
    pinned("help", helps(root_command(), "holdfast"))


def test_exit_codes(pinned: Pinned) -> None:
    """docs/cli.md: scripts compare these numbers; each error of ours has one."""
    pinned("exit_codes", exit_codes())


def test_variables(pinned: Pinned) -> None:
    """Every variable that Holdfast reads or gives to a command, settings (golden/settings.txt) apart."""
    found = {name for text in source_texts() for name in VARIABLE.findall(text)}
    own = {f"HOLDFAST_{name.upper()}" for name in settings.DEFAULTS}
    pinned("variables", [*sorted(found - own), f"HOLDFAST_GROUP, of a setting, is read by commands as well: {'HOLDFAST_GROUP' in found}"])
