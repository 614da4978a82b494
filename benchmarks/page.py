"""`page`: what the page of a large group costs the browser that shows it.

One agent whose membership is gossip, with its HTTP server and its stream, and a headless Chromium that has its page open.
The agent believes in 1000 other members: their rumours are words that this program says (``tests/page/stub_gossip.py``),
everything from the table to the pixels is what users run. Ten times a second a member changes: it is suspected, cleared,
held to be dead, or back. Then with nothing happening, and the first again with 5000 members.

    main_thread_share   of one core that the page's main thread was busy, with 1000 members and ten changes a second
    main_thread_5000    the same with 5000 members
    main_thread_idle    with 1000 members and no change: ages and health go on
    longest_frame_ms    longest that the main thread was busy at once while members changed, with 1000 members

The main thread is measured by Chromium itself, as time of its thread (`Performance.getMetrics`, `TaskDuration`); the
longest by the clock on the wall (`longtask`), so a busy machine makes it longer. Without a GPU pixels are painted in
software. Beside the shares is the time of a fixed piece of JavaScript (`work_ms`), by which machines can be compared.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.harness import Report, at_most, show_progress
from holdfast.features.gossip.protocol.messages import Status
from tests.page.chromium import MISSING, PROGRAM, Browser, Page, browser
from tests.page.stub_gossip import Crowd, crowd

GOALS = {"main_thread_share": at_most(0.5)}
CHANGES = 10  # a second
STORY = (Status.SUSPECT, Status.ALIVE, Status.SUSPECT, Status.DEAD, Status.ALIVE)  # of each member that changes
WORK = """(() => {
    const began = performance.now();
    let sum = 0;
    for (let i = 0; i < 2e7; i++) sum += i % 7;
    return performance.now() - began;
})()"""
LONGEST = """
    window.longest = 0;
    new PerformanceObserver((list) => {
        for (const each of list.getEntries()) window.longest = Math.max(window.longest, each.duration);
    }).observe({ type: "longtask" }); 0
"""


class Size(NamedTuple):
    """How long, and of how many."""

    seconds: float = 30.0
    members: int = 1000
    large: int = 5000
    settle_seconds: float = 4.0  # after the page was opened


SIZE = Size()
QUICK = Size(4.0, 1000, 1500)


def run(rounds: int = 1, size: Size = SIZE) -> Report:
    del rounds
    if not PROGRAM:
        return Report("page", GOALS, dict.fromkeys(GOALS, None), {}, [MISSING])
    with TemporaryDirectory() as folder, browser(Path(folder)) as started:
        found = {
            "small": measured(started, size, size.members, CHANGES),
            "idle": measured(started, size, size.members, 0),
            "large": measured(started, size, size.large, CHANGES),
        }
    problems = [f"{name}: {error}" for name, each in found.items() for error in each.pop("errors")]
    ratios = {
        "main_thread_share": found["small"]["share"],
        "main_thread_5000": found["large"]["share"],
        "main_thread_idle": found["idle"]["share"],
        "longest_frame_ms": found["small"]["longest_ms"],
    }
    return Report("page", GOALS, ratios, {**found, "changes_per_second": CHANGES, "size": size._asdict()}, problems)


def measured(started: Browser, size: Size, members: int, changes: int) -> dict[str, Any]:
    """One page of a group of so many."""
    show_progress(f"{members} members, {changes} changes a second")
    names = [f"web-{number:05}" for number in range(members)]
    with crowd(names) as group, started.page() as page:
        page.open(group.group.url, width=1440, height=1100)
        page.until(f"document.querySelector('#gossip-count')?.textContent === '{members + 1:,} members'")
        page.until("document.body.dataset.link === 'live'")
        page.call("Performance.enable", timeDomain="threadTicks")
        page.js(LONGEST)
        time.sleep(size.settle_seconds)
        before, began_at = metrics(page), time.monotonic()
        said = change(group, names, changes, size.seconds)
        after, took = metrics(page), time.monotonic() - began_at
        spent = {name: after[name] - before[name] for name in ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")}
        drawn = page.js("Number(document.querySelector('#gossip-field').dataset.drawn)")
        return {
            "share": spent["TaskDuration"] / took,
            "script_share": spent["ScriptDuration"] / took,
            "layout_share": (spent["LayoutDuration"] + spent["RecalcStyleDuration"]) / took,
            "longest_ms": page.js("window.longest"),
            "changes": said,
            "cells_drawn": drawn,
            "nodes": after["Nodes"],
            "work_ms": page.js(WORK),
            "errors": page.errors,
        }


def metrics(page: Page) -> dict[str, float]:
    return {each["name"]: each["value"] for each in page.call("Performance.getMetrics")["metrics"]}


def change(group: Crowd, names: list[str], changes: int, seconds: float) -> int:
    """So many a second, evenly; how many there were."""
    chance, began_at, said = random.Random(1), time.monotonic(), 0
    under_way: list[tuple[str, int]] = []
    while (now := time.monotonic() - began_at) < seconds:
        while changes and said < now * changes:
            if len(under_way) < CHANGES:
                under_way.append((chance.choice(names), 0))
            name, step = under_way.pop(0)
            group.say((name, STORY[step]))
            if step + 1 < len(STORY):
                under_way.append((name, step + 1))
            said += 1
        time.sleep(0.01)
    return said
