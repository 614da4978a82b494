"""A group as people meet it: real agents, a client program looking on, commands typed beside it.

What one agent does as a process is in ``tests/agent``, what one client does in ``tests/client``. Here they meet: what is done at one
agent, or to one agent, is seen by programs at others.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.events import EventsLost, Failed
from holdfast.host import MemberStatus
from holdfast.local.calls import EventItem, Info, Look, SetTags, Watch
from tests.agent.raw_client import RawClient
from tests.cli import recorder
from tests.e2e.looking_on import Onlooker, typed
from tests.support.agents import AgentProcess, Fleet, clean_environ, until

LEASE = 1.5  # seconds: nobody shall be put out because the machine under test is busy
CLIENTS = 200
CHANGES = 500  # of tags, one event each, before somebody looks whether some were lost
WORKER = """
import sys, time
import holdfast.sync
with holdfast.sync.join("test", seeds=[sys.argv[1]], key=sys.argv[2], name="worker", config=sys.argv[3]) as group:
    print("in", flush=True)
    time.sleep(600)
"""
ALONE = """
import sys
import holdfast.sync
with holdfast.sync.join("shared") as group:
    print(group.me.id, group.members.names, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("fleet"), log_level="warning", lease=LEASE) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def agents(fleet: Fleet) -> list[AgentProcess]:
    """Four that stay: who joins and goes beside them disturbs none of them."""
    first = fleet.start(name="a0", log_level="info")
    rest = [fleet.start(name=f"a{number}", seeds=[first.address], log_level="info") for number in range(1, 4)]
    found = [first, *rest]
    until(lambda: all(each.said("Joined", member=other.id) for each in found for other in found), "four agents are a group")
    return found


def alive(agents: list[AgentProcess]) -> bool:
    """Everybody lists everybody."""
    names = {agent.name for agent in agents}
    views = []
    for agent in agents:
        with RawClient(agent.socket) as client:
            views.append({member.name for member in client.ask(Look).members if member.status is MemberStatus.ALIVE})
    return all(names <= view for view in views)


def test_tags_set_by_a_command_reach_a_program_elsewhere(agents: list[AgentProcess]) -> None:
    """PRODUCT: what an agent says about itself is in everybody's list, and news to whoever watches."""
    with Onlooker(agents[0]) as onlooker:
        typed("tags", "set", "zone=eu-1", "text=[red]\\o/", agent=agents[1])
        onlooker.until("a1", "Updated")
        until(lambda: "zone" in _tags(onlooker, "a1"), "the tag is in the list")
        assert _tags(onlooker, "a1") == {"zone": "eu-1", "text": "[red]\\o/"}
    words = ("members", "--tag", "zone=eu-1")
    until(lambda: typed(*words, agent=agents[2], code=None).code == 0, "another agent knows it as well")
    shown = typed(*words, agent=agents[2]).out
    assert "a1" in shown
    assert "[red]\\o/" in shown
    typed("tags", "remove", "zone", "text", agent=agents[1])


def _tags(onlooker: Onlooker, name: str) -> dict[str, str]:
    member = onlooker.group.get(name)
    return {} if member is None else member.tags


def test_a_goodbye_is_not_a_death(fleet: Fleet, agents: list[AgentProcess]) -> None:
    """Ring G4, G5 and a polite leave, as a program sees them: Left and nothing else; Suspected, Decided, Failed(certain) in this order."""
    with Onlooker(agents[0]) as onlooker:
        polite = fleet.start(name="polite", seeds=[agents[0].address])
        rude = fleet.start(name="rude", seeds=[agents[1].address])
        onlooker.until("polite", "Joined")
        onlooker.until("rude", "Joined")
        typed("leave", agent=polite)
        assert polite.wait() == 0
        rude.kill()
        assert [each for each in onlooker.until("polite", "Left") if each != "Updated"] == ["Joined", "Left"]
        heard = [each for each in onlooker.until("rude", "Failed") if each != "Updated"]
        assert heard in (["Joined", "Suspected", "Decided", "Failed"], ["Joined", "Decided", "Failed"]), "others may be first to suspect"
        failed = [event for event in onlooker.events if isinstance(event, Failed)]
        assert [(event.member.name, event.certain) for event in failed] == [("rude", True)]


