"""Finding or starting the agent: which way is taken, where it listens, and that nothing stays behind."""

from __future__ import annotations

import os
import socket
import stat
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.client import options as options_module
from holdfast.client import start
from holdfast.client.options import Options, choose_bind, make_plan
from holdfast.client.start import Child, NotWanted, reach
from holdfast.errors import AddressUnusable, AgentLost, ConfigError, JoinFailed, JoinTimeout, KeyUnusable, StorageLocked
from holdfast.net.clock import now
from holdfast.wire.keys import generate
from tests.client.fake_agent import FakeAgent
from tests.client.spelling import Spelling

SEED = "127.0.0.1:9"  # nobody is there, and nobody but root may be

READY = "import os, sys; fd = int(sys.argv[sys.argv.index('--ready-fd') + 1]); os.write(fd, {line!r}); "


def plan(environ: dict[str, str] | None = None, **options: Any) -> options_module.Plan:
    return make_plan(Options(**options), {"HOLDFAST_RUNTIME_DIR": os.environ["HOLDFAST_RUNTIME_DIR"], **(environ or {})})


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of every process that is started."""
    found: list[int] = []
    spawn = start._spawn

    def remembered(settings: dict[str, Any], *descriptors: int) -> int:
        found.append(spawn(settings, *descriptors))
        return found[-1]

    monkeypatch.setattr(start, "_spawn", remembered)
    return found


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program in the agent's place."""

    def make(code: str) -> None:
        program = tmp_path / "python"
        program.write_text(f"#!{python}\n{code}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(program))

    python = sys.executable
    return make


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# Which way.


def test_an_agent_by_its_socket() -> None:
    """agent= comes first, then HOLDFAST_AGENT; nothing is started there."""
    assert plan(agent=Path("/x.sock"), seeds=["h:1"]).path == "/x.sock"
    assert plan({"HOLDFAST_AGENT": "/y.sock"}).path == "/y.sock"
    assert plan(agent="/x.sock").settings is None


def test_one_agent_per_machine_without_seeds_and_key(runtime: Path) -> None:
    """F12: without seeds, key and network all processes of a machine share the group's agent."""
    found = plan(group="orders")
    assert (found.path, found.shared, found.group) == (str(runtime / "orders.sock"), True, "orders")
    assert found.settings is not None
    assert found.settings["bind"] == "127.0.0.1:0"


@pytest.mark.parametrize(
    "options, environ",
    [
        ({"seeds": [SEED]}, {}),
        ({"key": generate()}, {}),
        ({"seats": [SEED]}, {}),
        ({}, {"HOLDFAST_SEEDS": SEED}),
        ({}, {"HOLDFAST_KEY": generate()}),
    ],
    ids=["seeds", "key", "seats", "seeds by environment", "key by environment"],
)
def test_an_agent_of_our_own(options: dict[str, Any], environ: dict[str, str], runtime: Path) -> None:
    """Otherwise a child with a socket that nobody else knows, used once."""
    found = plan(environ, group="orders", **options)
    assert (found.shared, found.attach) == (False, False)
    assert Path(found.path).parent == runtime
    assert found.path != plan(environ, group="orders", **options).path
    again = found.again()
    assert again.settings is not None
    assert again.settings["socket"] == again.path != found.path


def test_settings_of_join_environment_and_file(tmp_path: Path) -> None:
    """What is given comes first, then the environment, then the file; logs are warnings unless somebody asked for more."""
    file = tmp_path / "holdfast.toml"
    file.write_text('group = "from-file"\npreset = "wan"\n')
    found = plan({"HOLDFAST_PRESET": "local"}, config=file)
    assert (found.group, found.config) == ("from-file", str(file))
    assert found.settings == {"bind": "127.0.0.1:0", "log_level": "warning", "socket": found.path}
    assert plan({"HOLDFAST_CONFIG": str(file)}).group == "from-file"
    loud = plan({"HOLDFAST_LOG_LEVEL": "debug"}).settings
    assert loud is not None
    assert "log_level" not in loud


def test_a_key_may_be_bytes() -> None:
    """The 32 bytes themselves are as good as their text."""
    settings = plan(key=bytes(32)).settings
    assert settings is not None
    assert settings["key"] == "A" * 43 + "="


@pytest.mark.parametrize(
    "options, kind, text",
    [
        ({"seeds": "10.0.0.5:7946"}, ConfigError, "seeds: '10.0.0.5:7946'; accepted is a list"),
        ({"seeds": [7946]}, ConfigError, "seeds: "),
        ({"seeds": ["nowhere"]}, ConfigError, "seeds: 'nowhere'"),
        ({"preset": "moon"}, ConfigError, "preset: 'moon'; accepted are lan, wan, local"),
        ({"key": "secret"}, KeyUnusable, "32 bytes"),
        ({"tags": {"a b": "c"}}, ConfigError, "'a b' is no name of a tag"),
        ({"bind": "0.0.0.0:0", "advertise": "10.0.0.5:1"}, ConfigError, "beyond loopback"),
    ],
)
def test_what_cannot_be_used_starts_nothing(
    options: dict[str, Any], kind: type[Exception], text: str, client: Spelling, pids: list[int]
) -> None:
    """Every setting is checked before a process is started; the error names the field."""
    with pytest.raises(kind, match=text):
        client.join("orders", **options)
    assert pids == []


# Where it listens.


def test_bind_as_a_seed_that_is_ours_and_free() -> None:
    """One program with one list of seeds, on every machine of the list: each listens as the seed that it is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        taken.bind(("127.0.0.1", 0))
        free.bind(("127.0.0.1", 0))
        first, second = (f"127.0.0.1:{each.getsockname()[1]}" for each in (taken, free))
        free.close()
        assert choose_bind(["192.0.2.1:7946", first, second]) == second
        assert choose_bind([first]) == "127.0.0.1:0"
    assert choose_bind([]) == "127.0.0.1:0"
    assert choose_bind(["no-such-host.invalid:7946"]) == "127.0.0.1:0"


def test_a_port_that_was_taken_meanwhile(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """We chose it, so we choose again; what the user chose is an error."""
    line = msgspec.json.encode({"error": "AddressUnusable", "text": "bind: taken"}) + b"\n"
    stand_in(READY.format(line=line))
    chosen = make_plan(Options(key=generate()), os.environ)
    with pytest.raises(AddressUnusable, match="taken"):
        reach(msgspec.structs.replace(chosen, guessed=False), now() + 30.0, lambda: False)
    tried = []
    again = Child.__init__

    def remember(child: Child, each: options_module.Plan) -> None:
        assert each.settings is not None
        tried.append(each.settings["bind"])
        again(child, each)

    monkeypatch.setattr(Child, "__init__", remember)
    seeds = tuple(f"127.0.0.1:{port}" for port in (free_port(), free_port()))
    seeded = msgspec.structs.replace(chosen, settings={**(chosen.settings or {}), "bind": seeds[1]}, guessed=True, seeds=seeds)
    with pytest.raises(AddressUnusable):
        reach(seeded, now() + 30.0, lambda: False)
    assert tried == [seeds[1], seeds[0], "127.0.0.1:0"]  # the seed that is free, then anything


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


# What it says, and what if it says nothing.


@pytest.mark.parametrize("error", ["NameConflict", "StorageLocked", "KeyUnusable", "ConfigError"])
def test_errors_of_the_child_come_back(error: str, stand_in: Any, client: Spelling, pids: list[int]) -> None:
    """What the agent could not start with is raised here, by its class and with its text; the process is gone."""
    stand_in(READY.format(line=msgspec.json.encode({"error": error, "text": "because"}) + b"\n") + "import time; time.sleep(60)")
    with pytest.raises(getattr(sys.modules["holdfast.errors"], error), match="because"):
        client.join("orders", key=generate())
    assert [gone(pid) for pid in pids] == [True]


def test_a_child_that_ends(stand_in: Any, client: Spelling, pids: list[int]) -> None:
    """An agent that ends without a word is JoinFailed with its status."""
    stand_in("import sys; sys.exit(7)")
    with pytest.raises(JoinFailed, match="status 7"):
        client.join("orders", key=generate())
    assert [gone(pid) for pid in pids] == [True]


def test_a_child_that_is_never_ready(stand_in: Any, client: Spelling, pids: list[int], runtime: Path) -> None:
    """JoinTimeout; a process that ignores SIGTERM is killed, and its socket removed."""
    stand_in("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    with pytest.raises(JoinTimeout, match="was started and is not ready"):
        client.join("orders", key=generate(), timeout=0.5)
    assert [gone(pid) for pid in pids] == [True]
    assert list(runtime.iterdir()) == []


def test_whoever_stops_half_way_ends_what_it_started(stand_in: Any, pids: list[int]) -> None:
    """The caller does not want it any more: nothing stays behind."""
    stand_in("import time; time.sleep(60)")
    with pytest.raises(NotWanted):
        reach(make_plan(Options(key=generate()), os.environ), now() + 60.0, lambda: bool(pids))
    assert [gone(pid) for pid in pids] == [True]


def test_who_loses_the_race_attaches(stand_in: Any, runtime: Path, pids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """F12: another process has started the machine's agent meanwhile; the loser attaches to it."""
    line = msgspec.json.encode({"error": "StorageLocked", "text": "process 1 is the agent"}) + b"\n"
    stand_in(READY.format(line=line))
    agents: list[FakeAgent] = []
    probe = start._probe

    def later(plan: options_module.Plan) -> start.Found:
        if pids and not agents:
            agents.append(FakeAgent(Path(plan.path)))
        return probe(plan)

    monkeypatch.setattr(start, "_probe", later)
    reached = reach(make_plan(Options(group="orders"), os.environ), now() + 30.0, lambda: False)
    assert (reached.child, len(pids)) == (None, 1)
    agents[0].close()


def test_a_locked_state_directory_is_an_error(stand_in: Any) -> None:
    """An agent of our own that finds its directory in use has nobody to attach to."""
    stand_in(READY.format(line=msgspec.json.encode({"error": "StorageLocked", "text": "in use"}) + b"\n"))
    with pytest.raises(StorageLocked, match="in use"):
        reach(make_plan(Options(key=generate()), os.environ), now() + 30.0, lambda: False)


def test_an_agent_that_must_be_there() -> None:
    """agent= names one: where none answers, none is started."""
    with pytest.raises(AgentLost):
        reach(plan(agent="/nowhere.sock"), now() + 30.0, lambda: False)


def test_settings_reach_the_child_unseen(stand_in: Any, tmp_path: Path, pids: list[int]) -> None:
    """A key is never among the arguments or in the environment; the child's session, input and parent are as it needs them."""
    seen = tmp_path / "seen"
    key = generate()
    stand_in(
        "import json, os, sys, time\n"
        "fd = int(sys.argv[sys.argv.index('--settings-fd') + 1])\n"
        "environ = {name: value for name, value in os.environ.items()}\n"
        "told = dict(argv=sys.argv, settings=json.loads(os.read(fd, 65536)), environ=environ, session=os.getsid(0) == os.getpid())\n"
        f"open({str(seen)!r}, 'w').write(json.dumps(told))\n"
        "sys.exit(1)"
    )
    with pytest.raises(JoinFailed):
        reach(make_plan(Options(group="orders", key=key), os.environ), now() + 30.0, lambda: False)
    told = msgspec.json.decode(seen.read_bytes())
    assert told["settings"]["key"] == key
    assert key not in str(told["argv"]) + str(told["environ"])
    assert told["argv"][-2:] == ["--parent", str(os.getpid())]
    assert told["argv"][1:4] == ["-P", "-m", "holdfast.agent"]
    assert told["session"]
    assert (Path(told["environ"]["PYTHONPATH"].split(os.pathsep)[0]) / "holdfast").is_dir()


def test_a_child_that_somebody_else_reaped(stand_in: Any) -> None:
    """A program that waits for all its children must not break us."""
    stand_in("import sys; sys.exit(0)")
    child = Child(make_plan(Options(key=generate()), os.environ))
    os.waitpid(child.pid, 0)
    assert child.wait(5.0)
    child.end()
    assert child.status == 0


def test_shared_agents_are_reaped_later(stand_in: Any, runtime: Path) -> None:
    """A machine-wide agent outlives the group that started it; when it ends it leaves no zombie once we come by."""
    stand_in("import sys; sys.exit(0)")
    child = Child(make_plan(Options(group="orders"), os.environ))
    child.let_go()
    end_at = time.monotonic() + 30.0
    with FakeAgent(runtime / "orders.sock"):
        while not gone(child.pid):
            assert time.monotonic() < end_at
            reach(make_plan(Options(group="orders"), os.environ), now() + 30.0, lambda: False)
    assert child not in start._left_behind
