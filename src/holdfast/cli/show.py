"""What people see: tables, escaped text, one JSON object. Names, tags and messages were chosen by others, so nothing of them is obeyed.

On a terminal short tables are drawn by rich; long ones, and all elsewhere, are plain text in columns. No text of a member ever passes
through rich's markup.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

GAP = "  "  # between two columns
DRAWN_MAX = 200  # rows: each that is drawn costs a quarter of a millisecond, and a command is to answer in 200 of them


def shown(text: str) -> str:
    """One line without control characters: what would move the cursor, turn text around or break the line is spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def print_json(value: Any) -> None:
    """Exactly one object on stdout."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_json_line(value: Any) -> None:
    """One object in one line, seen at once."""
    import msgspec

    print(msgspec.json.encode(value).decode(), flush=True)


def say(text: str) -> None:
    """One sentence for the person at the terminal; scripts read stdout and the exit code."""
    print(f"holdfast: {shown(text)}", file=sys.stderr)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows below their titles."""
    safe = [[shown(cell) for cell in row] for row in rows]
    if len(rows) <= DRAWN_MAX and sys.stdout is not None and sys.stdout.isatty() and find_spec("rich") is not None:
        _print_drawn(columns, safe)
    else:
        _print_plain(columns, safe)


def print_pairs(pairs: Mapping[str, str]) -> None:
    """One name and value per line."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        print(f"{shown(name).ljust(width)}{GAP}{shown(value)}".rstrip())


def _print_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [columns, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    for line in lines:
        print(GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _print_drawn(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text, not str: a name like "[red]" is a name
    Console().print(table)
