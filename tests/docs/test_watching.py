"""What deploy/ has for watching: probes that exist, a health check that works, rules and a board that name real metrics.  H181."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast import sync
from holdfast.agent.observe import agent_metrics, http_app, metrics
from holdfast.agent.observe.http_server import PROBES
from holdfast.features.leadership import metrics as lead_metrics
from holdfast.features.ring import http as ring_http
from holdfast.features.tickets import metrics as ticket_metrics
from holdfast.features.views import http as view_http
from tests.docs.test_deployment import DEPLOY, image_environment
from tests.docs.test_operations import GUIDE, METRIC
from tests.http.test_metrics import parsed
from tests.http.wire import ask
from tests.support.agents import Fleet, until

HEALTHCHECK = DEPLOY / "healthcheck.sh"
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[A-Za-z_:$][A-Za-z0-9_:$]*|[0-9.]+(?:e[0-9]+)?|=~|!=|[<>=]=|[-+*/<>=(){},]|\s+')
FUNCTIONS = {
    "rate", "increase", "histogram_quantile", "scalar", "sum", "count", "max", "min", "count_values", "by", "and",
    "label_values",
}  # of PromQL, as far as they are used here  # fmt: skip
LABELS = {"job", "instance", "reason", "what", "le", "state", "member", "limit", "name"}
# Metrics that are there only when there is something to say: after a renewal, in a group of several, when something was counted.
SOMETIMES = {
    "holdfast_ring_departures_total", "holdfast_drops_total", "holdfast_ring_safe_for_seconds", "holdfast_ring_safe_for_seconds_least",
    "holdfast_lead_margin_seconds_least", "holdfast_ticket_margin_seconds_least", "holdfast_view_lease_margin_seconds_least",
}  # fmt: skip


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana.json").read_text())
    return found


def expressions() -> dict[str, str]:
    """All PromQL there is, by where it stands."""
    of_board = {f"board: {panel['title']} {target['refId']}": target["expr"] for panel in board()["panels"] for target in panel["targets"]}
    of_lists = {f"board: {each['name']}": each["query"]["query"] for each in board()["templating"]["list"] if each["type"] == "query"}
    return {**{f"alert: {rule['alert']}": str(rule["expr"]) for rule in rules()}, **of_board, **of_lists}


def words_of(expression: str) -> list[str]:
    """The words of an expression; fails on whatever is no word."""
    found = WORD.findall(expression)
    assert "".join(found) == expression, f"cannot be read: {expression!r}"
    return [word for word in found if not word.isspace()]


def names_in(expression: str) -> set[str]:
    """Metrics; what else stands there must be known, and parentheses must match."""
    words = words_of(expression)
    for opening, closing in ("()", "{}"):
        depth = 0
        for word in words:
            depth += (word == opening) - (word == closing)
            assert depth >= 0, expression
        assert depth == 0, expression
    plain = {word for word in words if re.fullmatch(r"[A-Za-z_:][A-Za-z0-9_:]*", word)}
    found = {word for word in plain if word.startswith("holdfast_")}
    assert plain - found - FUNCTIONS - LABELS - {"up"} == set(), expression
    for window in re.findall(r"\[([^\]]*)\]", expression):
        assert re.fullmatch(r"[0-9]+[smhd]", window), expression
    return found


def base(name: str) -> str:
    """The name of a metric without what a histogram adds."""
    return re.sub(r"_(bucket|sum|count)$", "", name)


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Types by name, as a real agent with a seat of its own exposes them, whose client takes part in views and uses a limit; and as one
    that gossips and leads by election does."""
    with Fleet(tmp_path_factory.mktemp("watching")) as fleet:
        agent = fleet.start(name="a", http="127.0.0.1:0", key=None, group="alone")
        until(lambda: ask(str(agent.ready["http"]), "/readyz").status == 200, "its seat votes")
        with sync.join(agent=agent.socket) as joined, joined.views() as views, joined.limit("api", rate=10) as limit:
            views.ready(timeout=60)
            limit.ready(timeout=60)
            types, samples = parsed(ask(str(agent.ready["http"]), "/metrics").body.decode())
        assert (samples["holdfast_view_number"] > 0, samples["holdfast_view_members"], samples["holdfast_view_clients"]) == (True, 1, 1)
        assert (samples["holdfast_seats"], samples["holdfast_seats_voting"], samples["holdfast_seat_voting"]) == (1, 1, 1)
        gossip = fleet.start(name="b", http="127.0.0.1:0", key=None, group="other", membership="gossip")
        with sync.join(agent=gossip.socket) as joined, joined.lead("led", by="election", timeout=60):
            more, samples = parsed(ask(str(gossip.ready["http"]), "/metrics").body.decode())
        assert (samples["holdfast_election_own"], samples["holdfast_election_led"], samples["holdfast_election_stands"]) == (1, 1, 1)
        yield {**more, **types}


