"""What ``holdfast doctor`` says about an agent, asked until it has seen what was planted."""

from __future__ import annotations

from typing import Any

from tests.cli.command import Run
from tests.support.agents import AgentProcess, until

TIMEOUT = "1.5"  # seconds of one examination; a fault that needs longer to show is looked for again


def diagnosed(holdfast: Run, agent: AgentProcess, code: str, *, about: str = "") -> dict[str, Any]:
    """The finding, as soon as doctor has it: a fault takes a moment to show."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        ended = holdfast("doctor", "--agent", agent.socket, "--timeout", TIMEOUT, "--json")
        found[:] = [each for each in ended.json["findings"] if each["code"] == code and about in each["about"]]
        assert ended.code == (1 if ended.json["errors"] else 0)
        return bool(found)

    until(there, f"doctor says {code} about {about!r}")
    assert found[0]["text"]
    assert found[0]["advice"]
    return found[0]
