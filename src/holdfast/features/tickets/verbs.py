"""The verbs of tickets: ``holdfast ticket`` and ``holdfast run --ticket``."""

from holdfast.cli.parser import Flag
from holdfast.cli.run.hold_flags import RunKind, Wanted
from holdfast.cli.verbs import Entry, Offer, Table
from holdfast.errors import ConfigError, shown

TICKET = Table(
    "Tickets of a pool: numbered slots, each with at most one holder.",
    {
        "ls": Entry("features.tickets.cli:ls", "Who holds which ticket, as this agent heard it: a hint."),
        "acquire": Entry("features.tickets.cli:acquire", "Hold a ticket around a command, or until stdin is closed."),
        "release": Entry("features.tickets.cli:release", "Ask the client of this agent that holds a ticket to stop."),
        "abandon": Entry("features.tickets.cli:abandon", "Give up a ticket whose guardians are lost for good."),
    },
    default="ls",
)


def parsed_ticket(text: str, flag: str = "") -> tuple[str, int]:
    pool, _, number = text.rpartition(":")
    if not pool or not (number.isascii() and number.isdigit()) or int(number) < 1:
        raise ConfigError(f"{flag}{shown(text)}: accepted is POOL:N, a pool and the number of its tickets, such as gpu:8")
    return pool, int(number)


def _wanted(text: str, grace: float | None) -> Wanted:
    pool, of = parsed_ticket(text, "--ticket ")
    return Wanted(f"ticket:{pool}", {"of": of}, grace)


OFFER = Offer(
    {"ticket": TICKET},
    kinds=(
        RunKind(
            "ticket",
            Flag("--ticket", help="Run it while it holds one of the N tickets of this pool: HOLDFAST_TICKET says which.", metavar="POOL:N"),
            _wanted,
            variables={"HOLDFAST_TICKET": "number"},
        ),
    ),
)
