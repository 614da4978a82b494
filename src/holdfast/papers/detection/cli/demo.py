"""``holdfast lab demo``: something worth seeing in a minute."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.exits import FOUND
from holdfast.cli.lab.options import OUT, Json, OutFolder, Seed, print_json
from holdfast.cli.progress import progress
from holdfast.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.papers.detection.lab.hunt import Found
    from holdfast.papers.detection.lab.story import Story

SPEED = 3.0  # virtual seconds per second: the whole story takes twelve
SPEED_MAX = 1000.0  # faster than a person sees
STEPS = 300  # about so many runs find and shrink the bug
TRACE_LINES_SHOWN = 8

INTRO = """\
Seven members (a to g) choose a leader among themselves: a leader that is silent for {silence:g} s loses the lead to the next in line.
Time runs from left to right, one line per member; the letter, and its colour, say whom that member follows.
'?': none yet, '~': stopped, '.': dead. All of it happens in virtual time, from seed {seed}.
"""


def demo(
    *,
    seed: Seed = 1,
    speed: Annotated[float, typer.Option("--speed", help="Virtual seconds per second; 0 shows the end at once.")] = SPEED,
    out: OutFolder = OUT,
    as_json: Json = False,
) -> None:
    """A leader election loses its leader, its network and its patience; then a planted bug is hunted down."""
    from holdfast.lab.extras import need
    from holdfast.papers.detection.lab.hunt import hunt
    from holdfast.papers.detection.lab.story import tell

    if not 0 <= speed <= SPEED_MAX:
        raise ConfigError(f"--speed {speed:g}: accepted are 0 to {SPEED_MAX:g} virtual seconds per second")
    if not as_json:
        need("rich", "the demo's timeline")
    story = tell(seed)
    if not as_json:
        _show_story(story, speed if sys.stdout.isatty() else 0.0)
    with progress("hunting a planted bug", STEPS) as advance:
        found = hunt(seed, out, lambda: advance(1))
    ok = all(kept.ok for kept in story.kept) and found is not None and found.ok
    if as_json:
        print_json(_facts(story, found, ok=ok))
    else:
        _show_hunt(found)
        _sum_up(story, found, ok=ok)
    raise typer.Exit(0 if ok else FOUND)


def _show_story(story: Story, speed: float) -> None:
    from rich.console import Console

    from holdfast.papers.detection.cli.timeline import show
    from holdfast.papers.detection.lab.story import ALPHA

    console = Console(highlight=False)
    print(INTRO.format(silence=2 * ALPHA, seed=story.seed))
    show(console, story, speed)
    print("\nWhat was promised (the bound follows from the heartbeat and the slowest message), and what was measured:\n")
    for kept in story.kept:
        measured = f"{kept.who:>7} follow {kept.leader} after {kept.took:4.2f} s" if kept.took is not None else "no agreement"
        print(f"  {'kept  ' if kept.ok else 'BROKEN'}  {kept.what:<44} {measured}  (promised: {kept.bound:.2f} s)")


def _show_hunt(found: Found | None) -> None:
    from holdfast.lab.trace import show

    print("\nNow a bug is planted: a member counts an OK twice if the network doubled it, and trusts a leader too early.")
    if found is None:
        print("The lab did not find it.")
        return
    print(f"{found.seeds} random runs, each with dozens of faults: {len(found.failing)} violate an invariant. Seed {found.seed} says:\n")
    print(f"  {found.violation}\n")
    print(f"Its {found.faults} faults, shrunk to those without which it does not happen: {len(found.plan.faults)}\n")
    for fault in found.plan.faults:
        print(f"  {show(fault)}")
    print("\nThe last lines before the violation:\n")
    for line in found.trace.splitlines()[-TRACE_LINES_SHOWN:]:
        print(f"  {line}")
    print(f"\nSee it again, byte for byte:\n\n  {found.replay}\n")


def _sum_up(story: Story, found: Found | None, *, ok: bool) -> None:
    kept = sum(each.ok for each in story.kept)
    print(f"{kept} of {len(story.kept)} promises kept over {story.seconds:g} virtual seconds and {story.messages} messages; ", end="")
    print(f"planted bug {f'found and shrunk to {len(found.plan.faults)}' if found else 'NOT found'}.")
    print("Everything happened as promised." if ok else "NOT everything happened as promised.", end=" ")
    print(f"The same again: holdfast lab demo --seed {story.seed}. More to see: holdfast lab list")


def _facts(story: Story, found: Found | None, *, ok: bool) -> dict[str, Any]:
    return {
        "seed": story.seed,
        "verdict": "pass" if ok else "miss",
        "promises": [
            {"what": each.what, "leader": each.leader, "took": each.took, "bound": each.bound, "kept": each.ok} for each in story.kept
        ],
        "bug": None
        if found is None
        else {
            "scenario": found.scenario,
            "seed": found.seed,
            "violation": found.violation,
            "faults": found.faults,
            "shrunk": len(found.plan.faults),
            "replay": found.replay,
        },
    }
