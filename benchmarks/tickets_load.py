"""`tickets-load`: very many tickets of one pool, held at once by clients of three agents.  Spec: tickets G4; docs/tickets.md ("How many").

Three agents, all of them seats, as they come (preset ``lan``, journals that sync). 200 clients take all tickets of a pool, several each,
hold them, and hand them over; then one more asks. Per size:

    held_s                  seconds until the last ticket was held, and tickets per second on the way
    agent_cpu               share of a core of the busiest agent while all are held; that of all three is in the raw numbers
    datagrams_per_second    that one agent sends while all are held (the one that sends most)
    crowd_...               the same while 700 more wait for one, in vain
    lost                    tickets that a client lost at any time: while they were taken, held, waited for, or handed over
    handovers_per_second    tickets that were given back and granted to one that waited, while all others are held
    told                    what the one client is told for which there is no ticket

One size again: ``python -m benchmarks.tickets_load 300``; JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from benchmarks.agent_fleet import LOOK_INTERVAL, AgentProcess, formed, until
from benchmarks.harness import ROOT, Report, at_least, at_most, show_progress
from benchmarks.leadership_installation import serves
from benchmarks.leadership_side import LOOPBACK_UP, namespaces
from benchmarks.ring_fleet import NeverHappened, free_addresses, now
from holdfast.local import calls

AGENTS = 3  # and therefore seats
GROUP, POOL = "load", "gpu"
CLIENTS = "benchmarks.tickets_load_clients"
ROUNDS = 1
GOALS = {
    "lost": at_most(0),
    "not_granted": at_most(0),
    "least_handovers_per_second": at_least(10),
    "most_agent_cpu": at_most(0.5),
}
ROUNDING = 3

Found = dict[str, Any]


class Size(NamedTuple):
    """How much of it."""

    tickets: tuple[int, ...] = (100, 300, 1000)
    clients: int = 200
    taken_within: float = 90.0  # seconds for all of them
    hold: float = 15.0  # seconds that are measured
    crowd: int = 700  # that wait in vain while all are held
    crowd_s: float = 8.0
    churn: float = 10.0
    waiters: int = 60  # while tickets change hands
    longest_grant: float = 0.0  # seconds that new seats wait; 0: the preset's


SIZE = Size()
QUICK = Size(tickets=(30,), clients=6, taken_within=60.0, hold=2.0, crowd=60, crowd_s=2.0, churn=2.0, waiters=6)


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    problems: list[str] = []
    found: dict[str, Found] = {}
    for number in range(rounds):
        for tickets in size.tickets:
            show_progress(f"round {number + 1} of {rounds}: {tickets} tickets")
            try:
                found[f"{tickets} tickets" + (f", round {number + 1}" if rounds > 1 else "")] = load_apart(tickets, size)
            except NeverHappened as error:
                problems.append(f"{tickets} tickets: {error}")
    return Report("tickets-load", GOALS, ratios(found.values()), {**size._asdict(), "rounds": rounds, **found}, problems)


def ratios(found: Iterable[Found]) -> dict[str, float]:
    """A load that was not seen to its end proves nothing."""
    sizes = list(found)
    if not sizes:
        return {"lost": 0.0, "not_granted": float("inf"), "least_handovers_per_second": 0.0, "most_agent_cpu": float("inf")}
    return {
        "lost": float(sum(each["lost"] for each in sizes)),
        "not_granted": float(sum(each["not_granted"] for each in sizes)),
        "least_handovers_per_second": min(each["handovers_per_second"] for each in sizes),
        "most_agent_cpu": max(each["agent_cpu"] for each in sizes),
    }


def load_apart(tickets: int, size: Size) -> Found:
    """In namespaces of its own, in which everything ends that was started there."""
    command = [*namespaces(), sys.executable, "-m", "benchmarks.tickets_load", str(tickets), msgspec.json.encode(size).decode()]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    found: Found = json.loads(done.stdout) if done.stdout else {"broken": f"it ended with {done.returncode}; what it said is above"}
    if "broken" in found:
        raise NeverHappened(found["broken"])
    return found


class Drivers:
    """Processes with the clients, one beside each agent. What they are told and what they answer are lines of JSON."""

    def __init__(self, sockets: Sequence[str], of: int, size: Size, log: Path) -> None:
        self._log = log
        self._processes = [self._start(socket, of, share) for socket, share in zip(sockets, shared(size.clients), strict=True)]
        for process in self._processes:
            self._read(process)

    def _start(self, socket: str, of: int, share: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", CLIENTS, socket, GROUP, POOL, str(of), str(share)]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)

    def order(self, *orders: Mapping[str, Any] | None) -> list[Found]:
        """One for each agent's clients, all at once; None: nothing to do."""
        asked = [(process, order) for process, order in zip(self._processes, orders, strict=True) if order is not None]
        for process, order in asked:
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
        return [self._read(process) for process, _ in asked]

    def order_all(self, **order: Any) -> list[Found]:
        return self.order(*(order for _ in self._processes))

    def order_one(self, number: int, **order: Any) -> Found:
        return self.order(*(order if each == number else None for each in range(len(self._processes))))[0]

    def _read(self, process: subprocess.Popen[str]) -> Found:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise NeverHappened(f"the clients of an agent ended ({process.wait()}): {self._log.read_text(errors='replace')[-2000:]}")
        answer: Found = json.loads(line)
        return answer

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def shared(count: int) -> list[int]:
    """As evenly as it goes, of each agent."""
    return [count // AGENTS + (number < count % AGENTS) for number in range(AGENTS)]


@contextmanager
def agents_of(folder: Path, longest_grant: float = 0.0) -> Iterator[list[AgentProcess]]:
    """Three of them, whole, with seats that vote."""
    addresses = free_addresses(AGENTS)
    agents: list[AgentProcess] = []
    try:
        for number, address in enumerate(addresses):
            home = folder / f"a{number}"
            settings = {"group": GROUP, "bind": address, "seeds": addresses, "state_dir": str(home / "state"), "preset": "lan"}
            more = {"longest_grant": longest_grant} if longest_grant else {}
            agents.append(AgentProcess(home, name=f"a{number}", **settings, **more))
        for agent in agents:
            agent.until_it_answers()
        for agent in agents:
            until(lambda: formed(agent, AGENTS), f"{agent.socket} knows all", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
            until(lambda: serves(agent), f"the seat at {agent.socket} votes", LOOK_INTERVAL, agent.check)  # noqa: B023 - as above
        yield agents
    finally:
        for agent in agents:
            agent.end()


class Meter:
    """CPU and datagrams of agents, from one look to the next."""

    def __init__(self, agents: Sequence[AgentProcess]) -> None:
        self._agents = agents
        self._at = now()
        self._before = self._read()

    def _read(self) -> list[tuple[float, Mapping[str, float]]]:
        return [(agent.cpu_seconds, agent.ask(calls.Info)["metrics"]) for agent in self._agents]

    def since(self) -> Found:
        seconds, after = now() - self._at, self._read()
        pairs = list(zip(self._before, after, strict=True))
        cpu = [(later[0] - earlier[0]) / seconds for earlier, later in pairs]
        sent, received, handovers = (
            [(later[1].get(name, 0.0) - earlier[1].get(name, 0.0)) / seconds for earlier, later in pairs]
            for name in ("datagrams_sent", "datagrams_received", "ticket_handovers")
        )
        return {"seconds": seconds, "cpu": cpu, "sent": sent, "received": received, "handovers": sum(handovers)}


def load_here(tickets: int, size: Size) -> Found:
    with TemporaryDirectory(prefix="hf-") as name, ExitStack() as stack:
        folder = Path(name)
        agents = stack.enter_context(agents_of(folder, size.longest_grant))
        drivers = Drivers([agent.socket for agent in agents], tickets, size, folder / "clients.log")
        stack.callback(drivers.end)
        began_at, taking = now(), Meter(agents)
        taken = drivers.order(*({"do": "hold", "count": share, "within": size.taken_within} for share in shared(tickets)))
        held_s, on_the_way = now() - began_at, taking.since()
        time.sleep(1.0)  # what was announced is heard
        holding = Meter(agents)
        time.sleep(size.hold)
        steady, looked = holding.since(), drivers.order_all(do="look")
        told = {
            "wait=False": drivers.order_one(0, do="ask", wait=False)["told"],
            "timeout=3": drivers.order_one(1, do="ask", timeout=3.0)["told"],
        }
        crowding = Meter(agents)
        crowd = drivers.order(*({"do": "hold", "count": share, "within": size.crowd_s} for share in shared(size.crowd)))
        crowded = crowding.since()
        changing = Meter(agents)
        churned = drivers.order_all(do="churn", seconds=size.churn, extra=size.waiters // AGENTS)
        hands = changing.since()
        members = [len(agent.ask(calls.Look).members) for agent in agents]
        return rounded(
            {
                "held": sum(each["held"] for each in looked),
                "held_s": held_s,
                "taken_per_second": sum(each["granted"] for each in taken) / held_s,
                "taking_agent_cpu": max(on_the_way["cpu"]),
                "taking_datagrams_per_second": max(on_the_way["sent"]),
                "not_granted": tickets - sum(each["granted"] for each in taken),
                "lost": sum(each["lost"] for each in churned),
                "lost_while_held": sum(each["lost"] for each in looked),
                "agent_cpu": max(steady["cpu"]),
                "agent_cpu_of_all": sum(steady["cpu"]),
                "datagrams_per_second": max(steady["sent"]),
                "datagrams_per_second_of_all": sum(steady["sent"]),
                "crowd_granted": sum(each["granted"] for each in crowd),
                "crowd_agent_cpu": max(crowded["cpu"]),
                "crowd_datagrams_per_second": max(crowded["sent"]),
                "handovers_per_second": sum(each["granted"] for each in churned) / hands["seconds"],
                "handed_on_directly_per_second": hands["handovers"],
                "handover_waited_p50_s": max(each["p50"] for each in churned),
                "handover_agent_cpu": max(hands["cpu"]),
                "granted_while_changing": sum(each["granted"] for each in churned),
                "least_members": min(members),
                "told": told,
                "whys": {why: count for each in churned for why, count in each["whys"].items() if not why.startswith("AcquireTimeout")},
            }
        )


def rounded(found: Found) -> Found:
    return {name: round(value, ROUNDING) if isinstance(value, float) else value for name, value in found.items()}


def main() -> None:
    _, tickets, *more = sys.argv
    if os.getpid() == 1:  # the first process of namespaces of its own
        subprocess.run(LOOPBACK_UP, check=True)
    try:
        found: Mapping[str, Any] = load_here(int(tickets), msgspec.json.decode(more[0], type=Size) if more else SIZE)
    except NeverHappened as error:
        found = {"broken": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
