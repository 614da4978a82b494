"""The page about the agent says what the settings are."""

from __future__ import annotations

import re

from msgspec.structs import fields

from holdfast.agent.life.home import LEFT_FILE, NAME_FILE
from holdfast.agent.life.key_store import KEYRING_FILE
from holdfast.agent.life.reload import CHANGEABLE
from holdfast.config import CHOICES, PRESETS, Config
from tests.tidy.tree import ROOT

PAGE = (ROOT / "docs" / "agent.md").read_text()
ROW = re.compile(r"^\| `(?P<name>\w+)` \| `(?P<default>[^`]+)` \| (?P<text>.+) \|$", re.MULTILINE)


def rows() -> dict[str, tuple[str, str]]:
    table = PAGE[PAGE.index("<!-- settings -->") :]
    return {row["name"]: (row["default"], row["text"]) for row in ROW.finditer(table[: table.index("\n\n")])}


def test_every_setting_with_its_default() -> None:
    """One row for each field of Config, in its order, and none for anything else."""
    found = rows()
    assert list(found) == [field.name for field in fields(Config)]
    for field in fields(Config):
        default = {} if field.name == "tags" else field.default
        assert found[field.name][0] == (f"{default:#o}" if field.name == "socket_mode" else repr(default).replace("'", '"')), field.name


def test_presets_and_choices_are_named() -> None:
    """Every accepted word, and every preset's value, stands in the row of its setting."""
    found = rows()
    for name, choices in CHOICES.items():
        assert all(f"`{choice}`" in found[name][1] for choice in choices), name
    for preset, timing in PRESETS.items():
        for name, seconds in timing._asdict().items():
            assert f"`{preset}` {seconds:g}" in found[name][1], (preset, name)


def test_files_and_reload() -> None:
    """What the state directory holds, and what SIGHUP changes, as the code has it."""
    for name in (LEFT_FILE, NAME_FILE, KEYRING_FILE, "boot", "lock", "journal"):
        assert f"\n| `{name}` | " in PAGE
    assert CHANGEABLE == ("key_file", "tags", "log_level")
    assert "the keys of the key file, `tags` and `log_level` change" in PAGE
