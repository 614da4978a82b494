"""``holdfast lab list``."""

from __future__ import annotations

from typing import Any

from holdfast.cli.lab.options import Json, print_json
from holdfast.cli.progress import in_words


def listing(*, as_json: Json = False) -> None:
    """All scenarios and experiments."""
    from holdfast.lab import registry

    scenarios = list(registry.scenarios().values())
    experiments = list(registry.experiments().values())
    if as_json:
        print_json({"scenarios": [_scenario(each) for each in scenarios], "experiments": [_experiment(each) for each in experiments]})
        return
    print("scenarios (lab sweep, lab replay, lab plan):")
    _print_table([(each.name, each.title + ("  [planted bug]" if each.planted else "")) for each in scenarios])
    print("experiments (lab run), and how long each takes on one core:")
    _print_table([(each.id, each.name, _takes(each), each.title) for each in experiments])


def _takes(experiment: Any) -> str:
    seconds = _seconds(experiment)
    return "" if seconds is None else in_words(seconds)


def _seconds(experiment: Any) -> float | None:
    from holdfast.lab.durations import expected_seconds
    from holdfast.lab.experiment import parameters_of

    return expected_seconds(experiment, len(experiment.cells(parameters_of(experiment, {}), 0)))


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _scenario(scenario: Any) -> dict[str, Any]:
    return {"name": scenario.name, "title": scenario.title, "planted": scenario.planted}


def _experiment(experiment: Any) -> dict[str, Any]:
    import msgspec

    return {
        "id": experiment.id,
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "criterion": experiment.criterion,
        "seconds": _seconds(experiment),
        "parameters": msgspec.to_builtins(experiment.parameters()),
    }
