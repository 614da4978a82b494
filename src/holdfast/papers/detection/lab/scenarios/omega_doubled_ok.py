"""Omega with a planted bug: a doubled OK counts twice. It shows how the lab finds, replays and shrinks a failure.

The true Omega numbers its OKs and counts each number once (detection D25: one OK may be a dead candidate's last word, so two are needed).
"""

from __future__ import annotations

from random import Random

from holdfast.host import Address, Host, Message, NodeId
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.scenario import Setup
from holdfast.papers.detection.lab.scenarios.omega import LINK, SECONDS, WATCHED_ALPHAS, OmegaScenario, agree_timeout
from holdfast.papers.detection.protocol.messages import Ok
from holdfast.papers.detection.protocol.omega import Omega

NAMES = tuple(f"n{i}" for i in range(7))
ALPHA = 0.5
MENU = Menu(crashes=1.5, crash_forever=0.1, pauses=2.0, cuts=5.0, partitions=4.0, weather=4.0, duplicate=0.3)  # about 37 faults


class DoubledOmega(Omega):
    """Takes every OK that arrives for a new one."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Ok):
            message = Ok(message.round, self._ok_seq + 1)
        super().on_message(source, message)


class DoubledOkScenario(OmegaScenario):
    """The checkers of ``detection/omega``, seven members, more faults."""

    name = "detection/omega-doubled-ok"
    title = "Omega with a planted bug: a doubled OK counts twice"
    planted = True

    def setup(self, random: Random) -> Setup:
        """Many faults, most of which have nothing to do with it: that is what the shrinker is for."""
        plan = draw_plan(random, NAMES, SECONDS, MENU)
        return Setup(NAMES, SECONDS, agree_timeout(len(NAMES), ALPHA) + WATCHED_ALPHAS * ALPHA, plan, LINK, {"alpha": ALPHA})

    def make(self, host: Host, members: dict[str, Address], alpha: float) -> Omega:
        return DoubledOmega(host, members, alpha=alpha)


SCENARIO = DoubledOkScenario()
