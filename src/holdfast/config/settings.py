"""One frozen Config: every setting of an agent, checked before a socket opens.  docs/agent.md lists them.

A setting has one name everywhere: ``bind`` in the TOML file, ``HOLDFAST_BIND`` in the environment, ``--bind`` as a
flag. What is wrong is one ``ConfigError`` that names the setting, its value, what is accepted and where the value came
from.

The settings of a feature stand in the ``settings.py`` of the feature. A line in ``holdfast.features.FEATURES`` is enough
for an agent to have them. The tables that are bases of ``Config`` below are known to a type checker as well, and stand
where they have always stood in lists for people; those of other features follow. Importing this module is cheap, because
many commands do; what only a check needs is imported by the check.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct, defstruct
from msgspec.structs import fields, force_setattr

from holdfast.config.process import LONGEST_GRANT_MAX, LocalSettings, PlaceSettings, SeatSettings
from holdfast.errors import ConfigError, shown
from holdfast.features import rooms
from holdfast.features.leadership.settings import LeadershipSettings
from holdfast.features.ring.settings import RingSettings, RingShape
from holdfast.features.tickets.settings import TicketSettings
from holdfast.kit.settings import PRESET_NAMES, ClockSettings, Table, settings_of

HIDDEN = "(hidden)"

Made = TypeVar("Made", bound=Struct)


def flat(struct: type[Made], more: Sequence[type[Table]] = ()) -> type[Made]:
    """The struct with one field for each setting of the tables it inherits from, in the order of these tables, and of ``more`` tables.

    A struct cannot inherit from several structs that have fields. So tables are plain classes, and their fields are made here.
    """
    tables = (*_tables(struct), *more)
    rows = [(name, table.__annotations__[name], vars(table)[name]) for table in tables for name in settings_of(table)]
    made: Any = defstruct(struct.__name__, rows, bases=(struct, *more), module=struct.__module__, frozen=True, kw_only=True)
    made.__doc__ = struct.__doc__
    return made  # type: ignore[no-any-return]


def with_features(struct: type[Made]) -> type[Made]:
    """``flat``, with the tables of features in the list that are no bases of it."""
    return flat(struct, [table for table in of_features() if not issubclass(struct, table)])


def of_features() -> list[type[Table]]:
    """The tables that features declare, in the order of the list and of their files."""
    return [each for room in rooms("settings") for each in vars(room).values() if _is_table(each) and each.__module__ == room.__name__]


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Table) and bool(settings_of(kind))


def _tables(struct: type) -> list[type[Table]]:
    return [base for base in struct.__bases__ if issubclass(base, Table)]


@with_features
class Config(
    PlaceSettings,
    RingSettings,
    LeadershipSettings,
    TicketSettings,
    SeatSettings,
    RingShape,
    ClockSettings,
    LocalSettings,
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
):
    """The settings of one agent. A timing of 0.0 comes from the preset, stretched as far as the setting of its membership that
    ``stretches``. Those of another membership stay 0.0."""

    def __post_init__(self) -> None:
        if self.preset in PRESET_NAMES:
            longest_given = self.longest_grant != 0
            self._fill(PRESET_NAMES.index(self.preset))
            if not longest_given:  # What is held without a grace always fits, whatever lengths were given.
                force_setattr(self, "longest_grant", max(self.longest_grant, self.longest_grant_min))
        for table in TABLES:
            for name, value in table.derived(self).items():
                force_setattr(self, name, value)

    def _fill(self, preset: int) -> None:
        foreign = self.foreign
        stretching = [name for name in STRETCHING if name not in foreign]  # none if the membership is a typing error
        stretched = max((getattr(self, name) / SETTINGS[name].presets[preset] for name in stretching), default=0.0) or 1.0
        for name in Timing._fields:
            if getattr(self, name) == 0 and name not in foreign:
                setting = SETTINGS[name]
                least, most = setting.limits or (0.0, LONGEST_GRANT_MAX)  # a setting may be quicker than another one that follows it can be
                force_setattr(self, name, min(max(setting.presets[preset] * stretched, least), most))

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.shown().items())})"

    def shown(self) -> dict[str, Any]:
        """Every setting that means something with this membership, by name, without secrets."""
        foreign = self.foreign
        return {**{name: getattr(self, name) for name in SETTINGS if name not in foreign}, "key": HIDDEN if self.key else ""}

    @property
    def foreign(self) -> frozenset[str]:
        """Settings that mean nothing with this membership."""
        return frozenset(name for name, kinds in OF_MEMBERSHIPS.items() if self.membership not in kinds)

    @property
    def longest_grant_min(self) -> float:
        """What is held without a grace must fit, or nothing could be held at all."""
        return max((needed.seconds for table in TABLES if (needed := table.grant_needed(self))), default=0.0)

    def check(self) -> None:
        """Raises ``ConfigError`` for the first setting that cannot be used. Reads files; opens no socket, changes nothing."""
        from holdfast.config.checks import check_files, check_process, check_tags

        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name}: {shown(getattr(self, name))}; accepted are {', '.join(choices)}")
        foreign = self.foreign
        for name in sorted(foreign):
            self._check_foreign(name)
        check_process(self, self)
        for table in TABLES:
            if not foreign.intersection(settings_of(table)):
                self._check_limits(table)
                table.check_table(self)
        self._check_longest()
        check_tags(self.tags)
        check_files(self, self.state_dir)

    def _check_foreign(self, name: str) -> None:
        """A number that would be ignored is refused (H140)."""
        if getattr(self, name) == DEFAULTS[name]:
            return
        instead = [each for each in STRETCHING if each not in self.foreign] if SETTINGS[name].stretches else []
        advice = f"set {instead[0]}" if instead else "leave it out"
        raise ConfigError(f'{name}: is set, and membership is "{self.membership}", which has none; {advice}')

    def _check_limits(self, table: type[Table]) -> None:
        for name, setting in settings_of(table).items():
            if setting.limits is not None:
                (least, most), value = setting.limits, getattr(self, name)
                if not least <= value <= most:
                    unit = " seconds" if setting.metavar == "SECONDS" else ""
                    raise ConfigError(f"{name}: {shown(value)}; accepted are {least:g} to {most:g}{unit}")

    def _check_longest(self) -> None:
        least = self.longest_grant_min
        if not least <= self.longest_grant <= LONGEST_GRANT_MAX:
            needed = " and ".join(needed.what for table in TABLES if (needed := table.grant_needed(self)))
            raise ConfigError(
                f"longest_grant: {shown(self.longest_grant)}; accepted are {least:g} to {LONGEST_GRANT_MAX:g} seconds: {needed} must fit"
            )


TABLES = [table for table in (*_tables(Config.__bases__[0]), *_tables(Config)) if settings_of(table)]
SETTINGS = {name: setting for table in TABLES for name, setting in settings_of(table).items()}
DEFAULTS: dict[str, Any] = {field.name: {} if field.name == "tags" else field.default for field in fields(Config)}
_checked = sorted(SETTINGS, key=lambda name: name.startswith("log_"))  # those of the log come last
CHOICES = {name: SETTINGS[name].choices for name in _checked if SETTINGS[name].choices}
STRETCHING = tuple(name for name, setting in SETTINGS.items() if setting.stretches)
OF_MEMBERSHIPS = {name: table.memberships() for table in TABLES if table.memberships() for name in settings_of(table)}


def _presets() -> tuple[Any, dict[str, Any]]:
    """What each preset says, in seconds, as a named tuple."""
    timing: Any = namedtuple  # a type checker cannot know the names
    timing = timing("Timing", [name for name, setting in SETTINGS.items() if setting.presets])
    columns = zip(*(SETTINGS[name].presets for name in timing._fields), strict=True)
    return timing, {preset: timing(*column) for preset, column in zip(PRESET_NAMES, columns, strict=True)}


Timing, PRESETS = _presets()