def test_a_name_in_use_is_refused(fleet: Fleet, agents: list[AgentProcess]) -> None:
    """F5: the second agent of a name ends with code 1 and says who has it; the first one, and the group, notice nothing."""
    with Onlooker(agents[0]) as onlooker:
        second = fleet.start(name="a3", seeds=[agents[0].address], expect_ready=False)
        assert second.wait() == 1, second.stderr
        assert "a3" in second.stderr
        assert agents[3].address in second.stderr
        assert not {"Failed", "Left", "Suspected"} & set(onlooker.about("a3"))
    until(lambda: alive(agents), "the group is as before")


def test_reload_refuses_another_lease_and_applies_the_rest(fleet: Fleet, agents: list[AgentProcess], tmp_path: Path) -> None:
    """F4: a running agent keeps its T_l, says so by name, and takes the new tags; with the file as it is now it could not come back."""
    key, file = tmp_path / "key", tmp_path / "holdfast.toml"
    key.write_text(fleet.settings["key"])
    key.chmod(0o600)
    settings = (
        f'group = "test"\nname = "reloaded"\nbind = "127.0.0.1:0"\nseeds = ["{agents[0].address}"]\nkey_file = "{key}"\npreset = "local"\n'
    )
    file.write_text(f"{settings}lease = {LEASE}\n")
    socket_path = tmp_path / "s"
    with (tmp_path / "log").open("wb") as log, Onlooker(agents[0]) as onlooker:
        command = [str(Path(sys.executable).with_name("holdfast")), "agent", "--config", str(file), "--socket", str(socket_path)]
        process = subprocess.Popen(command, env=clean_environ(tmp_path, {}), stdout=log, stderr=log)
        try:
            onlooker.until("reloaded", "Joined")
            file.write_text(settings + 'lease = 2.0\n[tags]\nrole = "new"\n')
            process.send_signal(signal.SIGHUP)
            until(lambda: _tags(onlooker, "reloaded") == {"role": "new"}, "the tags are applied")
            said = (tmp_path / "log").read_text()
            assert '"lease"' in said
            assert "restart the agent to change it" in said
            assert typed("info", "--json", "--agent", str(socket_path)).json["settings"]["lease"] == LEASE
            refused = fleet.start(name="slower", seeds=[agents[0].address], lease=2.0, log_level="info")
            refused.until_said("ConfigMismatch", field="T_l")
            refused.kill()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        assert "slower" not in {member.name for member in onlooker.group.members}
        onlooker.until("reloaded", "Left")


