"""What a plain `pip install .` brings is enough for a plain use of it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

from tests.tidy.tree import ROOT, texts

BLOCK = "import sys; sys.modules.update(dict.fromkeys({names!r}))"  # importing a name that maps to None is an ImportError
IMPORTS = "import holdfast, holdfast.node, holdfast.wire, holdfast.net, holdfast.disk, holdfast.lab, holdfast.cli"
BROUGHT_BY_TYPER = {"rich"}


def extras() -> list[str]:
    """The modules that only the extras bring."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {line.split(">")[0].replace("-", "_") for group in groups.values() for line in group}
    return sorted(names - BROUGHT_BY_TYPER)


def test_starts_without_any_extra() -> None:
    """Extras are optional: nothing imports one before the feature that needs it is used."""
    names = extras()
    assert {"matplotlib", "dask", "uvloop", "kazoo"} <= set(names)
    code = f"{BLOCK.format(names=names)}; {IMPORTS}"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_no_text_installs_from_an_index() -> None:
    """README: there is no release on an index, so Holdfast and its extras are installed from a clone."""
    told = re.compile(r"pip3? install [^`\n]*\bholdfast(?:\[|\b(?![-./]))")
    places = [path for path in texts() if path.is_relative_to(ROOT / "src") or path.is_relative_to(ROOT / "docs") or path.parent == ROOT]
    assert [f"{path.relative_to(ROOT)}: {found}" for path in places for found in told.findall(texts()[path])] == []
