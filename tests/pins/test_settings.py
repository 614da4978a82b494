"""Settings: name, type, default, what each preset makes of them, how they are given, and what peers compare of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ConfigError
from tests.pins.conftest import Pinned
from tests.pins.doors import fingerprints, settings
from tests.pins.example import fields

NAMES = [line.partition(":")[0] for line in fields(settings.Config)]
SEATS = ["a@127.0.0.1:7001", "b@127.0.0.1:7002", "c@127.0.0.1:7003"]
GIVEN: tuple[dict[str, Any], ...] = ({}, {"ticket_guardians": "ring"}, {"lease": 10.0}, {"lease": 0.1}, {"heartbeat": 5.0})


def test_settings(pinned: Pinned) -> None:
    """docs/agent.md: files, units and containers name these settings, and count on their defaults."""
    pinned("settings", [*declared(), "", *presets()])


def declared() -> Iterator[str]:
    """Of each setting the variable of the environment that sets it; docs/agent.md: the flag has the same name (see golden/help.txt)."""
    for name, line in zip(NAMES, fields(settings.Config), strict=True):
        yield f"{line}   HOLDFAST_{name.upper()}"
    yield from (f"{name} is one of {', '.join(choices)}" for name, choices in settings.CHOICES.items())


def presets() -> Iterator[str]:
    """What is not the default with this preset, after ``given`` was added."""
    for preset in settings.PRESETS:
        for given in GIVEN:
            found = settings.Config(preset=preset, **given).shown()
            other = [f"{name}={value!r}" for name, value in found.items() if value != settings.DEFAULTS[name]]
            yield f"preset {preset}, given {given}: {' '.join(other)}"


@pytest.mark.parametrize("name", NAMES)
def test_variables(name: str) -> None:
    """docs/agent.md: each setting is read from HOLDFAST_ and its name; what cannot be used is refused under the name of the variable."""
    variable = f"HOLDFAST_{name.upper()}"
    assert settings.unknown_variables({variable: "x"}) == []
    assert given(variable) in (name, f"(from {variable})")


def given(variable: str) -> str:
    """The setting that it gave; if "x" is no value of that setting, where the error says that it came from."""
    try:
        _, sources = settings.load_with_sources(None, {variable: "x"})
    except ConfigError as error:
        return str(error)[str(error).rindex("(") :]
    return next(name for name, source in sources.items() if source == variable)


def test_fingerprints(pinned: Pinned, tmp_path: Path) -> None:
    """F4: agents of two releases with the same settings compare the same bytes, or neither hears the other."""
    lines = []
    for given in ({"preset": "lan"}, {"preset": "wan"}, {"preset": "local", "ticket_guardians": "ring", "ticket_k": 1}):
        lines.append(f"# {given}")
        for text, names in sorted(fingerprints(tmp_path, name="pinned", seats=SEATS, **given).items()):
            lines += [f"{text.decode() or '(none)'}", f"    {' '.join(sorted(names))}"]
    pinned("fingerprints", lines)
