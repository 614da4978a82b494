"""``holdfast lab script``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.exits import FOUND
from holdfast.cli.lab.options import Json, print_json
from holdfast.errors import ConfigError


def script(
    file: Annotated[Path, typer.Argument(help="A script, with or without the trace it must print.", metavar="FILE")],
    *,
    rewrite: Annotated[bool, typer.Option("--rewrite", help="Write the trace into the file, below the script.")] = False,
    as_json: Json = False,
) -> None:
    """Play a directed schedule and print its trace (exit 1: an invariant or an expectation did not hold)."""
    from holdfast.lab.script import SEPARATOR, parse, split
    from holdfast.lab.stage import play

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'is no text'}") from None
    played = play(parse(text, str(file)))
    if rewrite:
        file.write_text(f"{split(text)[0]}{SEPARATOR}\n{played.trace}", encoding="utf-8")
    if as_json:
        print_json({"script": str(file), "verdict": "pass" if played.ok else "violation", "trace": played.trace.splitlines()})
    else:
        sys.stdout.write(played.trace)
    raise typer.Exit(0 if played.ok else FOUND)
