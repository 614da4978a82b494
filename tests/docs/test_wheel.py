"""What an installed wheel has, without the repository beside it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.docs.blocks import blocks

ROOT = Path(__file__).resolve().parents[2]
# Without ``site`` no .pth file is read, so what is installed for editing is not found; dependencies are, behind the wheel.
RUN = """
import ast, asyncio, inspect, sys
sys.path[:] = [{target!r}, *(each for each in sys.path if each), {site!r}]
import holdfast
assert holdfast.__file__.startswith({target!r}), holdfast.__file__
sys.modules["tests"] = None
code = compile(open("page.py").read(), "page.py", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, sys.modules["__main__"].__dict__)
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    for words in (
        ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), str(ROOT)],
        ["install", "--no-deps", "--no-index", "--find-links", str(folder), "--target", str(folder / "installed"), "holdfast"],
    ):
        done = subprocess.run([*pip, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return folder / "installed"


def test_a_first_protocol_runs_from_the_wheel(target: Path, tmp_path: Path) -> None:
    """Style 6: docs/first-protocol.md needs nothing that only a clone has."""
    parts = [
        block for block in blocks((ROOT / "docs" / "first-protocol.md").read_text()) if block.language == "python" and not block.skipped
    ]
    (tmp_path / "page.py").write_text("\n".join(block.body for block in parts))
    code = RUN.format(target=str(target), site=sysconfig.get_path("purelib"))
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