@pytest.mark.parametrize("where", sorted(expressions()))
def test_every_expression_names_what_exists(where: str, exposed: dict[str, str]) -> None:
    """An alert or a panel on a name that no agent exposes never says anything; a rate of a gauge says nothing true."""
    expression = expressions()[where]
    modules = (metrics, agent_metrics, lead_metrics, ring_http, ticket_metrics, view_http, http_app)
    source = "".join(Path(str(module.__file__)).read_text() for module in modules)
    for name in names_in(expression):
        if name in SOMETIMES:
            assert f'"{name.removeprefix("holdfast_").removeprefix("ring_")}"' in source or f'"{name.removeprefix("holdfast_")}"' in source
        else:
            assert base(name) in exposed, f"{name} is exposed by no agent"
            assert name == base(name) or exposed[base(name)] == "histogram"
    for counted in re.findall(r"(?:rate|increase)\((holdfast_[a-z0-9_]+)", expression):
        assert counted.endswith(("_total", "_bucket", "_count", "_sum")), counted
    for name in re.findall(r"(holdfast_[a-z0-9_]+_total)", expression):
        assert re.search(rf"(?:rate|increase)\({name}", expression), f"{name} only ever grows"


@pytest.mark.parametrize(
    "wrong", ["rate(holdfast_x_total[5 minutes])", "sum(holdfast_x", "sums(holdfast_x)", 'holdfast_x{colour="y"}', "a ? b"]
)
def test_the_reader_of_expressions_can_fail(wrong: str) -> None:
    """Broken expressions are found."""
    with pytest.raises(AssertionError):
        names_in(wrong)


def test_rules_are_rules() -> None:
    """Every rule has a name of its own, a severity, a duration that can be read, and a sentence."""
    assert len({rule["alert"] for rule in rules()}) == len(rules()) > 15
    for rule in rules():
        assert rule["alert"].startswith("Holdfast")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert re.fullmatch(r"[0-9]+[smh]", rule.get("for", "1m"))
        assert rule["annotations"]["summary"].endswith((".", ")."))


def test_the_guide_and_the_rules_agree() -> None:
    """docs/operations.md explains the metrics that alerts are made of, and these alone."""
    table = GUIDE.partition("| alert | expression |")[2].partition("\n\n")[0]
    in_guide = {base(f"holdfast_{name}") for name in METRIC.findall(table)}
    assert {base(name) for rule in rules() for name in names_in(str(rule["expr"]))} - {"up"} == in_guide


