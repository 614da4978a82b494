"""``holdfast demo``: a live group on this machine, a crash, and what was promised about it beside what was measured."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated, Any

from holdfast.agent.observe.http_extra import has_http
from holdfast.cli.demo.fleet import Fleet
from holdfast.cli.demo.share import RATE, Shares
from holdfast.cli.demo.story import NAMES, NeverHappened, Promise, Story
from holdfast.cli.demo.view import View, view_for
from holdfast.cli.exits import ENVIRONMENT, FOUND, OK
from holdfast.cli.options import JSON
from holdfast.cli.parser import Flag
from holdfast.cli.show import print_json, print_table
from holdfast.config import PRESETS, Config
from holdfast.errors import ConfigError, installing, shown
from holdfast.features.leadership.timing import takeover_bound

GROUP = "demo"
MEMBERSHIPS = ("ring", "gossip")
STALLED = 0.5  # in T_l: a machine that stood still for longer cannot be held to bounds that are counted in T_l


def demo(
    *,
    preset: Annotated[
        str, Flag("--preset", help=f"Timing: {', '.join(PRESETS)}; larger ones for busy machines.", metavar="NAME")
    ] = "local",
    membership: Annotated[
        str, Flag("--membership", help="ring (default), or gossip: a shorter demo, of a leader by election.", metavar="KIND")
    ] = "ring",
    stay: Annotated[bool, Flag("--stay", help="Keep the group up until Ctrl-C, to look at the page.")] = False,
    as_json: Annotated[bool, JSON] = False,
) -> int:
    """A live group on this machine. Seven agents form a ring, the leader is killed, another leads; exit 0 only if all went as promised."""
    if preset not in PRESETS:
        raise ConfigError(f"--preset {shown(preset)}: accepted are {', '.join(PRESETS)}")
    if membership not in MEMBERSHIPS:
        raise ConfigError(f"--membership {shown(membership)}: accepted are {', '.join(MEMBERSHIPS)}")
    view = view_for(as_json=as_json)
    if membership == "gossip":
        return _elected(preset, view, stay=stay, as_json=as_json)
    with _interruptible(), TemporaryDirectory(prefix="holdfast-demo-") as folder:
        fleet = Fleet(Path(folder), _settings(preset), NAMES, http=has_http())
        story = Story(fleet, Config(preset=preset), step=view.step, note=view.note, tick=view.tick)
        try:
            broken = _told(story, view, stay=stay)
        finally:
            with _uninterrupted():
                fleet.tell()
                view.close()
                story.candidates.close()
                story.sharing.close()
                fleet.close()
    return _verdict(story, broken, as_json=as_json)


def _elected(preset: str, view: View, *, stay: bool, as_json: bool) -> int:
    """Over gossip: an election, a death of the leader, the next reign."""
    from holdfast.cli.demo import elect

    config = Config(preset=preset, membership="gossip")
    with _interruptible(), TemporaryDirectory(prefix="holdfast-demo-") as folder:
        fleet = Fleet(Path(folder), {**_settings(preset), "membership": "gossip"}, elect.NAMES, http=has_http())
        fleet.on_event = view.event
        story = elect.ElectStory(fleet, config, step=view.step, tick=view.tick)
        broken = ""
        try:
            story.run()
            if stay:
                with suppress(KeyboardInterrupt):
                    view.step(f"The group stays up{f', its page is {fleet.page}' if fleet.page else ''}. Ctrl-C ends it.")
                    story.stay()
            story.leave()
        except NeverHappened as never:
            story.late, broken = max(story.late, story.lateness()), str(never)
        finally:
            with _uninterrupted():
                fleet.tell()
                view.close()
                story.close()
                fleet.close()
    kept = not broken and all(promise.kept for promise in story.promises)
    stalled = not kept and story.late > STALLED * elect.probe(config)
    if as_json:
        print_json({"verdict": "pass" if kept else "stalled" if stalled else "miss", "never": broken, **story.facts()})
    else:
        _print_promises(story.promises, broken)
        print(f"\n{ELECTED if kept else BROKEN}")
    if stalled:
        _say_stalled(story.late, elect.probe(config))
        return ENVIRONMENT
    return OK if kept else FOUND


def _settings(preset: str) -> dict[str, Any]:
    """All of them share them: sealed with a key of their own."""
    from holdfast.wire.keys import generate

    return {"group": GROUP, "preset": preset, "key": generate(), "log_level": "warning"}


def _told(story: Story, view: View, *, stay: bool) -> str:
    """What never happened, in words; "" if everything came to its end."""
    story.fleet.on_event = view.event
    if hasattr(view, "story"):
        view.story = story
    try:
        story.form()
        story.fleet.tell()
        view.step(f"The group is up. Its page: {story.fleet.page}" if story.fleet.page else NO_PAGE)
        story.lead()
        story.share()
        story.kill()
        story.restart()
        if stay:
            where = f", its page is {story.fleet.page}" if story.fleet.page else ""
            with suppress(KeyboardInterrupt):
                view.step(f"The group stays up{where}. Ctrl-C ends it.")
                story.stay()
        story.leave()
    except NeverHappened as never:
        story.late = max(story.late, story.lateness())
        return str(never)
    return ""


def _verdict(story: Story, broken: str, *, as_json: bool) -> int:
    kept = not broken and all(promise.kept for promise in story.promises)
    stalled = not kept and story.late > STALLED * story.config.lease
    if as_json:
        print_json(_facts(story, broken, kept=kept, stalled=stalled))
    else:
        _sum_up(story, broken, kept=kept, stalled=stalled)
    if stalled:
        _say_stalled(story.late, story.config.lease)
        return ENVIRONMENT
    return OK if kept else FOUND


def _say_stalled(late: float, unit: float) -> None:
    text = f"this machine stood still for {late:.2f} s, too long for promises that are counted in {unit:g} s"
    print(f"holdfast: {text}; run it again, or with --preset lan", file=sys.stderr)


def _print_promises(promises: list[Promise], broken: str) -> None:
    print("\nWhat was promised, and what was measured:\n")
    rows = [("kept" if each.kept else "BROKEN", each.what, each.measured, each.promised) for each in promises]
    print_table(("", "WHAT", "MEASURED", "PROMISED"), [*rows, ("BROKEN", broken, "", "")] if broken else rows)


def _sum_up(story: Story, broken: str, *, kept: bool, stalled: bool) -> None:
    _print_promises(story.promises, broken)
    if kept:
        assert story.takeover is not None
        names, took = len(story.fleet.names), story.takeover.seconds
        print(KEPT.format(names=names, lease=story.config.lease, failed=story.bounds.failed, took=took))
    elif not stalled:
        print(f"\n{BROKEN}")


BROKEN = "NOT everything happened as promised."
ELECTED = (
    "Everything happened as promised. One of the members led without a seat and without a majority; it was killed, and the others elected\n"
    "the next one, under a larger term. In a partition each side would have a leader: let what it changes compare terms (docs/election.md)."
)
KEPT = """
Everything happened as promised. In words: {names} programs on this machine formed a group without any server, and one of them led. It was
killed without a word: {took:.2f} s later another one led, with a larger token, and never both at once. Its neighbours noticed within two
leases ({lease:g} s each), a majority of them agreed, and once its time must have run out, within {failed:.2f} s, all of them declared it
gone. Only then another member got its key. Programs shared a rate limit by what they wanted: the one that had lost its agent went on
with 1/{names} of it, and the others shared the rest. It came back as a new life, and all members left in peace.

