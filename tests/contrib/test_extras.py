"""What is not installed is said; each module needs its own extra alone."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("extra", ["httpx", "celery"])
def test_a_missing_extra_is_named(extra: str) -> None:
    """The file has the name of the package that it imports, so an ImportError alone would puzzle."""
    code = (
        f"import sys; sys.modules[{extra!r}] = None\ntry:\n import holdfast.contrib.{extra}\nexcept ImportError as e:\n print('plain', e)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"ExtraMissing: holdfast.contrib.{extra} needs" in ended.stderr
    assert f"pip install '.[{extra}]'" in ended.stderr


def test_asgi_needs_nothing() -> None:
    """Its extra brings no package."""
    blocked = ["starlette", "uvicorn", "httpx", "celery", "fastapi", "anyio"]
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked})); import holdfast.contrib.asgi"
    assert subprocess.run([sys.executable, "-W", "error", "-c", code], check=False).returncode == 0
