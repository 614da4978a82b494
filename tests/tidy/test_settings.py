"""A setting has one address: the table of its feature, or of the process. ``config`` knows the tables and none of their lines."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Struct
from msgspec.structs import fields

from holdfast.config import SETTINGS, Config
from holdfast.config.settings import TABLES, flat
from holdfast.kit.settings import Setting, Table, settings_of
from tests.tidy.tree import PACKAGE, source

FEATURES = "holdfast.features."
# What importing ``config`` must not load: an agent that runs without a feature would pay for it, and every command does pay for it.
HEAVY = re.compile(r"holdfast\.(features\.\w+\.(?!settings$)|agent|cli|client|lab|net|node|wire)")


def of_features() -> dict[str, str]:
    """The settings of the features, each with the module that declares it."""
    return {name: table.__module__ for table in TABLES if table.__module__.startswith(FEATURES) for name in settings_of(table)}


def named(text: str, settings: dict[str, str]) -> list[str]:
    """Which of these settings a file names: in code, in a text or in a comment."""
    return sorted(name for name in settings if re.search(rf"\b{name}\b", text))


def test_config_names_no_setting_of_a_feature() -> None:
    """H210: a setting of a feature is one line in its ``settings.py``; ``config`` has the list of tables and nothing else of them."""
    settings = of_features()
    assert {"lease", "k", "heartbeat", "ticket_lease"} <= settings.keys()
    files = [(path, text) for path, text in source() if path.parent == PACKAGE / "config"]
    assert len(files) > 3
    assert {path.name: names for path, text in files if (names := named(text, settings))} == {}
    assert named('PRESETS["lan"].heartbeat', settings) == ["heartbeat"]


def test_only_one_file_of_config_names_features() -> None:
    """H210: the bases of ``Config`` are the one place; a line in the list of features adds tables without one (H216)."""
    naming = set()
    for path, text in source():
        if path.parent == PACKAGE / "config":
            imported = [node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
            if any(module.startswith(FEATURES) for module in imported):
                naming.add(path.name)
    assert naming == {"settings.py"}


def test_every_table_is_in_the_list() -> None:
    """H210: a table that is forgotten in the list would have settings that no agent reads."""
    files = {f"{FEATURES}{path.parent.name}.settings" for path, _ in source() if path.match("features/*/settings.py")}
    assert files == set(of_features().values())
    declared = {kind for module in files for kind in vars(sys.modules[module]).values() if isinstance(kind, type) and settings_of_any(kind)}
    assert declared <= set(TABLES)


def settings_of_any(kind: type) -> bool:
    return issubclass(kind, Table) and bool(settings_of(kind))


def test_a_setting_is_one_line_of_its_table() -> None:
    """H210: type, default, help, limits and presets come from the line; the flat value takes no room beside its fields."""
    assert [field.name for field in fields(Config)] == list(SETTINGS)
    assert all(setting.text and "\n" not in setting.text for setting in SETTINGS.values())
    assert {len(setting.presets) for setting in SETTINGS.values()} == {0, 3}
    assert not hasattr(Config(), "__dict__")  # ``__slots__ = ()`` is missing in a table


def test_tables_become_one_struct() -> None:
    """H210: fields stand in the order of the tables; a table may use the settings of a table below it."""

    class Below(Table):
        __slots__ = ()
        rate: Annotated[float, Setting("A rate.", "N")] = 0.5

    class Above(Below):
        __slots__ = ()
        count: Annotated[int, Setting("A count.", "N")] = 2

        def product(self) -> float:
            return self.count * self.rate

    @flat
    class Both(Above, Below, Struct, frozen=True, kw_only=True):
        """Of two tables."""

    both = Both(count=4)
    assert [field.name for field in fields(Both)] == ["count", "rate"]
    assert (both.product(), both) == (2.0, Both(count=4, rate=0.5))
    with pytest.raises(AttributeError):
        both.count = 5  # type: ignore[misc]


TOY = """
from typing import Annotated
from holdfast.errors import ConfigError
from holdfast.kit.settings import Setting, Table

class ToySettings(Table):
    __slots__ = ()
    toy_limit: Annotated[int, Setting("How much.", "N")] = 7
    toy_pause: Annotated[float, Setting("How long, seconds.", "SECONDS", (1.0, 5.0, 0.5), limits=(0.1, 60.0))] = 0.0

    def check_table(self) -> None:
        if self.toy_limit < 1:
            raise ConfigError(f"toy_limit: {self.toy_limit}; accepted are numbers above 0")
"""
READ = """
from holdfast import features
features.FEATURES += ("toy.agent:ToyFeature",)
from holdfast.config import DEFAULTS, PRESETS, SETTINGS, Config, load
from holdfast.errors import ConfigError
from toy.settings import ToySettings
config = load(environ={"HOLDFAST_TOY_LIMIT": "3"})
print(ToySettings.of(config).toy_limit, config.toy_pause, PRESETS["wan"].toy_pause, list(SETTINGS)[-2:], hasattr(config, "__dict__"))
for wrong in ({"toy_limit": 0}, {"toy_pause": 99.0}):
    try:
        load(overrides=wrong)
    except ConfigError as error:
        print(error)
"""


def test_a_line_in_the_list_brings_the_settings_of_a_feature(tmp_path: Path) -> None:
    """H216: a folder and a line; its settings have names in the environment, presets, limits and checks like all others."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").touch()
    (tmp_path / "toy" / "settings.py").write_text(TOY)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", READ], check=False, capture_output=True, text=True, env=environ)
    assert said.stdout.splitlines() == [
        "3 1.0 5.0 ['toy_limit', 'toy_pause'] False",
        "toy_limit: 0; accepted are numbers above 0 (from flags)",
        "toy_pause: 99.0; accepted are 0.1 to 60 seconds (from flags)",
    ], said.stderr


def test_importing_config_imports_no_protocol() -> None:
    """H210: every command imports ``config``; what only a running feature needs is imported when it runs."""
    code = "import holdfast.config, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert f"{FEATURES}ring.settings" in loaded
    assert [module for module in loaded if HEAVY.match(module)] == []
