"""Names in an agent: it joins when its name is its own.  Spec: foundation F5, F6."""

from __future__ import annotations

from holdfast.agent.feature import Feature, Parts, Running
from holdfast.features.names.protocol.names import Names


class NameAgent(Running):
    """One ``Names``: the gate of the agent."""

    def __init__(self, parts: Parts) -> None:
        life = parts.life
        self.names = self.gate = Names(
            parts.host, parts.membership, None, clear=life.on_name_clear, conflict=life.on_name_conflict, behind=life.on_behind,
            kind=parts.config.membership,
        )  # fmt: skip
        self.machines = (self.names,)


class NameFeature(Feature):
    """Every agent has it."""

    name = "names"

    def build(self, parts: Parts) -> NameAgent:
        return NameAgent(parts)
