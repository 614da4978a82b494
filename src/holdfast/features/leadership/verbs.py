"""The verbs of leadership: ``holdfast leader`` and ``holdfast run --lead``, of both ways to lead."""

from collections.abc import Mapping

from holdfast.cli.parser import Flag
from holdfast.cli.run.hold_flags import RunKind, Wanted
from holdfast.cli.verbs import Entry, Offer
from holdfast.errors import ConfigError, shown
from holdfast.local.leaders import ELECTION, KINDS, SEATS, WAYS


def _wanted(name: str, grace: float | None, more: Mapping[str, str]) -> Wanted:
    """A term is asked for as much longer as the command needs to stop (detection D26): a renewal in time never costs it its grace."""
    by = more.get("by", SEATS)
    if by not in WAYS:
        raise ConfigError(f"--by: {shown(by)}; accepted are {', '.join(WAYS)}")
    manner = {field: value for field, value in more.items() if field != "by"}
    if manner and by == SEATS:
        raise ConfigError(f"--{next(iter(manner))}: says how an election goes; accepted together with --by election")
    kind = KINDS[WAYS.index(by)]
    options: dict[str, object] = {"grace": grace or 0.0, **manner}
    if "rank" in manner:
        options["rank"] = manner["rank"].split(",")
    return Wanted(f"{kind}:{name}", options, grace or 0.0, lengthened=True)


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
            also=(KINDS[WAYS.index(ELECTION)],),
            modifiers=(
                Flag("--by", help="How --lead is decided: seats (default), or election, which needs no majority.", metavar="WAY"),
                Flag("--variant", help="Of the election: hybrid (default), preferred, optimistic or base.", metavar="V"),
                Flag("--voters", help="Who must agree to a term of the election: none (default), seats or members.", metavar="M"),
                Flag("--rank", help="Who is elected first: hash (default), or tag:NAME and -tag:NAME with commas between.", metavar="R"),
                Flag("--health", help="Who is left out: suspicions (default), own, false_positives or tag:NAME.", metavar="H"),
            ),
        ),
    ),
)
