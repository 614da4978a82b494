"""How a feature declares its settings: a ``Table``, one line per setting. ``config`` puts the tables together.

A table is a class whose fields are settings: ``name: Annotated[type, Setting(...)] = default``. ``config`` reads these
annotations, so a file with tables does without ``from __future__ import annotations``, which would make texts of them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Self, dataclass_transform

from msgspec import Struct, field

PRESET_NAMES = ("lan", "wan", "local")  # the order of ``Setting.presets``


class Setting(Struct, frozen=True):
    """What is known of one setting beside its name, type and default."""

    text: str  # for ``holdfast agent --help``
    metavar: str | None = None  # what its value is called there; None: it is a switch
    presets: tuple[float, ...] = ()  # what 0.0 stands for, by preset
    limits: tuple[float, float] | None = None  # the least and the most that is accepted
    choices: tuple[str, ...] = ()
    stretches: bool = False  # what else comes from the preset keeps its proportion to this setting (H40); one for each membership


class Needed(Struct, frozen=True):
    """The shortest promise of a seat with which a feature can hold anything."""

    seconds: float
    what: str  # for the error of ``longest_grant``


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Table:
    """Some settings that belong together. ``Config`` inherits from all tables, so a method may be called on a ``Config``."""

    __slots__ = ()

    @classmethod
    def of(cls, config: object) -> Self:
        """The settings of an agent, known to a type checker as this table: ``Config`` inherits from it when the agent runs."""
        assert isinstance(config, cls)
        return config

    @classmethod
    def memberships(cls) -> tuple[str, ...]:
        """With which of them these settings mean something; none named: with all."""
        return ()

    @classmethod
    def given_variables(cls) -> tuple[str, ...]:
        """What the environment of a command has while ``holdfast run`` holds something of this feature for it. These are no settings."""
        return ()

    def derived(self) -> Mapping[str, Any]:
        """Settings that were not given and follow from others of this table."""
        return {}

    def check_table(self) -> None:
        """Raises ``ConfigError`` for settings that do not go together. Limits and choices were checked before."""

    def grant_needed(self) -> Needed | None:
        """None: any length of a promise will do."""
        return None


class ClockSettings(Table):
    """What every wait for another process's deadline counts with (F8)."""

    __slots__ = ()

    rho: Annotated[float, Setting("How far the rates of two clocks may differ from true time.", "SHARE")] = 0.001
    margin: Annotated[float, Setting("Added to every wait for another process's deadline, seconds.", "SECONDS")] = 0.01


def settings_of(table: type[Table]) -> dict[str, Setting]:
    """The settings that this class itself declares, by name."""
    return {name: _setting(name, kind) for name, kind in vars(table).get("__annotations__", {}).items()}


def _setting(name: str, kind: Any) -> Setting:
    assert not isinstance(kind, str), f"{name}: the file of its table imports annotations from __future__"
    found: Setting = next(note for note in kind.__metadata__ if isinstance(note, Setting))
    return found
