"""An experiment: parameters, the paper's values, a criterion as code, a picture, a verdict that is computed.

Experiments are declared in the folder ``experiments`` of a lab, one small module each with one ``EXPERIMENT``. The work is a list of
independent cells; ``measure`` is a pure function of a cell, so that cells can run in other processes or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct, inspect
from msgspec.structs import FieldInfo, fields

from holdfast.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SEEDS_MAX = 1_000_000  # repetitions per cell; detection/E1 takes hours for fewer
LIST_MAX = 32  # values of one parameter: more than a figure can show
Count = Annotated[int, Meta(ge=1, le=100_000_000)]  # of draws, heartbeats, casts: days of work at the upper end


class Parameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every experiment's parameters; the defaults are the spec's full size.

    Every field says what it accepts (``Annotated[..., Meta(ge=, le=)]``): errors are told from that. Numbers are finite, and the values of
    a list differ, without saying so.
    """

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1  # repetitions per cell


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

    id: ClassVar[str]  # folder/number as in the spec, for example kit/F8
    name: ClassVar[str]  # folder/readable-name
    title: ClassVar[str]
    source: ClassVar[str]  # paper and section, or spec and section
    criterion: ClassVar[str]  # the acceptance rule in words
    parameters: type[P]
    # Seconds of one core per cell, at the parameters that it has by itself: the mean of three cells drawn at random, on one machine, so a
    # guide and no promise. None: not measured.
    seconds_per_cell: ClassVar[float | None] = None
    repetitions: ClassVar[str] = "seeds"  # the parameter that counts them, "" if nothing is drawn; if it is another, seeds are refused
    recorded: ClassVar[bool] = False  # it judges a file that real processes wrote, so `lab reproduce` leaves it out
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


def in_batches(cell: Cell, runs: int, size: int, seed: int) -> list[Cell]:
    """So many runs of one kind as cells of at most ``size``: beside what they share each has its ``runs``, and the ``seed`` of the first of
    them; each further run has the next seed."""
    return [{**cell, "runs": min(size, runs - first), "seed": seed + first} for first in range(0, runs, size)]


def parameters_of(experiment: Experiment[P], settings: Mapping[str, str]) -> P:
    """Defaults with ``k=v`` settings applied; a wrong one is a ConfigError that names the field and what is accepted."""
    kind = experiment.parameters
    known = {field.name: field for field in fields(kind)}
    for key, value in settings.items():
        if key not in known:
            offered = ", ".join(field.name for field in _offered(experiment))
            raise ConfigError(f"--set {key}={value}: {experiment.id} has no parameter {key!r}; it has {offered}")
    if "seeds" in settings and experiment.repetitions != "seeds":
        raise ConfigError(f"--seeds {settings['seeds']}: {experiment.id} {_instead_of_seeds(experiment)}")
    values = {key: _value(experiment, known[key], value) for key, value in settings.items()}
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        # Each value is fine, so it is how they go together: a ``__post_init__`` said which.
        raise ConfigError(f"--set: {experiment.id}: {error}") from None


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


def _instead_of_seeds(experiment: Experiment[Any]) -> str:
    if not experiment.repetitions:
        return "draws nothing, so there is nothing to repeat; leave it out"
    return f"does not count its repetitions in seeds; set --set {experiment.repetitions}=N instead"


def _value(experiment: Experiment[Any], field: FieldInfo, text: str) -> Any:
    try:
        value = msgspec.convert(_parsed(text), field.type, strict=False)
    except msgspec.ValidationError:
        value = None
    if value is None or not _is_sound(value):
        accepted = f"{field.name} accepts {describe(inspect.type_info(field.type))}"
        raise ConfigError(f"--set {field.name}={text}: {experiment.id}: {accepted}; parameters are {_described(experiment)}")
    return value


def _is_sound(value: object) -> bool:
    """What no ``Meta`` can ask for: finite numbers, and lists without doubles, which would be measured twice and count as more."""
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, tuple | list):
        return all(map(_is_sound, value)) and len(set(value)) == len(value)
    return True


def _parsed(text: str) -> object:
    """A JSON value (numbers, lists, booleans), else the text itself."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def describe(kind: inspect.Type) -> str:
    """What a field accepts, in words."""
    match kind:
        case inspect.IntType():
            return f"a whole number{_range(kind)}"
        case inspect.FloatType():
            return f"a finite number{_range(kind)}"
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, kind.values))}"
        case inspect.VarTupleType() | inspect.ListType():
            least = kind.min_length or 0
            size = f"{least} to {kind.max_length}" if kind.max_length is not None else f"at least {least}"
            return f"a list [A,B,...] of {size} different values, each {describe(kind.item_type)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "text"
    return type(kind).__name__.removesuffix("Type").lower()


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    words = {"from": kind.ge, "above": kind.gt, "to": kind.le, "below": kind.lt}
    return "".join(f" {word} {bound}" for word, bound in words.items() if bound is not None)


def _described(experiment: Experiment[Any]) -> str:
    return ", ".join(f"{field.name} (default {field.default!r})" for field in _offered(experiment))


def _offered(experiment: Experiment[Any]) -> list[FieldInfo]:
    return [field for field in fields(experiment.parameters) if field.name != "seeds" or experiment.repetitions == "seeds"]
