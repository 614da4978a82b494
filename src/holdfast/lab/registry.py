"""Which scenarios and experiments there are, by every name they answer to.  Spec: foundation 6 (names).

A scenario is a module with a ``SCENARIO`` in the folder ``lab/scenarios`` of a feature or of a paper, an experiment one with an
``EXPERIMENT`` in the folder ``lab/experiments``. A path to a Python file that has one of the two serves as a name too, so that users need
no package.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from holdfast.errors import ConfigError
from holdfast.lab.experiment import Experiment
from holdfast.lab.extras import missing
from holdfast.lab.scenario import Scenario

# The kit's trials, and where the folders are whose ``lab`` has trials: a package ``scenarios``, a package ``experiments``, or both.
# A folder is found by its place, not by a list: the lab tries a protocol before any agent runs it.
OF_THE_KIT = "holdfast.lab.kit"
FOLDERS_IN = ("holdfast.features", "holdfast.papers")
Found = Scenario | Experiment[Any]
HOW_TO_LIST = "`holdfast lab list` shows all of them, and a path to a .py file with SCENARIO or EXPERIMENT works too"
SUGGESTIONS_MAX = 3


@cache
def scenarios() -> dict[str, Scenario]:
    """Every scenario of the package, by name, sorted."""
    found: list[Scenario] = [module.SCENARIO for module in _modules("scenarios") if hasattr(module, "SCENARIO")]
    return _by_name((scenario.name, scenario) for scenario in found)


@cache
def experiments() -> dict[str, Experiment[Any]]:
    """Every experiment of the package, by id, sorted."""
    found: list[Experiment[Any]] = [module.EXPERIMENT for module in _modules("experiments") if hasattr(module, "EXPERIMENT")]
    return _by_name((experiment.id, experiment) for experiment in found)


def find(name: str) -> Found:
    """The scenario or experiment that answers to a name, an id or a path; ConfigError with the closest names otherwise."""
    if is_path(name):
        return _in_file(Path(name))
    known = _names()
    if name not in known:
        raise ConfigError(f"{name!r}: there is no such scenario or experiment; {_closest(name, list(known))}{HOW_TO_LIST}")
    return known[name]


def find_scenario(name: str) -> Scenario:
    found = find(name)
    if isinstance(found, Scenario):
        return found
    raise ConfigError(f"{name!r} is an experiment, and this needs a scenario: {', '.join(scenarios())}")


def find_experiment(name: str) -> Experiment[Any]:
    found = find(name)
    if isinstance(found, Experiment):
        return found
    raise ConfigError(f"{name!r} is a scenario, and this needs an experiment: {', '.join(experiments())}")


def folder(name: str) -> list[Experiment[Any]]:
    """All experiments of one folder, in the order of their numbers."""
    folders = sorted({each.partition("/")[0] for each in experiments()})
    chosen = [experiment for each, experiment in experiments().items() if each.partition("/")[0] == name]
    if not chosen:
        raise ConfigError(f"{name!r}: there is no such folder of experiments; accepted: {', '.join(folders)}")
    return sorted(chosen, key=lambda experiment: natural(experiment.id))


def is_path(name: str) -> bool:
    return name.endswith(".py")


def file_name(name: str) -> str:
    """A name as the stem of a file: ``kit/F8`` becomes ``kit-F8``, a path becomes its stem."""
    return Path(name).stem if is_path(name) else name.replace("/", "-")


def _trials() -> Iterator[str]:
    yield OF_THE_KIT
    for home in FOLDERS_IN:
        for folder in iter_modules(import_module(home).__path__, f"{home}."):
            if folder.ispkg and find_spec(f"{folder.name}.lab") is not None:
                yield f"{folder.name}.lab"


def _modules(kind: str) -> Iterator[ModuleType]:
    for place in _trials():
        package = f"{place}.{kind}"
        if find_spec(package) is None:
            continue
        for info in iter_modules(import_module(package).__path__, f"{package}."):
            try:
                yield import_module(info.name)
            except ModuleNotFoundError as error:
                raise missing(error, f"the lab ({info.name.rpartition('.')[2]})") from None


def _by_name(pairs: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, found in pairs:
        assert name not in table, f"two modules are called {name}"
        table[name] = found
    return dict(sorted(table.items(), key=lambda item: natural(item[0])))


def _names() -> dict[str, Found]:
    table: dict[str, Found] = {**scenarios(), **experiments()}
    for experiment in experiments().values():
        table.setdefault(experiment.name, experiment)
    return table


def _closest(name: str, known: list[str]) -> str:
    folded = {each.casefold(): each for each in known}
    # Many know the last word only ("omega" for "detection/omega"), so both spellings compete.
    short = {each.casefold().rpartition("/")[2]: each for each in known}
    close = get_close_matches(name.casefold(), [*folded, *short], n=SUGGESTIONS_MAX, cutoff=0.5)
    found = dict.fromkeys(folded.get(each) or short[each] for each in close)
    return f"did you mean {' or '.join(found)}? " if found else ""


@cache
def _in_file(path: Path) -> Found:
    module = _load(path)
    found = getattr(module, "SCENARIO", None) or getattr(module, "EXPERIMENT", None)
    if not isinstance(found, (Scenario, Experiment)):
        raise ConfigError(f"{path}: has neither a SCENARIO (see holdfast.lab.scenario) nor an EXPERIMENT (see holdfast.lab.experiment)")
    return found


def _load(path: Path) -> ModuleType:
    try:
        is_file = path.is_file()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if not is_file:
        raise ConfigError(f"{path}: there is no such file")
    # The path is part of the module's name: two files called omega.py are two modules.
    name = f"holdfast_lab_file_{path.stem}_{hashlib.blake2b(str(path.resolve()).encode(), digest_size=4).hexdigest()}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # A file that exits when it is imported must not choose our exit code.
        del sys.modules[name]
        raise ConfigError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    return module


def natural(name: str) -> list[int | str]:
    """x9 before x13. Splitting at digits begins with text, so numbers meet numbers when two names are compared."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
