"""HTTP: routes, the OpenAPI document, the metrics of agents in use, and what `holdfast doctor` can find."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast import HoldfastError, sync
from tests.http.wire import ask
from tests.pins.conftest import FOLDER, Pinned, difference
from tests.pins.doors import Drop, openapi_document, security_findings, source_texts
from tests.support.agents import AgentProcess, Fleet
from tests.support.realtime import TRIES, repeated

SAMPLE = re.compile(r"^(?P<name>\w+?)(?:_bucket|_sum|_count)?(?:\{(?P<labels>.*)\})? \S+$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
FINDING = re.compile(r'(?<![.\w])(?P<severity>error|warning|note|say|Finding)\(\s*"(?P<code>[a-z_]+)",')
# Without a sample until something was dropped, or is late.
SOMETIMES = ("limits_total", "drops_total", "ring_departures_total", "lead_ballots_total", "view_refused_total")
OTHER_COUNTS = "What the ring counts as"
PATIENCE, POLL = 30.0, 0.2  # seconds until every metric has its first value; the difference says which has none
MARGIN = 0.2  # seconds: a third of the shortest time for which an agent of this preset may be silent
SETTLED = 8.0  # seconds, when the file is written anew: nothing says how many there will be


def described(text: str) -> Iterator[str]:
    """One line per metric: name, type, names of labels, bounds of a histogram, help. Values of labels are whatever happened."""
    labels: dict[str, set[str]] = {}
    bounds: dict[str, list[str]] = {}
    lines = text.splitlines()
    kinds = dict(line.split(" ")[2:4] for line in lines if line.startswith("# TYPE "))
    for match in filter(None, map(SAMPLE.match, lines)):
        name = match[0].partition("{")[0].partition(" ")[0]
        name = name if name in kinds else match["name"]
        for label, value in LABEL.findall(match["labels"] or ""):
            labels.setdefault(name, set()).add(label)
            if label == "le" and value not in bounds.get(name, ()):  # of another limit, too
                bounds.setdefault(name, []).append(value)
    helps = dict(line.removeprefix("# HELP ").split(" ", 1) for line in lines if line.startswith("# HELP "))
    for name, kind in sorted(kinds.items()):
        inside = f"{{{','.join(sorted(labels.get(name, ())))}}}" if name in labels else ""
        at = f" at {' '.join(bounds[name])}" if name in bounds else ""
        yield f"{kind} {name}{inside}{at}: {helps[name]}"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def seen_by(agent: AgentProcess) -> list[str]:
    """What it shows in every run. The rest depends on what went wrong meanwhile."""
    lines = described(ask(str(agent.ready["http"]), "/metrics").body.decode())
    return [line for line in lines if OTHER_COUNTS not in line and not any(f"holdfast_{name}{{" in line for name in SOMETIMES)]


def use(a: AgentProcess, b: AgentProcess, look: Callable[[], None]) -> None:
    """Clients of both hold, tell and ask; then ``look``."""
    with sync.join(agent=a.socket) as here, sync.join(agent=b.socket) as there:
        with here.lead("own", timeout=60), there.lead("other", timeout=60), here.ticket("gpu", of=2, timeout=60), there.ticket("gpu", of=2):
            listening = there.messages()
            here.send("b", b"hello")
            assert next(iter(listening)).data == b"hello"
            there.cast(b"news", topic="topic")
            limits = here.limit("api", rate=100), here.limit("whole", rate=100, policy="exact", fleet=2)
            with here.views() as views, limits[0], limits[1]:
                views.ready(timeout=60)
                for limit in limits:
                    limit.ready(timeout=60)
                look()


def test_metrics(pinned: Pinned, rewrite: bool, tmp_path: Path) -> None:
    """docs/http.md: dashboards and alerts name these metrics: of an agent with a seat, whose clients and peers use everything."""
    golden = set() if rewrite else set((FOLDER / "metrics.txt").read_text(encoding="utf-8").splitlines())

    def attempt(number: int) -> str:
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            seen = metrics_in_use(folder, golden)
        except HoldfastError as error:
            return f"{type(error).__name__}: {error}"
        if not rewrite and (found := difference(FOLDER / "metrics.txt", seen)) and number < TRIES - 1:
            return found
        pinned("metrics", seen)
        return ""

    repeated(attempt, margin=MARGIN)
    assert [name for name in SOMETIMES if not any(f'"{name}", "counter"' in " ".join(text.split()) for text in source_texts())] == []


def metrics_in_use(folder: Path, golden: set[str]) -> list[str]:
    """What an agent shows whose clients and peers use everything, as soon as all of ``golden`` is there."""
    port = free_port()
    seen: list[str] = []
    with Fleet(folder, seats=[f"a@127.0.0.1:{port}"]) as fleet:
        a = fleet.start(name="a", bind=f"127.0.0.1:{port}", state_dir=str(folder / "state"), http="127.0.0.1:0")
        b = fleet.start(name="b", seeds=[a.address])
        a.until_said("Joined", member=b.id)

        def look() -> None:
            end_at = time.monotonic() + (PATIENCE if golden else SETTLED)
            seen[:] = seen_by(a)
            while (golden - set(seen) or not golden) and time.monotonic() < end_at:
                time.sleep(POLL)
                seen[:] = seen_by(a)

        use(a, b, look)
    return seen


def test_routes(pinned: Pinned) -> None:
    """docs/http.md: programs name these routes, parameters and fields. The document is what an agent serves (tests/http)."""
    document = json.dumps(openapi_document("VERSION"), indent=1, sort_keys=True)
    pinned("openapi", document.split("\n"))


def test_findings(pinned: Pinned) -> None:
    """docs/operations.md: scripts read the codes of `holdfast doctor`, and the names of drops are values of a label."""
    found = {f"finding {match['code']} ({match['severity']})" for text in source_texts() for match in FINDING.finditer(text)}
    found |= {f"finding {code} (drops of this name)" for code in security_findings()}
    pinned("findings", [*sorted(found), *(f"drop {drop.value}" for drop in Drop)])
