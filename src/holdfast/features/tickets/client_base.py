"""What both spellings of a ticket client share: arguments, views of a pool, and errors.  tickets 10, G6; docs/client.md (tickets)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypedDict

from holdfast.client import checks
from holdfast.client.buffers import EventBuffer, Kept
from holdfast.client.checks import Seconds
from holdfast.client.holding import Held
from holdfast.client.wire import ITEMS
from holdfast.errors import ConfigError, HoldfastError, TicketLost, shown
from holdfast.events import Event, EventsLost
from holdfast.features.tickets import calls
from holdfast.host import NodeId
from holdfast.local.news import event_of
from holdfast.net.clock import now

KIND = "ticket"  # what the agent calls this kind of grant
PUBLISH_BYTES_MAX = 15 * 1024  # of one event of a ticket: a rumour, less its stamp
POOL_BYTES_MAX = 56
TICKETS_MAX = 4096  # of one pool
METADATA_BYTES_MAX = 512  # of one ticket, names and values together


class Holder(NamedTuple):
    """Who holds one ticket."""

    id: NodeId  # the agent whose client it is
    token: int  # the next holder of the same number has a larger one
    metadata: Mapping[str, str]  # as it was given to ``ticket``

    @property
    def name(self) -> str:
        """Of the member."""
        return self.id.name


class PoolView(NamedTuple):
    """The tickets of a pool at one moment."""

    pool: str
    of: int  # how many there are; 0: none was asked for yet, as far as is known
    holders: Mapping[int, Holder]  # by number
    is_hint: bool  # False: a majority of the seats said so
    as_of: float  # when this process received it, on the clock of ``holdfast.client.clock.now()``: it is at least that old

    @property
    def free(self) -> tuple[int, ...]:
        """The numbers that are free. One whose holder has died counts as held until it is reclaimed."""
        return tuple(number for number in range(self.of) if number not in self.holders)


def hinted(pool: str, views: tuple[calls.PoolView, ...]) -> PoolView:
    return viewed(views[0] if views else calls.PoolView(pool, 0, (), True))


def viewed(view: calls.PoolView) -> PoolView:
    holders = {each.number: Holder(each.agent, each.token, each.metadata) for each in view.holders}
    return PoolView(view.pool, view.of, holders, view.hint, now())


class PoolBuffer(EventBuffer, Kept[Event]):
    """Events of one pool of tickets."""

    def push(self, item: Any) -> None:
        event = event_of(ITEMS[calls.WatchTickets](item))
        if event is not None:
            self.put(event)

    def missed(self) -> None:
        self.put(EventsLost(0))


class TicketHeld(Held):
    """One ticket, and which errors it has."""

    lost_error = TicketLost

    @property
    def _title(self) -> str:
        return f"Ticket {self.number} of {shown(self.name)}" if self._granted else f"Ticket of {shown(self.name)}"

    def _error(self, error: type[HoldfastError], text: str, why: str) -> HoldfastError:
        if error is TicketLost:
            return TicketLost(text, ticket=self.number if self._granted else None, token=self.token, reason=why)
        return super()._error(error, text, why)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """What the agent refuses is about this ticket."""
        try:
            yield
        except TicketLost as error:
            error.ticket, error.token, error.reason = self.number, self.token, str(error)
            raise


def checked_pool(value: str) -> str:
    return checks.name(value, "pool", POOL_BYTES_MAX)


class Options(TypedDict):
    """What ``group.ticket`` may ask for beside the pool and a timeout. The agent checks it again (``kind.py``)."""

    of: int
    wait: bool
    metadata: Mapping[str, str] | None
    user_ttl: Seconds | None


def checked_options(given: Options) -> dict[str, Any]:
    """As they travel."""
    of, metadata, user_ttl = given["of"], given["metadata"], given["user_ttl"]
    if isinstance(of, bool) or not isinstance(of, int) or not 1 <= of <= TICKETS_MAX:
        raise ConfigError(f"of: {shown(of)}; accepted is the number of tickets in the pool, from 1 to {TICKETS_MAX}")
    table = checks.table(metadata, "metadata", "texts")
    parts = [checks.utf8(part) if isinstance(part, str) else None for pair in table.items() for part in pair]
    if None in parts:
        raise ConfigError(f"metadata: {shown(metadata)}; accepted is a table of texts")
    if (size := sum(len(part) for part in parts if part is not None)) > METADATA_BYTES_MAX:
        raise ConfigError(f"metadata: {size} bytes; accepted are up to {METADATA_BYTES_MAX}, names and values together")
    limited = {} if user_ttl is None else {"user_ttl": checks.seconds(user_ttl, "user_ttl")}
    return {"of": of, "wait": checks.flag(given["wait"], "wait"), "metadata": table, **limited}
