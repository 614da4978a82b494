"""The verb of elections, and the way of ``holdfast run --lead`` by election. ``holdfast leader`` is that of leadership, of both ways."""

from collections.abc import Mapping

from holdfast.cli.parser import Flag
from holdfast.cli.run.hold_flags import RunWay, Wanted
from holdfast.cli.verbs import Entry, Offer
from holdfast.local.leaders import ELECTION, KINDS, WAYS

KIND = KINDS[WAYS.index(ELECTION)]


def _wanted(name: str, grace: float | None, manner: Mapping[str, str]) -> Wanted:
    """A deadline is asked for as much longer as the command needs to stop, as of a term of the seats. Raises ``ConfigError`` naming the
    flag, before an agent is asked."""
    from holdfast.features.election.asked import check_flags  # A start of `holdfast` does not load the words of elections.

    options: dict[str, object] = {"grace": grace or 0.0, **manner}
    if "rank" in manner:
        options["rank"] = manner["rank"].split(",")
    check_flags(options)
    return Wanted(f"{KIND}:{name}", options, grace or 0.0, lengthened=True)


OFFER = Offer(
    {"elect": Entry("features.election.cli:elect", "Ask for an election of a name now: the best-ranked may take over.")},
    ways=(
        RunWay(
            KIND,
            "--lead",
            ELECTION,
            _wanted,
            modifiers=(
                Flag("--variant", help="Of the election: hybrid (default), preferred, optimistic or base.", metavar="V"),
                Flag("--voters", help="Who must agree to a term of the election: none (default), seats or members.", metavar="M"),
                Flag("--rank", help="Who is elected first: hash (default), or tag:NAME and -tag:NAME with commas between.", metavar="R"),
                Flag("--health", help="Who is left out: suspicions (default), own, false_positives or tag:NAME.", metavar="H"),
            ),
            says="says how an election goes",
        ),
    ),
)
