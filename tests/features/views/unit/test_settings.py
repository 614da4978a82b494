"""The settings of views: presets, limits, and what does not go together."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.feature import features
from holdfast.config import load
from holdfast.errors import ConfigError, ExtraMissing
from holdfast.features.views.settings import ViewsSettings
from holdfast.features.views.zookeeper.servers import parse_servers

SEATS = ["a@127.0.0.1:7001", "b@127.0.0.1:7002", "c@127.0.0.1:7003"]


def settings(**given: Any) -> ViewsSettings:
    return ViewsSettings.of(load(None, {}, {"insecure": True, "bind": "127.0.0.1:0", **given}))


@pytest.mark.parametrize("preset, heartbeat", [("lan", 0.25), ("wan", 1.0), ("local", 0.1)])
def test_every_length_follows_from_the_heartbeat(preset: str, heartbeat: float) -> None:
    """Views 4: one setting, whose preset says how fast views are; the lease is six of them, and clocks drift as `rho` says."""
    config = settings(preset=preset, rho=0.002, margin=0.02).views_config()
    assert (config.heartbeat, config.lease) == (heartbeat, 6 * heartbeat)
    assert (config.rho, config.margin) == (0.002, 0.02)


@pytest.mark.parametrize("value", [0.04, 5.1, -1.0, float("nan")])
def test_a_heartbeat_beyond_its_limits(value: float) -> None:
    """Views 4: the setting, the value and what is accepted."""
    with pytest.raises(ConfigError, match=r"view_heartbeat: .*; accepted are 0\.05 to 5 seconds"):
        settings(view_heartbeat=value)


def test_zookeeper_and_seats() -> None:
    """Views 4: views have one back end; seeds alone name no seats for views."""
    with pytest.raises(ConfigError, match=r"zookeeper: 'zk1:2181', and seats are named as well"):
        settings(zookeeper="zk1:2181", seats=SEATS, state_dir="/nonexistent")
    assert settings(zookeeper="zk1:2181", seeds=["127.0.0.1:7001"]).zookeeper == "zk1:2181"


@pytest.mark.parametrize("text", ["zk1", "zk1:2181/chroot", "zk:²", "a:1," * 7 + "b:1", "a:1,a:1", "zk1:2181,ZK1:2181", "-a:1", "1.2.3:1"])
def test_what_is_no_ensemble(text: str) -> None:
    """Views 5Z: settings are read as the agent reads them when it connects, so `--check` refuses what the agent would refuse."""
    with pytest.raises(ConfigError) as later:
        parse_servers(text)
    with pytest.raises(ConfigError, match=r"zookeeper: .*; accepted are 1 to 7 of HOST:PORT") as checked:
        settings(zookeeper=text)
    assert str(checked.value).startswith(str(later.value))  # and where the setting is from


@pytest.mark.parametrize("text", ["zk1:2181", "10.0.0.1:2181,[::1]:2182", ",".join(f"zk{number}:2181" for number in range(7))])
def test_what_is_an_ensemble(text: str) -> None:
    """Views 5Z: names, addresses, up to seven."""
    found = settings(zookeeper=text)
    assert (found.zookeeper, found.zk_session, found.zk_stale) == (text, 4.0, 10.0)


@pytest.mark.parametrize("name, value", [("zk_session", 0.1), ("zk_session", 61.0), ("zk_stale", 0.0), ("zk_stale", 301.0)])
def test_limits_of_zookeeper(name: str, value: float) -> None:
    """Views 5Z: a session and a deposed leader last for seconds."""
    with pytest.raises(ConfigError, match=f"{name}: .*; accepted are"):
        settings(**{name: value})


def test_what_an_agent_would_do() -> None:
    """Views 5Z: `agent --check` says where views would come from, how, with which session, and what an ensemble does not give."""
    (feature,) = [each for each in features() if each.name == "views"]
    config = load(None, {}, {"insecure": True, "bind": "127.0.0.1:0"})
    assert list(feature.would(config)) == []
    given = {"insecure": True, "bind": "127.0.0.1:0", "zookeeper": "zk1:2181, zk2:2181", "zk_session": 2.5}
    source, session, one = feature.would(load(None, {}, given))
    assert "the ZooKeeper ensemble zk1:2181, zk2:2181, not from seats" in source
    assert "kazoo, in a thread of its own, while a program of this agent asks for views" in source
    assert "a session timeout of 2.5 s" in session
    assert "one view" in one
    assert "no majority of the ensemble has none" in one
    source, *_ = feature.would(load(None, {}, {**given, "membership": "views"}))
    assert "from the start, because the view is the member list" in source


def test_what_an_agent_could_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 5Z: without kazoo `agent --check` fails, and names the extra."""
    monkeypatch.setattr("holdfast.features.views.zookeeper.servers.find_spec", lambda name: None)
    (feature,) = [each for each in features() if each.name == "views"]
    with pytest.raises(ExtraMissing, match=r"^zookeeper: .*pip install '.\[zookeeper\]'"):
        feature.would(load(None, {}, {"insecure": True, "bind": "127.0.0.1:0", "zookeeper": "zk1:2181"}))
