"""``holdfast lab list``."""

from __future__ import annotations

from typing import Any

from holdfast.cli.lab.options import Json, print_json


def listing(*, as_json: Json = False) -> None:
    """All scenarios and experiments."""
    from holdfast.lab import registry

    scenarios = list(registry.scenarios().values())
    experiments = list(registry.experiments().values())
    if as_json:
        print_json({"scenarios": [_scenario(each) for each in scenarios], "experiments": [_experiment(each) for each in experiments]})
        return
    print("scenarios (lab sweep, lab replay, lab plan):")
    for scenario in scenarios:
        print(f"  {scenario.name:<28} {scenario.title}{'  [planted bug]' if scenario.planted else ''}")
    print("experiments (lab run):")
    for experiment in experiments:
        print(f"  {experiment.id:<14} {experiment.name:<28} {experiment.title}")


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
        "parameters": msgspec.to_builtins(experiment.parameters()),
    }
