"""Elections: one leader per name, chosen among the members of a group whose lists differ; with or without a majority.

Spec: election; paper 004 (Wang and Gupta). One machine for all names of an agent. It offers ``host.Lists``' users what
``features.leadership`` offers with seats: campaign, withdraw, resign, renew_allowed, in the words of ``kit.hold``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from holdfast.features.election.protocol.config import ElectionConfig
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.messages import TYPES
from holdfast.features.election.protocol.multicast import Multicast
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Account, Reign, State
from holdfast.host import Host, Lists, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import Holder
from holdfast.kit.seats import Seats


class Elections:
    """One per agent; a Machine."""

    fingerprint = b""
    handles: Sequence[type[Message]] = TYPES

    def __init__(
        self,
        host: Host,
        lists: Lists,
        exchange: Exchange,
        seats: Seats | None,
        config: ElectionConfig,
        *,
        rules: Rules | None = None,
        broadcast: Broadcast | None = None,
        multicast: Multicast | None = None,
    ) -> None:
        """Makes the table ``elected`` in ``exchange``, publishes rows ``e:...`` in ``lists``, keeps promises in the parts ``election`` and,
        as a seat, ``election-terms`` of ``host.storage``. ``broadcast`` is used above 1024 members. The laboratory alone hands in
        ``rules`` and ``multicast``."""
        raise NotImplementedError

    # What the agent calls: in the words of kit.hold.

    def campaign(self, name: str, length: float, holder: Holder, *, manner: Manner | None = None) -> None:
        """A client of this agent wants to lead ``name``: this agent is a candidate from now on. ``length``: how many seconds ahead the
        deadlines are that the holder hears, extended every half of it (5.10); 0.0: ``config.hold``. ``manner``: how it is elected; None:
        as configured. Raises ConfigError for a bad name, length or manner, for a manner that differs from that of other candidates,
        and for voters="seats" without seats; Unavailable for a 17th name.

        ``holder`` hears ``on_granted(term, deadline)`` when it leads, ``on_extended``, ``on_at_risk`` when the agent doubts itself (a
        pause), and ``on_lost`` when the term is over. After a loss this agent stands on and may be elected again under a higher term,
        with another ``on_granted``, unless ``renew_allowed(name, False)`` or ``resign`` was called."""
        raise NotImplementedError

    def withdraw(self, name: str) -> None:
        """No candidate any more; a leader calls ``resign``, which this is."""
        raise NotImplementedError

    def resign(self, name: str) -> None:
        """Gives it up at once and stops being a candidate; ``on_lost`` is not called. Not leading: the same as ``withdraw``. Unknown names
        are ignored."""
        raise NotImplementedError

    def renew_allowed(self, name: str, allowed: bool) -> None:
        """False: deadlines are not extended any more, and while it does not lead it is no candidate."""
        raise NotImplementedError

    def elect(self, name: str) -> None:
        """An election now, here, with the incumbent as one candidate among others (not sticky). Raises ConfigError if this agent knows
        no candidate of that name, Unavailable while it takes part in nothing."""
        raise NotImplementedError

    # What is known: hints, never waiting.

    def leader(self, name: str) -> Reign | None:
        """Who leads, as known here; also tentative. None: no leader, or the one that was has left the list."""
        raise NotImplementedError

    def reigns(self) -> Mapping[str, Reign]:
        """All of them, by name."""
        raise NotImplementedError

    def is_leader(self, name: str) -> bool:
        """This agent leads it: ACTIVE, told to a client that asked, and in time (F9)."""
        raise NotImplementedError

    def token(self, name: str) -> int:
        """Of this agent's reign. Raises ``errors.HoldLost`` if it does not lead."""
        raise NotImplementedError

    def deadline(self, name: str) -> float:
        """As told to the client, on ``host.now``; minus infinity if it does not lead."""
        raise NotImplementedError

    def candidates(self, name: str) -> tuple[NodeId, ...]:
        """The members that stand for it and are listed here, best rank first."""
        raise NotImplementedError

    def manner(self, name: str) -> Manner | None:
        """How that name is elected, as known here; None: nothing is known of it."""
        raise NotImplementedError

    def highest(self, name: str) -> int:
        """The highest term of that name that was heard of here; 0: none."""
        raise NotImplementedError

    def exceed(self, name: str, number: int) -> None:
        """Terms of this name that this agent nominates from now on are above that (F16: tokens of another way to lead it)."""
        raise NotImplementedError

    def names(self) -> tuple[str, ...]:
        """All that is known, sorted."""
        raise NotImplementedError

    def state(self, name: str) -> State | None:
        """For checkers and pages; None: the name is not known."""
        raise NotImplementedError

    def last(self, name: str) -> Account | None:
        """How the last election of that name that began at this member went, or goes."""
        raise NotImplementedError

    def metrics(self) -> Mapping[str, float]:
        """Numbers by name. Counters never fall in a life; the rest is as of now."""
        raise NotImplementedError

    @property
    def counts(self) -> Counter[str]:
        """What was refused and dropped, and what happened how often."""
        raise NotImplementedError

    # The machine.

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def on_away(self, seconds: float) -> None:
        raise NotImplementedError

    def on_message(self, source: NodeId, message: Message) -> None:
        raise NotImplementedError
