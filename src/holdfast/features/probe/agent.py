"""Pings in an agent: what ``doctor`` asks peers with."""

from __future__ import annotations

from holdfast.agent.feature import Feature, Parts, Running
from holdfast.agent.life.version import VERSION
from holdfast.features.probe.protocol.probe import Probe
from holdfast.kit.slots import written


class ProbeAgent(Running):
    """One ``Probe``: the pinger of the agent."""

    def __init__(self, parts: Parts) -> None:
        self.probe = self.pinger = Probe(parts.host, VERSION, written(parts.slots.all))
        self.machines = (self.probe,)


class ProbeFeature(Feature):
    """Every agent has it."""

    name = "probe"

    def build(self, parts: Parts) -> ProbeAgent:
        return ProbeAgent(parts)