def test_the_operator_gets_the_same_rules() -> None:
    """deploy/monitoring.yaml: the rules of alerts.yaml, and a monitor for the service and the secret of kubernetes.yaml."""
    monitor, rule = yaml.safe_load_all((DEPLOY / "monitoring.yaml").read_text())
    assert rule["spec"] == yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    service, stateful, _ = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "holdfast"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    secrets = {each["secret"]["secretName"]: each["name"] for each in stateful["spec"]["template"]["spec"]["volumes"] if "secret" in each}
    credentials = endpoint["authorization"]["credentials"]
    mounted = {each["name"]: each["mountPath"] for each in stateful["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
    environment = {each["name"]: each.get("value") for each in stateful["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert environment["HOLDFAST_HTTP_TOKEN_FILE"] == f"{mounted[secrets[credentials['name']]]}/{credentials['key']}"


def test_prometheus_of_compose_reaches_the_agents() -> None:
    """deploy/prometheus.yaml: the job that the rules name, the agents of compose.yaml at their port, with their token."""
    described = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    settings = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    (job,) = settings["scrape_configs"]
    agents = [each for name, each in described["services"].items() if name.startswith("agent-")]
    ports = {each["environment"]["HOLDFAST_HTTP"].rpartition(":")[2] for each in agents}
    wanted = {f"{each['networks']['group']['ipv4_address']}:{port}" for each in agents for port in ports}
    assert (job["job_name"], set(job["static_configs"][0]["targets"])) == ("holdfast", wanted)
    assert job["authorization"]["credentials_file"] == agents[0]["environment"]["HOLDFAST_HTTP_TOKEN_FILE"]
    prometheus = described["services"]["prometheus"]
    assert settings["rule_files"] == [mount.split(":")[1] for mount in prometheus["volumes"] if "alerts" in mount]
    assert "holdfast-token" in prometheus["secrets"]
    for mount in prometheus["volumes"]:
        assert (DEPLOY / mount.split(":")[0]).is_file()


def test_the_board_is_one() -> None:
    """Panels have a place of their own, a number of their own, and ask the data source that is chosen above."""
    panels = board()["panels"]
    assert (
        len({panel["id"] for panel in panels}) == len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    )
    assert {target["datasource"]["uid"] for panel in panels for target in panel["targets"]} == {"${datasource}"}


def test_probes_ask_for_what_exists() -> None:
    """The probes of kubernetes.yaml are paths of this server that need no token, at a port that the container names."""
    stateful: Any = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))[1]
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    probes = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == dict(zip(probes, PROBES, strict=True))
    assert {probe["port"] for probe in probes.values()} <= {port.get("name") for port in container["ports"]}


def checked(http: str, path: str = "/healthz", **environ: str) -> tuple[int, str]:
    ended = subprocess.run(
        ["bash", str(HEALTHCHECK), path], env={"PATH": os.environ["PATH"], "HOLDFAST_HTTP": http, **environ},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return ended.returncode, ended.stdout


def test_the_health_check_of_the_image(tmp_path: Path) -> None:
    """deploy/healthcheck.sh against real agents: 0 and silent when well, 1 with the answer when not, 1 when there is none; on all
    addresses too, and it is the one that the image runs."""
    (tmp_path / "token").write_text("a-token-of-some-length")
    with Fleet(tmp_path) as fleet:
        a = fleet.start(name="a", http="127.0.0.1:0", seeds=["127.0.0.1:1", "127.0.0.1:2"])  # It waits for seeds that never come.
        where = str(a.ready["http"]).removeprefix("http://").rstrip("/")
        assert checked(where) == (0, "")
        code, said = checked(where, "/readyz")
        assert (code, said.startswith("HTTP/1.1 503"), "it is joining" in said) == (1, True, True)
        assert checked(where.replace("127.0.0.1", "0.0.0.0"))[0] == 0
        a.kill()
        assert checked(where)[0] == 1
        b = fleet.start(name="b", http="0.0.0.0:0", http_token_file=str(tmp_path / "token"), key=None, group="alone")
        port = str(b.ready["http"]).rstrip("/").rpartition(":")[2]
        assert checked(f"0.0.0.0:{port}") == (0, "")
        assert checked(f"0.0.0.0:{port}", "/metrics")[1].startswith("HTTP/1.1 401")
    text = (DEPLOY / "Dockerfile").read_text()
    assert image_environment()["HOLDFAST_HTTP"]
    assert re.search(r"^COPY --chmod=0755 deploy/healthcheck.sh /app/bin/holdfast-healthcheck$", text, re.MULTILINE)
    assert re.search(r'^HEALTHCHECK .* CMD \["holdfast-healthcheck"\]$', text, re.MULTILINE)
