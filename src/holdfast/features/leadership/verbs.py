"""The verbs of leadership: ``holdfast leader`` and ``holdfast run --lead``, of both ways to lead."""

from holdfast.cli.parser import Flag
from holdfast.cli.run.hold_flags import RunKind, Wanted
from holdfast.cli.verbs import Entry, Offer
from holdfast.local.leaders import SEATS


def _wanted(name: str, grace: float | None) -> Wanted:
    """A term is asked for as much longer as the command needs to stop (detection D26): a renewal in time never costs it its grace."""
    return Wanted(f"lead:{name}", {"grace": grace or 0.0}, grace or 0.0, lengthened=True)


OFFER = Offer(
    {"leader": Entry("features.leadership.cli:leader", "Who leads what, as this agent knows it: a hint.")},
    kinds=(
        RunKind(
            "lead",
            Flag("--lead", help="Run it while this agent leads this name, for this command.", metavar="NAME"),
            _wanted,
            also_held="leadership",
            grace="0",
            variables={"HOLDFAST_TERM": "token"},
            by=Flag("--by", help="How --lead is decided: seats (default), or election, which needs no majority.", metavar="WAY"),
            way=SEATS,
        ),
    ),
)
