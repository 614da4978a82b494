"""The watched's side that both elections share: what a heartbeat says, when it left, who answers.

Spec: fast-detection 2, 5 (tick, heartbeat, MONITOR-OK), D3, D10; paper 002, Figure 1. The owner has the timers and does the sending.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.host import Host, NodeId
from holdfast.protocols.detection.config import FfdConfig
from holdfast.protocols.detection.messages import Lead, MonitorOk, WatchedOk


class Watched:
    """One per node; it goes through all terms. Stamps are never used twice in a life."""

    stamp: int  # of the latest heartbeat; 0: none
    seq: int  # its index; -1: none

    def __init__(self, host: Host, config: FfdConfig) -> None:
        raise NotImplementedError

    @property
    def next_at(self) -> float:
        """When the next tick is due: the next sigma_i, on this host's clock (arm ``host.at(watched.next_at, tick)``)."""
        raise NotImplementedError

    @property
    def common(self) -> float:
        """c: measured from the MONITOR-OK bitmaps (D10), or as the operator set it. Remembered across terms."""
        raise NotImplementedError

    @property
    def among(self) -> tuple[str, ...]:
        """K: the monitors with a MONITOR-OK younger than m_Omega t_itv + t_lat; sorted."""
        raise NotImplementedError

    def begin(self, monitors: Sequence[str]) -> None:
        """A term begins: all monitors count as just heard, and the send times of former terms are forgotten."""
        raise NotImplementedError

    def follow(self, monitors: Sequence[str]) -> None:
        """The monitors changed within a term: newcomers count as just heard, those who are not listed are forgotten."""
        raise NotImplementedError

    def heartbeat(self, leads: Sequence[Lead]) -> tuple[WatchedOk, ...]:
        """A new stamp, its send time recorded *before* anything is sent; one message per page, each below a datagram with its answer.
        Called at a tick the index is that of the tick; between ticks (first of a term, repeat) it is the running one."""
        raise NotImplementedError

    def sent_at(self, stamp: int) -> float | None:
        """When that heartbeat left; None: not among the last 64 of this term."""
        raise NotImplementedError

    def on_monitor_ok(self, source: NodeId, message: MonitorOk) -> float | None:
        """The monitor lives, and its ``missed`` bits are counted. Returns the send time of the stamp it echoes, None if there is none."""
        raise NotImplementedError
