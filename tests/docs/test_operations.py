"""The operations guide names what exists: every finding of doctor, and metrics that an agent really exposes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.agent.observe import agent_metrics, http_app, metrics
from holdfast.agent.observe.doctor import SECURITY
from holdfast.config import TAG_BYTES_MAX, TAGS_BYTES_MAX, TAGS_MAX
from holdfast.features.election import metrics as election_metrics
from holdfast.features.gossip import http as gossip_http
from holdfast.features.leadership import metrics as lead_metrics
from holdfast.features.limits import http as limit_http
from holdfast.features.mail import http as mail_http
from holdfast.features.ring import http as ring_http
from holdfast.features.tickets import metrics as ticket_metrics
from holdfast.features.views import http as view_http
from holdfast.host import SEEDS_MAX

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "operations.md").read_text()
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


def exposed() -> set[str]:
    """The names of metrics, as the code that exposes them spells them."""
    modules = (metrics, agent_metrics, mail_http, ring_http, lead_metrics, ticket_metrics, view_http, limit_http, http_app)
    text = "".join(Path(str(module.__file__)).read_text() for module in modules)
    plain = set(re.findall(r'(?:counter|gauge|labelled|histograms?|Metric)\(\s*"([a-z_]+)"', text))
    ring = {f"ring_{ring_http.RING_SECONDS.get(name, name)}" for name in ring_http.RING_GAUGES}
    plain |= {f"gossip_{gossip_http.NAMED.get(name, name)}" for name in gossip_http.GAUGES}
    plain |= {f"gossip_{name}_total" for name in gossip_http.COUNTERS}
    plain |= {f"election_{election_metrics.NAMED.get(name, name)}" for name in election_metrics.GAUGES}
    plain |= {f"election_{name}_total" for name in election_metrics.COUNTERS}
    plain |= {f"election_{name}" for name in election_metrics.BY_NAME}
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


@pytest.mark.parametrize("text, there", [("`wrong_key`, `x`", {"wrong_key", "x"}), ("none", set())])
def test_the_table_is_read(text: str, there: set[str]) -> None:
    """The reader of the table can miss something."""
    assert explained(f"| finding | x |\n|---|---|\n| {text} | `elsewhere` |\n\n`after`\n") == there


def test_limits_are_those_of_the_code() -> None:
    """Numbers in the table of limits that a constant also says."""
    assert f"| tags | {TAGS_MAX}; names 32 characters, values {TAG_BYTES_MAX} bytes, {TAGS_BYTES_MAX} bytes together |" in GUIDE
    assert f"| seeds | {SEEDS_MAX} |" in GUIDE