Next, on this machine: `holdfast agent &` starts an agent. Then `holdfast run --lead NAME -- COMMAND` runs a command in one place
at a time, and `holdfast run --ticket POOL:8 -- COMMAND` in eight. In Python: `import holdfast; help(holdfast.join)`. All commands:
`holdfast --help`."""
NO_PAGE = f"The group is up. It has no live page, because that needs an extra: {installing('http')}"


def _facts(story: Story, broken: str, *, kept: bool, stalled: bool) -> dict[str, Any]:
    death = story.death
    return {
        "verdict": "pass" if kept else "stalled" if stalled else "miss",
        "preset": story.config.preset,
        "lease": story.config.lease,
        "members": len(story.fleet.names),
        "killed": death.victim.name if death else None,
        "bounds": story.bounds._asdict(),
        "measured": {} if death is None else {event.lower(): times for event, times in death.seen.items()},
        "takeover": None if story.takeover is None else story.takeover.seconds,
        "takeover_bound": takeover_bound(story.config, len(story.fleet.names)),
        "shares": [_facts_of(shares) for shares in story.shares],
        "late": story.late,
        "promises": [promise._asdict() for promise in story.promises],
        "never": broken,
        "page": story.fleet.page,
    }


def _facts_of(shares: Shares) -> dict[str, Any]:
    return {**shares._asdict(), "rate": RATE, "shares": [share._asdict() for share in shares.shares]}


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does: nothing may be left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """While it cleans up, another Ctrl-C must not stop it half-way."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
