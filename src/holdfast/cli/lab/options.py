"""Options that several verbs share, so that they mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.errors import ConfigError

SEEDS_MAX = 1_000_000  # of one sweep; A:B goes on where another ended


def checked_seed(seed: int) -> int:
    from holdfast.lab.script import SEED_MAX

    if not 0 <= seed <= SEED_MAX:
        raise ConfigError(f"--seed {seed}: accepted are 0 to {SEED_MAX}")
    return seed


Name = Annotated[
    str, typer.Argument(help="A scenario or experiment (`holdfast lab list`), or a .py file that declares one.", metavar="NAME")
]
ScenarioName = Annotated[str, typer.Argument(help="A scenario (`holdfast lab list`), or a .py file that declares one.", metavar="SCENARIO")]
Seed = Annotated[int, typer.Option("--seed", help="Every random choice follows from it.", metavar="N", callback=checked_seed)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes on this machine.", metavar="N")]
On = Annotated[str, typer.Option("--on", help="A cluster instead: dask:ADDRESS.", metavar="dask:ADDRESS")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
PlanFile = Annotated[Path | None, typer.Option("--plan", help="Faults from this file instead of the seed's own.", metavar="FILE")]
OutFolder = Annotated[Path, typer.Option("--out", help="Folder for results and pictures.", metavar="DIR")]

OUT = Path("out")


def print_json(value: Any) -> None:
    """Exactly one object on stdout."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def prepared(folder: Path) -> Path:
    """The folder, made if it is missing; said before the work, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {folder}: cannot be used as a folder: {error.strerror}") from None
    return folder


def seed_range(text: str) -> range:
    """``A:B`` is A to B-1, as in Python; ``N`` is 0 to N-1."""
    from holdfast.lab.script import SEED_MAX

    first, colon, last = text.partition(":")
    try:
        seeds = range(int(first), int(last)) if colon else range(int(first))
    except ValueError:
        raise ConfigError(f"--seeds {text}: accepted are N (0 to N-1) and A:B (A to B-1)") from None
    # A range of more than a machine word has no length, so its ends are compared instead.
    if seeds.stop <= seeds.start or seeds.start < 0:
        raise ConfigError(f"--seeds {text}: names no seed; accepted are N above 0 and A:B with 0 <= A < B")
    if seeds.stop - seeds.start > SEEDS_MAX or seeds.stop - 1 > SEED_MAX:
        raise ConfigError(f"--seeds {text}: accepted are up to {SEEDS_MAX} seeds at once, none above {SEED_MAX}")
    return seeds


def settings(pairs: list[str]) -> dict[str, str]:
    """``--set k=v`` as a table; what k may be, the experiment decides."""
    table: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise ConfigError(f"--set {pair}: accepted is PARAMETER=VALUE")
        if key.strip() in table:
            raise ConfigError(f"--set {pair}: {key.strip()} is set twice; accepted is one value for each parameter")
        table[key.strip()] = value.strip()
    return table
