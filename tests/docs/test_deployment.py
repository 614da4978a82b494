"""The files in deploy/ say nothing that Holdfast does not know: settings, flags, and how they hang together."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.config import Config, load
from holdfast.errors import ConfigError
from holdfast.wire import generate

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = DEPLOY / "holdfast-agent.service"
SETTING = re.compile(r"HOLDFAST_([A-Z][A-Z_]*)")
FLAG = re.compile(r"(?<!\S)--([a-z][a-z-]*)")
BESIDE = {"agent", "runtime_dir"}  # for clients, and where sockets are: no settings of an agent
VERB_FLAGS = {"check", "config"}  # of `holdfast agent`, beside the settings


def settings_of(text: str) -> set[str]:
    return {name.lower() for name in SETTING.findall(text)}


def unknown_flags(command: str) -> set[str]:
    return {flag.replace("-", "_") for flag in FLAG.findall(command)} - set(Config.__struct_fields__) - VERB_FLAGS


def accepted(environment: Mapping[str, str], tmp_path: Path, file: Path | None = None) -> Config:
    """The settings as an agent would read them, with a key where the file expects one."""
    key = tmp_path / "key"
    key.write_text(generate())
    key.chmod(0o600)
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length")
    given = {
        "HOLDFAST_KEY_FILE": str(key),
        **({"HOLDFAST_HTTP_TOKEN_FILE": str(token)} if "HOLDFAST_HTTP_TOKEN_FILE" in environment else {}),
    }
    config = load(file, {**environment, **given}, {})
    config.check()
    return config


@pytest.mark.parametrize("path", sorted(DEPLOY.iterdir()), ids=lambda path: path.name)
def test_every_setting_exists(path: Path) -> None:
    """Whatever is called HOLDFAST_... in a file is a setting."""
    assert settings_of(path.read_text()) - set(Config.__struct_fields__) - BESIDE == set()


def test_an_unknown_setting_is_found() -> None:
    """The check can fail."""
    assert settings_of("HOLDFAST_PORT=1 HOLDFAST_BIND=x") - set(Config.__struct_fields__) == {"port"}
    assert unknown_flags("holdfast agent --config x --port 1 --state-dir y") == {"port"}


def test_unit_uses_flags_that_exist() -> None:
    """What systemd starts is a command that works."""
    commands = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert len(commands) == 1
    for command in commands:
        assert "holdfast agent" in command
        assert unknown_flags(command) == set()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_unit() -> None:
    """No unknown directive, no command that is not there."""
    ended = subprocess.run(["systemd-analyze", "verify", UNIT], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_toml_is_accepted(tmp_path: Path) -> None:
    """The example of a settings file is one: every key is a setting, every value is accepted."""
    file = DEPLOY / "holdfast.toml"
    assert set(tomllib.loads(file.read_text())) <= set(Config.__struct_fields__)
    assert accepted({}, tmp_path, file).seeds[0] == "10.0.0.5:7946"


def test_compose_is_accepted(tmp_path: Path) -> None:
    """Each agent listens where the seeds say it does, on an address of the network, with a volume that is declared."""
    described = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = {name: each for name, each in described["services"].items() if name.startswith("agent-")}
    assert len(services) == 3
    for service in services.values():
        config = accepted(service["environment"], tmp_path)
        (network,) = service["networks"].values()
        assert config.bind == f"{network['ipv4_address']}:7946"
        assert config.bind in config.seeds
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(described["volumes"])
        assert service["environment"]["HOLDFAST_KEY_FILE"] == "/run/secrets/holdfast-key"
        assert service["environment"]["HOLDFAST_HTTP_TOKEN_FILE"] == "/run/secrets/holdfast-token"
        assert set(service["secrets"]) == set(described["secrets"]) == {"holdfast-key", "holdfast-token"}


def test_kubernetes_is_accepted(tmp_path: Path) -> None:
    """Settings are accepted; names that must match do: service, selector, volumes, seeds."""
    service, stateful, budget = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    spec = stateful["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    environment = {each["name"]: each.get("value", "holdfast-0") for each in container["env"]}
    named = {name: value.replace("$(POD_IP)", "10.1.2.3") for name, value in environment.items()}
    named["HOLDFAST_STATE_DIR"] = image_environment()["HOLDFAST_STATE_DIR"]
    config = accepted({name: value for name, value in named.items() if name != "POD_IP"}, tmp_path)
    assert spec["serviceName"] == service["metadata"]["name"]
    labels = spec["template"]["metadata"]["labels"]
    assert labels == service["spec"]["selector"] == spec["selector"]["matchLabels"] == budget["spec"]["selector"]["matchLabels"]
    for number, seed in enumerate(config.seeds):
        assert seed == f"{stateful['metadata']['name']}-{number}.{spec['serviceName']}:7946"
    assert len(config.seeds) <= spec["replicas"]
    assert [seat.partition("@")[2] for seat in config.seats] == list(config.seeds)
    assert [seat.partition("@")[0] for seat in config.seats] == [seed.partition(".")[0] for seed in config.seeds]
    assert config.moved
    assert (service["spec"]["ports"][-1]["name"], f"10.1.2.3:{service['spec']['ports'][-1]['port']}") == ("http", config.http)
    volumes = {each["name"] for each in pod["volumes"]} | {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def image_environment() -> dict[str, str]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in line.split())


def test_dockerfile_paths_are_mounted() -> None:
    """What the image keeps and shares lies where compose and Kubernetes mount it, and clients in it find the agent."""
    environment = image_environment()
    assert environment["HOLDFAST_AGENT"] == environment["HOLDFAST_SOCKET"]
    stateful: Any = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))[1]
    mounts = {mount["mountPath"] for mount in stateful["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert environment["HOLDFAST_STATE_DIR"] in mounts
    assert str(Path(environment["HOLDFAST_SOCKET"]).parent) in mounts


def test_a_wrong_setting_is_refused(tmp_path: Path) -> None:
    """The check can fail: an unknown key, and a value that is not accepted."""
    for text in ('grup = "orders"', 'preset = "moon"'):
        file = tmp_path / "wrong.toml"
        file.write_text(text)
        with pytest.raises(ConfigError):
            accepted({}, tmp_path, file)
