"""An experiment: parameters, the paper's values, a criterion as code, a picture, a verdict that is computed.

Experiments are declared in ``lab/experiments``, one small module each with one ``EXPERIMENT``. The work is a list of
independent cells; ``measure`` is a pure function of a cell, so that cells can run in other processes or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from holdfast.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Parameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every experiment's parameters; the defaults are the spec's full size."""

    seeds: int = 1  # repetitions per cell


P = TypeVar("P", bound=Parameters)
Cell = Mapping[str, Any]  # what one worker needs: plain data
Measured = Mapping[str, Any]  # what it found: plain data
Spread = Callable[[Callable[[Cell], Measured], Sequence[Cell]], Iterable[Measured]]  # ``map``, here or elsewhere, in order


class Finding(Struct, frozen=True):
    """What an experiment concluded."""

    measured: dict[str, Any]
    expected: dict[str, Any]  # the paper's or the spec's values, under the same names where they compare
    passed: bool  # the spec's criterion, computed from ``measured``
    notes: tuple[str, ...] = ()  # why it missed; what a reader must know


class Experiment(Generic[P]):
    """Base of all experiments; without state."""

    id: ClassVar[str]  # folder/number as in the spec, for example tickets/E13
    name: ClassVar[str]  # folder/readable-name
    title: ClassVar[str]
    source: ClassVar[str]  # paper and section, or spec and section
    criterion: ClassVar[str]  # the acceptance rule in words
    parameters: type[P]
    quick: ClassVar[Mapping[str, str]] = {}  # settings under which it takes seconds: enough for a look, not for a verdict

    def cells(self, parameters: P, seed: int) -> Sequence[Cell]:
        raise NotImplementedError

    def measure(self, cell: Cell) -> Measured:
        raise NotImplementedError

    def judge(self, parameters: P, results: Sequence[Measured]) -> Finding:
        raise NotImplementedError

    def draw(self, figure: Figure, finding: Finding) -> None:
        raise NotImplementedError


class Report(Struct, frozen=True):
    """One object per run of an experiment: what ``--json`` prints and the results file holds."""

    experiment: str
    name: str
    title: str
    source: str
    criterion: str
    seed: int
    parameters: dict[str, Any]
    measured: dict[str, Any]
    expected: dict[str, Any]
    verdict: str  # "pass" or "miss"
    notes: tuple[str, ...]
    version: str


def parameters_of(experiment: Experiment[P], settings: Mapping[str, str]) -> P:
    """Defaults with ``k=v`` settings applied; a wrong one is a ConfigError that names the field and what is accepted."""
    kind = experiment.parameters
    known = {field.name: field for field in fields(kind)}
    for key, value in settings.items():
        if key not in known:
            raise ConfigError(f"--set {key}={value}: {experiment.id} has no parameter {key!r}; it has {', '.join(known)}")
    values = {key: _parsed(value) for key, value in settings.items()}
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"--set: {experiment.id}: {error}; parameters are {_described(kind)}") from None


def conduct(experiment: Experiment[P], parameters: P, seed: int, spread: Spread, version: str) -> Report:
    """Measure every cell, judge, report."""
    cells = experiment.cells(parameters, seed)
    results = list(spread(experiment.measure, cells))
    finding = experiment.judge(parameters, results)
    return Report(
        experiment=experiment.id,
        name=experiment.name,
        title=experiment.title,
        source=experiment.source,
        criterion=experiment.criterion,
        seed=seed,
        parameters=msgspec.to_builtins(parameters),
        measured=finding.measured,
        expected=finding.expected,
        verdict="pass" if finding.passed else "miss",
        notes=finding.notes,
        version=version,
    )


def _parsed(text: str) -> object:
    """A JSON value (numbers, lists, booleans), else the text itself."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _described(kind: type[Parameters]) -> str:
    return ", ".join(f"{field.name} (default {field.default!r})" for field in fields(kind))
