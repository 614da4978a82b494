"""``holdfast lab plan``."""

from __future__ import annotations

from holdfast.cli.lab.options import ScenarioName, Seed


def plan(name: ScenarioName, *, seed: Seed = 0) -> None:
    """The faults that a seed draws, as JSON: save them, change them, give them to `lab replay --plan`."""
    from holdfast.lab import registry
    from holdfast.lab.scenario import set_up

    print(set_up(registry.find_scenario(name), seed).plan.to_json().decode(), end="")
