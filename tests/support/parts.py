"""What a feature is built of, for tests that need only some of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from holdfast.agent.feature import Parts
from holdfast.agent.grants.ways import Ways
from holdfast.config import Config


def parts_of(config: Config, **more: Any) -> Parts:
    """These parts, and no seats."""
    made: dict[str, Any] = {"seats": None, "seats_missing": "seats: none", "grants": SimpleNamespace(ways=Ways()), "config": config}
    return cast(Parts, SimpleNamespace(**(made | more)))