def test_rubbish_on_the_local_socket_ends_its_connection_only(agents: list[AgentProcess]) -> None:
    """A frame that cannot be read costs its sender the connection; a program beside it is not disturbed."""
    with Onlooker(agents[0]) as onlooker:
        for rubbish in (b"\xff" * 64, b"\x00\x00\x00\x02\xc1\xc1", b"\x00\x00\x00\x00", b"GET / HTTP/1.0\r\n\r\n"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(30)
                connection.connect(agents[0].socket)
                connection.sendall(rubbish)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
        onlooker.group.set_tags(after="rubbish")
        assert onlooker.group.me.tags["after"] == "rubbish"
        onlooker.group.set_tags(after=None)
    until(lambda: alive(agents), "the group is as before")


def test_two_hundred_clients(agents: list[AgentProcess]) -> None:
    """Each of 200 programs gets each event, and the agent does not lose its lease over them."""
    with ExitStack() as stack, Onlooker(agents[1]) as onlooker:
        clients = [stack.enter_context(RawClient(agents[0].socket)) for _ in range(CLIENTS)]
        streams = [client.say(Watch) for client in clients]
        for client, serial in zip(clients, streams, strict=True):
            assert len(client.answer(Watch, serial).members) >= len(agents)
        clients[0].ask(SetTags, {"crowd": "here"})
        for client, serial in zip(clients, streams, strict=True):
            assert any(item.name == "Updated" for item in _items(client, serial))
        assert not {"Suspected", "Failed"} & set(onlooker.about("a0"))
        clients[0].ask(SetTags, {"crowd": None})


def test_a_subscriber_that_never_reads(fleet: Fleet) -> None:
    """Its buffer is bounded, everybody else is served, and when it reads at last it is told how many it missed."""
    agent = fleet.start(name="lonely", group="lonely")
    with RawClient(agent.socket) as deaf, RawClient(agent.socket) as busy:
        until(lambda: busy.ask(Look).state == "member", "it is a member")
        stream = deaf.say(Watch)
        before = busy.ask(Info)["metrics"]["events_lost"]
        count = 0
        while busy.ask(Info)["metrics"]["events_lost"] == before:
            for _ in range(CHANGES):
                count += 1
                busy.ask(SetTags, {"count": str(count)})
            assert count < 20 * CHANGES, "nothing was ever lost: where are all these events kept?"
        view = busy.ask(Look)
        assert (view.state, view.me.tags["count"]) == ("member", str(count))
        deaf.answer(Watch, stream)
        assert any(item.name == EventsLost.__name__ for item in _items(deaf, stream))
    agent.kill()


def _items(client: RawClient, serial: int) -> Iterator[EventItem]:
    while True:
        yield client.item(serial, EventItem)


def test_a_program_killed_with_9_leaves(fleet: Fleet, agents: list[AgentProcess], tmp_path: Path) -> None:
    """PRODUCT: the agent that a program started notices its death and says goodbye; nobody has to decide anything."""
    with Onlooker(agents[0]) as onlooker:
        file = tmp_path / "holdfast.toml"
        file.write_text(f'preset = "local"\nlease = {LEASE}\n')
        words = [sys.executable, "-c", WORKER, agents[0].address, fleet.settings["key"], str(file)]
        with subprocess.Popen(words, env=clean_environ(tmp_path, {}), stdout=subprocess.PIPE) as program:
            try:
                assert program.stdout is not None
                assert program.stdout.readline() == b"in\n"
                onlooker.until("worker", "Joined")
                child = int(next(iter(_children(program.pid))))
            finally:
                program.kill()
        heard = onlooker.until("worker", "Left")
        assert not {"Suspected", "Failed"} & set(heard)
        until(lambda: not recorder.alive({child}), "its agent ends")


def _children(pid: int) -> list[str]:
    return [each for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()]


def test_programs_without_seeds_share_one_agent(tmp_path: Path) -> None:
    """F12: several programs start at the same moment; one agent founds the group of this machine, all of them are in it."""
    environ = clean_environ(tmp_path, {})
    programs = [
        subprocess.Popen([sys.executable, "-c", ALONE], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    try:
        said = {program.stdout.readline() for program in programs if program.stdout is not None}
        assert len(said) == 1
        (line,) = said
        assert line.count("#") == 1
        second = typed("agent", "--group", "shared", "--bind", "127.0.0.1:0", code=3, HOLDFAST_RUNTIME_DIR=str(tmp_path))
        assert "attach to its socket" in second.err
    finally:
        for program in programs:
            program.communicate()
    assert [program.returncode for program in programs] == [0] * len(programs)
    until(lambda: not list(tmp_path.glob("*.sock")), "the shared agent ends with its last program")


def test_environment_of_the_tests_has_no_agent() -> None:
    """Tests that find somebody else's agent prove nothing."""
    assert "HOLDFAST_AGENT" not in os.environ
