"""The repository as the tidy tests see it: its files, its Python, the text of its documents."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import holdfast

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holdfast"
PYTHON_FOLDERS = ("src", "tests", "benchmarks", "fuzz", "scripts", "docs")
BUILT = {".git", ".venv", "__pycache__", "_build", "build", "dist", "out"}  # what is skipped where git cannot say it


@cache
def files() -> tuple[Path, ...]:
    """Everything that is, or would be, in a commit. A copy without git's memory counts whatever was not built."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        found = [ROOT / name for name in listed if name]
    else:
        found = [path for path in ROOT.rglob("*") if not any(part in BUILT or part.endswith("_cache") for part in path.parts)]
    return tuple(sorted({path for path in found if path.is_file()}))


@cache
def texts() -> dict[Path, str]:
    """The text of every file that has one; pictures and captures are not read."""
    found = {}
    for path in files():
        data = path.read_bytes()
        if b"\0" not in data:
            found[path] = data.decode("utf-8", "replace")
    return found


def python() -> Iterator[tuple[Path, str]]:
    for path, text in texts().items():
        if path.suffix == ".py":
            yield path, text


def source() -> Iterator[tuple[Path, str]]:
    """The Python of the package itself."""
    return ((path, text) for path, text in python() if path.is_relative_to(PACKAGE))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def import_all() -> list[str]:
    """Import every module of the package, so that all message and event types are known."""
    found = [info.name for info in pkgutil.walk_packages(holdfast.__path__, "holdfast.") if not info.name.endswith("__main__")]
    for module in found:
        importlib.import_module(module)
    return found


def subclasses(base: type[T]) -> list[type[T]]:
    """All descendants that the package defines, in the order of their names."""
    found: set[type[T]] = set()
    pending = list(base.__subclasses__())
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.__module__.startswith("holdfast."):
            found.add(kind)
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))
