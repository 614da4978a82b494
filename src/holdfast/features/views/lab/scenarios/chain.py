"""Views where only neighbouring servers are linked: paths of up to three hops, and longer chains.  Spec: views 5.3, 7, D7, D8."""

from __future__ import annotations

from typing import ClassVar

from holdfast.features.views.lab.scenarios.views import ViewScenario


class ChainScenario(ViewScenario):
    """Four to six servers in a row."""

    name = "views/chain"
    title = "Views over a chain of servers, under mixed faults"
    chains: ClassVar[float] = 1.0


SCENARIO = ChainScenario()
