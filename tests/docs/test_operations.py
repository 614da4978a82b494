"""The operations guide names what exists: every finding of doctor, and metrics that an agent really exposes."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.agent.observe import agent_metrics, http_app, metrics
from holdfast.agent.observe.doctor import SECURITY
from holdfast.config import TAG_BYTES_MAX, TAGS_BYTES_MAX, TAGS_MAX
from holdfast.features.election.metrics import of_elections
from holdfast.features.gossip.http import GossipHttp
from holdfast.features.leadership import metrics as lead_metrics
from holdfast.features.limits import http as limit_http
from holdfast.features.mail import http as mail_http
from holdfast.features.ring import http as ring_http
from holdfast.features.tickets import metrics as ticket_metrics
from holdfast.features.views import http as view_http
from holdfast.host import SEEDS_MAX
from holdfast.kit.histogram import Histogram
from tests.features.gossip.stand import Stand

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "operations.md").read_text()
LISTED = (ROOT / "docs" / "http.md").read_text()
SOURCES = [ROOT / "src" / "holdfast" / name for name in ("agent/observe/doctor.py", "agent/observe/symptoms.py", "cli/doctor.py")]
SOURCES += [
    path
    for name in ("agent", "findings", "missing", "running")
    for path in sorted((ROOT / "src" / "holdfast" / "features").glob(f"*/{name}.py"))
]
FINDING = re.compile(r'\b(?:error|warning|note|say|Finding)\(\s*"([a-z_]+)"')
METRIC = re.compile(r"\bholdfast_([a-z0-9_]+)")


def codes() -> set[str]:
    """Every code that a line of the source gives to a finding."""
    found = {code for path in SOURCES for code in FINDING.findall(path.read_text())}
    assert len(found) > 15
    return found | set(SECURITY)


def explained(guide: str) -> set[str]:
    """The codes that stand in the first column of the table."""
    table = guide.partition("| finding |")[2].partition("\n\n")[0]
    return {code for row in table.splitlines() for code in re.findall(r"`([a-z_]+)`", row.split("|")[1] if row.startswith("|") else "")}


def test_every_finding_is_explained() -> None:
    """Whoever is woken by a code finds it here, and finds no other."""
    assert explained(GUIDE) == codes()


def of_gossip() -> set[str]:
    """What a member that gossips exposes, from the first moment on."""
    return {each.name for each in GossipHttp(cast(Any, None), Stand().node).metrics()}


def of_an_election() -> set[str]:
    """What elections expose, before there is a name."""
    none = SimpleNamespace(metrics=dict, names=list, took=Histogram(1.0))
    running = SimpleNamespace(elections=none, terms_heard=0, kind=SimpleNamespace(margins=Histogram(1.0)))
    return {each.name for each in of_elections(cast(Any, running))}


def exposed() -> set[str]:
    """The names of metrics, as the code that exposes them spells them."""
    modules = (metrics, agent_metrics, mail_http, ring_http, lead_metrics, ticket_metrics, view_http, limit_http, http_app)
    text = "".join(Path(str(module.__file__)).read_text() for module in modules)
    plain = set(re.findall(r'(?:counter|gauge|labelled|histograms?|Metric)\(\s*"([a-z_]+)"', text))
    ring = {f"ring_{ring_http.RING_SECONDS.get(name, name)}" for name in ring_http.RING_GAUGES}
    plain |= of_gossip() | of_an_election()
    plain |= {name for name, _ in (*view_http.GAUGES.values(), *view_http.COUNTERS.values())}
    plain |= {
        name for table in (limit_http.NUMBERS, limit_http.COUNTERS, limit_http.GAUGES, limit_http.SECONDS) for name, _ in table.values()
    }
    plain |= {f"ticket_{name}_total" for name in ticket_metrics.COUNTED}
    return plain | ring | {f"ring_{name}_total" for name in ring_http.RING_COUNTERS}


def test_every_metric_exists() -> None:
    """An alert on a name that nobody exposes never fires."""
    named = {re.sub(r"_(bucket|count|sum)$", "", name) for name in METRIC.findall(GUIDE)}
    assert len(named) >= 8
    assert named - exposed() == set()


def test_every_metric_is_listed() -> None:
    """STYLE 6 (reference): each name that an agent can expose stands in docs/http.md; a family may be `holdfast_ring_*`."""
    listed = re.findall(METRIC.pattern + r"(\*?)", LISTED)
    found = exposed()
    assert {"gossip_members", "gossip_messages_sent_total", "election_needed", "limit_rate", "up_seconds"} <= found
    assert sorted(name for name in found if not any(fnmatch(name, "".join(each)) for each in listed)) == []


@pytest.mark.parametrize("text, there", [("`wrong_key`, `x`", {"wrong_key", "x"}), ("none", set())])
def test_the_table_is_read(text: str, there: set[str]) -> None:
    """The reader of the table can miss something."""
    assert explained(f"| finding | x |\n|---|---|\n| {text} | `elsewhere` |\n\n`after`\n") == there


def test_limits_are_those_of_the_code() -> None:
    """Numbers in the table of limits that a constant also says."""
    assert f"| tags | {TAGS_MAX}; names 32 characters, values {TAG_BYTES_MAX} bytes, {TAGS_BYTES_MAX} bytes together |" in GUIDE
    assert f"| seeds | {SEEDS_MAX} |" in GUIDE
