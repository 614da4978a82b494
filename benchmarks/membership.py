"""`membership`: how soon a crash is known, and what that costs: Holdfast, kinship and serf side by side in one run.

    first_s, last_s        kill -9 of a member: until the first other one, and the last one, holds it for dead; medians
    first_over_kinship     ours / kinship's
    false_after_pause      pauses (SIGSTOP for 0.7 x the own median of ``first_s``) after which a living member was held for dead
    false_under_load       members held for dead while every core was busy and none was killed
    packets_per_member     IP packets that a member sends per second in the calm, of all kinds
    cpu_ms_per_member      CPU milliseconds per second of a member's process in the calm
    cpu_over_kinship       ours / kinship's
    rss_mib                resident memory of the largest member, in the calm
    form_s                 from the start of the last process until every list is complete
    restart_seen_s         from the start of the next life of a member until all others list it; median
    ring_..., kinship_..., serf_lan_..., serf_local_...   the same of the others

Ours is an agent without seats and HTTP at ``probe = 0.1``, sealed; of the ring ``lease = 0.4, k = 2``, and its ``Decided`` is by a majority
of arbitrators. Every member is a process of its own. Of several sizes the worst counts, and of ratios the worst size. Each system has a
network namespace of its own. Ours and kinship are measured at the same time, the ring and both serfs after them, at each size.
kinship and serf are no dependencies: ``pip install kinship==0.4.0``, ``apt-get install serf``. What is not installed, and what broke
off, is null, and a goal without a number is missed (H241).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from statistics import median
from typing import Any, NamedTuple

from benchmarks.agent_fleet import compile_package
from benchmarks.harness import Report, at_most, show_progress
from benchmarks.leadership import Lateness, busy_cores
from benchmarks.leadership_side import Remote, namespaces
from benchmarks.leadership_stock import versions
from benchmarks.membership_members import GOSSIP, KINSHIP, RING
from benchmarks.ring_fleet import NeverHappened

OURS, THEIRS = "gossip", "kinship"
KINSHIP_VERSION = "0.4.0"
PAUSE_SHARE = 0.7  # of the own median of ``first``
GOALS = {
    "first_s": at_most(0.5),
    "last_s": at_most(0.6),
    "first_over_kinship": at_most(0.85),
    "false_after_pause": at_most(0),
    "false_under_load": at_most(0),
    "packets_per_member": at_most(22),
    "cpu_ms_per_member": at_most(1.0),
    "cpu_over_kinship": at_most(1.0),
    "rss_mib": at_most(30),
}
ROUNDS = 12  # kills of each system at each size
KILLS_ASKED, PAUSES_ASKED = 30, 100  # over all sizes: fewer are no result


class Size(NamedTuple):
    """How much of it."""

    sizes: tuple[int, ...] = (5, 16, 64)
    together: tuple[tuple[str, ...], ...] = ((OURS, THEIRS), ("ring", "serf_lan", "serf_local"))  # what is measured at the same time
    pauses: int = 34
    others_kills: int = 4  # of what no goal is of: serf needs ten seconds and more for one
    others_pauses: int = 10
    calm_seconds: float = 20.0
    busy_seconds: float = 60.0
    others_busy_seconds: float = 20.0
    seed: int = 5


SIZE = Size()
QUICK = Size(sizes=(5,), pauses=3, others_kills=1, others_pauses=2, calm_seconds=3.0, busy_seconds=3.0, others_busy_seconds=3.0)

Found = dict[str, dict[int, dict[str, Any]]]  # system -> members -> what was found


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    compile_package()
    absent = missing(size.together)
    problems = [f"{system}: {why}" for system, why in absent.items()]
    if not namespaces():
        problems.append("packets: no network namespaces here (unshare and ip, as root), so the packets of all systems are counted together")
    found: Found = {}
    late: dict[str, Any] = {}
    for count in size.sizes:
        for systems in size.together:
            here = [system for system in systems if system not in absent]
            for system, each in at_size(count, here, rounds, size, problems, late).items():
                found.setdefault(system, {})[count] = each
    raw = {
        **size._asdict(),
        "rounds": rounds,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "settings": {"gossip": GOSSIP, "ring": RING, "kinship": KINSHIP},
        "lateness_ms": late,
        "found": {system: {str(count): each for count, each in of.items()} for system, of in found.items()},
        "packages": {**versions(["serf"]), **kinship_version()},
    }
    return Report("membership", GOALS, ratios(found), raw, [*problems, *doubts(found)])


def missing(together: Sequence[Sequence[str]]) -> dict[str, str]:
    """Systems that cannot be measured, and what to install."""
    wanted = {system for systems in together for system in systems}
    absent = {}
    if THEIRS in wanted and kinship_version().get("kinship") != KINSHIP_VERSION:
        absent[THEIRS] = f"kinship {KINSHIP_VERSION} is not here: pip install kinship=={KINSHIP_VERSION}"
    if shutil.which("serf") is None:
        absent |= {system: "serf is not here: apt-get install serf" for system in sorted(wanted) if system.startswith("serf")}
    return absent


def kinship_version() -> dict[str, str]:
    try:
        return {"kinship": version_of("kinship")}
    except PackageNotFoundError:
        return {}


def at_size(
    count: int, systems: Sequence[str], rounds: int, size: Size, problems: list[str], late: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """These systems at once. What breaks off says why, and keeps what it has."""
    found: dict[str, dict[str, Any]] = {system: {} for system in systems}
    with started(count, systems) as remotes:

        def all_do(what: str, orders: Callable[[str], Mapping[str, Any]]) -> None:
            show_progress(f"{count} members of {', '.join(remotes)}: {what}")
            with Lateness() as lateness:
                for system, remote in remotes.items():
                    remote.order(do=what, **orders(system))
                for system, answer in answers(remotes, count, problems).items():
                    found[system][what] = answer
            late[f"{count} {'+'.join(systems)} {what}"] = {**lateness.found(), "load_average": os.getloadavg()[0]}

        show_progress(f"{count} members of {', '.join(remotes)} start")
        for system, answer in answers(remotes, count, problems).items():
            found[system]["form"] = answer["form"]
        goal = OURS in systems
        all_do("calm", lambda system: {"seconds": size.calm_seconds})
        all_do("kills", lambda system: {"count": rounds if goal else size.others_kills, "seed": size.seed})
        pauses = size.pauses if goal else size.others_pauses
        all_do("pauses", lambda system: {"count": pauses, "seconds": PAUSE_SHARE * first_of(found[system]), "seed": size.seed})
        all_do("whole", lambda system: {})
        with busy_cores():
            all_do("busy", lambda system: {"seconds": size.busy_seconds if goal else size.others_busy_seconds})
    return found


def answers(remotes: dict[str, Remote], count: int, problems: list[str]) -> dict[str, Any]:
    """Of those that are left. A system that breaks down takes part no more at this size."""
    found = {}
    for system, remote in [*remotes.items()]:
        try:
            found[system] = remote.answer()
        except NeverHappened as error:
            problems.append(f"{count} members: {error}")
            del remotes[system]
    return found


def first_of(found: Mapping[str, Any]) -> float:
    """Seconds until the first member knew, as measured before."""
    return float(median(kill["first"] for kill in found["kills"]["kills"]))


@contextmanager
def started(count: int, systems: Sequence[str]) -> Iterator[dict[str, Remote]]:
    """They start at the same time, and end with the block."""
    with ExitStack() as stack:
        found = {}
        for system in systems:
            found[system] = Remote(system, str(count), module="benchmarks.membership_side")
            stack.callback(found[system].end)
        yield found


# What is said about it.


def ratios(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> dict[str, float | None]:
    """Ours without a word before it."""
    numbers: dict[str, float | None] = {}
    for system in (OURS, "ring", THEIRS, "serf_lan", "serf_local"):
        before = "" if system == OURS else f"{system}_"
        numbers |= {f"{before}{name}": value for name, value in of_system(found.get(system, {})).items()}
    ours, theirs = found.get(OURS, {}), found.get(THEIRS, {})
    sizes = [count for count in ours if count in theirs]
    numbers["first_over_kinship"] = worst([_over(ours[n], theirs[n], lambda each: _median(each, "first")) for n in sizes])
    numbers["cpu_over_kinship"] = worst([_over(ours[n], theirs[n], lambda each: _calm(each, "cpu_ms_per_member")) for n in sizes])
    return numbers


def of_system(found: Mapping[int, Mapping[str, Any]]) -> dict[str, float | None]:
    """The worst of all sizes. A size at which it broke off leaves no number, unless it was told before."""
    each = [*found.values()]
    return {
        "first_s": worst([_median(one, "first") for one in each]),
        "last_s": worst([_median(one, "last") for one in each]),
        "false_after_pause": _sum([None if "pauses" not in one else len(one["pauses"]["dead"]) for one in each]),
        "false_under_load": _sum([None if "busy" not in one else len(one["busy"]["deaths"]) for one in each]),
        "packets_per_member": worst([_calm(one, "packets_per_member") for one in each]),
        "bytes_per_member": worst([_calm(one, "bytes_per_member") for one in each]),
        "cpu_ms_per_member": worst([_calm(one, "cpu_ms_per_member") for one in each]),
        "rss_mib": worst([_calm(one, "rss_mib") for one in each]),
        "form_s": worst([one.get("form") for one in each]),
        "restart_seen_s": worst([_median(one, "restart_seen") for one in each]),
    }


def worst(numbers: Sequence[float | None]) -> float | None:
    """The largest; None if one is missing, or all are."""
    known = [number for number in numbers if number is not None]
    return max(known) if known and len(known) == len(numbers) else None


def _sum(numbers: Sequence[int | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return float(sum(known)) if known and len(known) == len(numbers) else None


def _median(found: Mapping[str, Any], name: str) -> float | None:
    kills = found.get("kills", {}).get("kills", [])
    return median(kill[name] for kill in kills) if kills else None


def _calm(found: Mapping[str, Any], name: str) -> float | None:
    value: float | None = found.get("calm", {}).get(name)
    return value


def _over(ours: Mapping[str, Any], theirs: Mapping[str, Any], of: Callable[[Mapping[str, Any]], float | None]) -> float | None:
    one, other = of(ours), of(theirs)
    return None if one is None or not other else one / other


def doubts(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> list[str]:
    """Reasons for which the numbers of ours mean less than they should."""
    ours = [*found.get(OURS, {}).values()]
    told = []
    for what, asked, count in (
        ("kills", KILLS_ASKED, sum(len(each.get("kills", {}).get("kills", [])) for each in ours)),
        ("pauses", PAUSES_ASKED, sum(each.get("pauses", {}).get("pauses", 0) for each in ours)),
    ):
        if count < asked:
            told.append(f"{what}: {count} of ours over all sizes; {asked} are a result")
    false = [name for each in ours for kill in each.get("kills", {}).get("kills", []) for name in kill["false"]]
    if false:
        told.append(f"kills: living members of ours were held for dead meanwhile: {', '.join(false)}")
    return told
