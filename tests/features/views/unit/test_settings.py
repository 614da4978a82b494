"""The settings of views: presets, limits, and what does not go together."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import load
from holdfast.errors import ConfigError
from holdfast.features.views.settings import ViewsSettings

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


@pytest.mark.parametrize(
    "text", ["zk1", "zk1:", ":2181", "zk1:0", "zk1:65536", "zk1:2181,", "zk 1:2181", "zk1:2181/chroot", "zk:²", "a:1," * 7 + "b:1"]
)
def test_what_is_no_ensemble(text: str) -> None:
    """Views 5Z: 1 to 7 servers as HOST:PORT; anything else is refused before anything is connected."""
    with pytest.raises(ConfigError, match=r"zookeeper: .*; accepted are 1 to 7 servers as HOST:PORT"):
        settings(zookeeper=text)


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
