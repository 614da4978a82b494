"""Whether the extra that serving HTTP needs is installed, found out without importing it."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.errors import ExtraMissing, installing

PACKAGES = ("starlette", "uvicorn", "h11", "anyio")
MISSING = f"http: serving it needs starlette and uvicorn; {installing('http')}, or leave http empty"


def has_http() -> bool:
    try:
        return all(find_spec(name) is not None for name in PACKAGES)
    except (ImportError, ValueError):  # A program that hides a package may do it in these ways, too.
        return False


def check_http() -> None:
    """Before an agent locks, writes or starts anything. Raises ExtraMissing."""
    if not has_http():
        raise ExtraMissing(MISSING)
