"""How the files of a run are shared out among workers (``pytest -n 3 --dist loadfile``).

Tests of real processes and clocks mostly wait, and a machine that is busy with others makes them late; tests of virtual time only need
a core. So the first kind goes first, two files at a time, and meanwhile the last worker, at a lower priority, does the second kind with
what the waiting leaves over. Of each kind the longest file goes first: at the end no worker waits for a long file of another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

WORKERS_MIN = 3  # with fewer, none of them is patient
PATIENCE = 5  # added to the patient worker's nice value: against one process of ours it still gets a quarter of a core

REAL_TIME = {"agent", "cli", "client", "disk", "docs", "e2e", "http", "net", "page"}
VIRTUAL_TIME = {"tests/cli/test_bad_input.py", "tests/cli/test_experiments_as_json.py"}  # although they are about the command line

# Files that take longer than most, and about how many seconds.
LONG = {
    "tests/cli/test_run.py": 80,
    "tests/docs/test_pages.py": 70,
    "tests/e2e/test_demo.py": 60,
    "tests/e2e/test_ticket_processes.py": 50,
    "tests/e2e/test_lead_processes.py": 50,
    "tests/e2e/test_group.py": 40,
    "tests/e2e/test_ticket_disk.py": 30,
    "tests/cli/test_run_agents.py": 30,
    "tests/agent/test_grants_processes.py": 30,
    "tests/client/test_ticket_real.py": 30,
    "tests/cli/test_lab.py": 25,
    "tests/cli/test_doctor.py": 25,
    "tests/cli/test_doctor_paths.py": 25,
    "tests/client/test_real.py": 25,
    "tests/cli/test_experiments_as_json.py": 110,
    "tests/sim/test_ring.py": 100,
    "tests/sim/test_leadership.py": 60,
    "tests/sim/test_tickets.py": 50,
    "tests/sim/test_kit.py": 35,
    "tests/sim/test_election.py": 20,
    "tests/sim/test_ring_experiments_a.py": 20,
    "tests/sim/test_ring_experiments_b.py": 20,
    "tests/sim/test_ffd_experiments.py": 20,
    "tests/lab/test_determinism.py": 20,
}


def is_real(file: str) -> bool:
    return file.split("/")[1] in REAL_TIME and file not in VIRTUAL_TIME


def is_patient(worker: Mapping[str, Any]) -> bool:
    """``worker`` is what xdist tells each of them about itself."""
    count = int(worker["workercount"])
    return count >= WORKERS_MIN and worker["workerid"] == f"gw{count - 1}"


class Sharing(LoadFileScheduling):  # type: ignore[misc] # xdist has no annotations
    """Gives each worker the longest file of its kind, and any other when there is none."""

    def _assign_work_unit(self, node: Any) -> None:
        patient = is_patient(node.workerinput)
        chosen = max(self.workqueue, key=lambda file: (is_real(file) != patient, LONG.get(file, 0)))
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


class Shared:
    """The plugin: in the process that shares out, and in the workers."""

    def pytest_configure(self, config: pytest.Config) -> None:
        if is_patient(getattr(config, "workerinput", {"workercount": 0, "workerid": ""})):
            os.nice(PATIENCE)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Sharing | None:
        return Sharing(config, log) if config.getvalue("dist") == "loadfile" else None
