"""Finds and runs the code of a page: ```python blocks, and the `$ holdfast ...` lines of ```console blocks.

The Python blocks of one page share a module, top to bottom, as a reader types them; `await` is allowed at the top. A block
is left out only behind a comment that says why: ``<!-- skip: needs three machines -->`` on the line before the fence. In a
console block the lines below a command must occur in what it prints; `...` stands for anything.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>python|console)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
SKIP = re.compile(r"<!-- skip: *(?P<why>\S.*?) *-->\n\Z")
HOLDFAST = Path(sys.executable).with_name("holdfast")
COMMAND_TIMEOUT = 60.0  # seconds; what takes longer is no example


@dataclass
class Block:
    """One fenced block of a page."""

    language: str
    line: int  # of its first line of code
    body: str
    skipped: str | None  # the reason


@dataclass
class Command:
    """One `$ holdfast` line and the output shown below it."""

    words: list[str]
    shown: list[str] = field(default_factory=list)


def blocks(text: str) -> Iterator[Block]:
    for fence in FENCE.finditer(text):
        indent = len(fence["indent"])
        body = "".join(line[indent:] if line.strip() else line for line in fence["body"].splitlines(keepends=True))
        skip = SKIP.search(text[: fence.start()])
        yield Block(fence["language"], text.count("\n", 0, fence.start("body")) + 1, body, skip["why"] if skip else None)


def commands(body: str) -> list[Command]:
    """The holdfast commands of a console block; what follows another command is not looked at."""
    found: list[Command] = []
    current: Command | None = None
    for line in body.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            words = shlex.split(line[2:])
            current = Command(words) if words[0] == "holdfast" else None
            found += [current] if current else []
        elif current and line.strip():
            current.shown.append(line.strip())
    return found


def run_python(page: str, parts: list[Block]) -> ModuleType:
    """Run the Python blocks of a page in one module of their own, registered so that type annotations resolve."""
    module = ModuleType("page_" + re.sub(r"\W", "_", page))
    sys.modules[module.__name__] = module
    try:
        for block in parts:
            tree = ast.parse(block.body, page)
            ast.increment_lineno(tree, block.line - 1)
            result = eval(compile(tree, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), module.__dict__)
            if inspect.iscoroutine(result):
                asyncio.run(result)
    finally:
        del sys.modules[module.__name__]
    return module


def run_command(command: Command) -> None:
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "160"}
    ended = subprocess.run(
        [HOLDFAST, *command.words[1:]],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_TIMEOUT,
        check=False,
    )
    assert ended.returncode == 0, f"{shlex.join(command.words)} ended with {ended.returncode}:\n{ended.stdout}"
    missing = [line for line in command.shown if not occurs(line, ended.stdout)]
    assert missing == [], f"{shlex.join(command.words)} printed:\n{ended.stdout}"


def occurs(line: str, output: str) -> bool:
    """Whether a shown line is part of a printed one; runs of spaces count as one, `...` as anything."""
    words = " ".join(line.split())
    pattern = re.compile(".*".join(re.escape(part) for part in words.split("...")))
    return any(pattern.search(" ".join(printed.split())) for printed in output.splitlines())
