"""Many seeds of one scenario: what held, what did not, and one line per failure that shows it again.  docs/lab.md

``sweep`` is for tests: it raises with everything a reader needs. ``collect`` is what the command line runs: it returns a
summary, keeps a results file and can go on where an earlier sweep stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.lab import registry
from holdfast.lab.faults import Plan
from holdfast.lab.jobs import HERE, Where, spread
from holdfast.lab.replay import replay_command, shrunk, write_plan
from holdfast.lab.results import Chunk, Failure, Results
from holdfast.lab.scenario import Scenario, run
from holdfast.lab.source import commit, digest

CHUNK_SEEDS = 10  # one line of the results file; small enough to lose little when interrupted
TRACES_SHOWN = 1  # of failing seeds in an AssertionError: the next ones are mostly the same bug
FAILURES_SHOWN = 10

Target = Scenario | str  # a scenario, or a name or path that other processes find it by
Progress = Callable[[Chunk], None]


class Summary(Struct, frozen=True):
    """What a sweep found, earlier results that were resumed included."""

    scenario: str
    commit: str
    passed: int
    failed: tuple[Failure, ...]
    events: int
    seconds: float
    skipped: int = 0  # seeds that an earlier sweep had run

    @property
    def ok(self) -> bool:
        return not self.failed


def sweep(scenario: Target, seeds: Sequence[int], *, where: Where = HERE) -> Summary:
    """Run every seed; AssertionError with the first failing trace and the replay lines if anything was violated."""
    summary = collect(scenario, seeds, where=where)
    if not summary.ok:
        raise AssertionError(_told(scenario, summary))
    return summary


def collect(
    scenario: Target,
    seeds: Sequence[int],
    *,
    where: Where = HERE,
    results: Results | None = None,
    resume: bool = False,
    shrink_into: Path | None = None,
    progress: Progress = lambda chunk: None,
) -> Summary:
    """Run every seed that is not known yet, note each chunk, and sum up. ``shrink_into`` is where shrunk plans go."""
    target, results = _portable(scenario), results or Results(None)
    found = _named(scenario)
    known = [chunk for chunk in results.known(found.name, _commit(target)) if resume]
    done = {seed for chunk in known for seed in range(chunk.first, chunk.last + 1)}
    work = partial(_run_chunk, target, shrink_into is not None)
    fresh: list[Chunk] = []
    for bare, plans in spread(work, list(_chunks([seed for seed in seeds if seed not in done])), where):
        chunk = _with_plans(bare, target, plans, shrink_into)
        results.append(chunk)
        fresh.append(chunk)
        progress(chunk)
    return _summed(found.name, _commit(target), set(seeds), known, fresh)


def _run_chunk(target: Target, shrinking: bool, seeds: tuple[int, ...]) -> tuple[Chunk, dict[int, Plan]]:
    """What a worker does. Shrunk plans travel back as data: the worker may be on a machine whose files are not seen."""
    scenario, began_at = _named(target), time.monotonic()
    outcomes = [run(scenario, seed) for seed in seeds]
    bad = [outcome for outcome in outcomes if not outcome.ok]
    plans = {outcome.seed: shrunk(scenario, outcome.seed)[0] for outcome in bad if shrinking}
    chunk = Chunk(
        scenario=scenario.name,
        first=seeds[0],
        last=seeds[-1],
        commit=_commit(target),
        passed=len(outcomes) - len(bad),
        failed=tuple(Failure(outcome.seed, outcome.violation, replay_command(target, outcome.seed)) for outcome in bad),
        events=sum(outcome.events for outcome in outcomes),
        seconds=round(time.monotonic() - began_at, 3),
    )
    return chunk, plans


def _with_plans(chunk: Chunk, target: Target, plans: dict[int, Plan], folder: Path | None) -> Chunk:
    if folder is None or not plans:
        return chunk
    failed = tuple(replace(each, plan=str(write_plan(target, each.seed, folder, plans[each.seed]))) for each in chunk.failed)
    return replace(chunk, failed=failed)


def _chunks(seeds: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Runs of neighbouring seeds: a line of the results file names the first and the last."""
    chunk: list[int] = []
    for seed in seeds:
        if chunk and (seed != chunk[-1] + 1 or len(chunk) == CHUNK_SEEDS):
            yield tuple(chunk)
            chunk = []
        chunk.append(seed)
    if chunk:
        yield tuple(chunk)


def _summed(scenario: str, code: str, wanted: set[int], known: Sequence[Chunk], fresh: Sequence[Chunk]) -> Summary:
    skipped = {seed for chunk in known for seed in range(chunk.first, chunk.last + 1)} & wanted
    failures = chain.from_iterable(chunk.failed for chunk in (*known, *fresh))
    failed = {failure.seed: failure for failure in failures if failure.seed in wanted}
    return Summary(
        scenario=scenario,
        commit=code,
        passed=len(skipped) + sum(chunk.last - chunk.first + 1 for chunk in fresh) - len(failed),
        failed=tuple(failed[seed] for seed in sorted(failed)),
        events=sum(chunk.events for chunk in fresh),
        seconds=sum(chunk.seconds for chunk in fresh),
        skipped=len(skipped),
    )


def _named(target: Target) -> Scenario:
    return registry.find_scenario(target) if isinstance(target, str) else target


def _portable(target: Target) -> Target:
    """By name where the registry knows it: other processes look it up instead of unpickling it."""
    if isinstance(target, Scenario) and registry.scenarios().get(target.name) is target:
        return target.name
    return target


def _commit(target: Target) -> str:
    """A user's own file is not part of our commit: its digest stands for it."""
    if isinstance(target, str) and registry.is_path(target):
        return f"{commit()}+{digest(Path(target))}"
    return commit()


def _told(scenario: Target, summary: Summary) -> str:
    lines = [f"{len(summary.failed)} of {summary.passed + len(summary.failed)} seeds of {summary.scenario} failed"]
    for failure in summary.failed[:TRACES_SHOWN]:
        lines += ["", f"seed {failure.seed}: {failure.violation}", run(_named(scenario), failure.seed, trace=True).trace]
    lines += ["", "see them again with:"]
    lines += [f"  {failure.replay}   # {failure.violation}" for failure in summary.failed[:FAILURES_SHOWN]]
    if len(summary.failed) > FAILURES_SHOWN:
        lines.append(f"  ... and {len(summary.failed) - FAILURES_SHOWN} more")
    return "\n".join(lines)
