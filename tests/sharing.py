"""How the files of a run are shared out among workers (``pytest -n 6 --dist loadfile``).

Tests of real processes and clocks mostly wait, and a machine that is busy with others makes them late; tests of virtual time only need
a core. So the first kind goes first, five files at a time, and meanwhile the last worker, at a lower priority, does the second kind with
what the waiting leaves over. Of each kind the longest file goes first: at the end no worker waits for a long file of another.

With three files at a time the waiting was what took long: 684 s, in which all tests together used 561 s of two cores (H334).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

WORKERS_MIN = 3  # with fewer, none of them is patient
PATIENCE = 5  # added to the patient worker's nice value: against one process of ours it still gets a quarter of a core

# Where time is real: these folders, and the folder process/ of every feature and paper.
REAL_TIME = {"agent", "cli", "client", "contrib", "disk", "docs", "e2e", "http", "net", "page"}
PROCESS = "process"
VIRTUAL_TIME = {"tests/cli/test_bad_input.py", "tests/cli/test_experiments_as_json.py"}  # although they are about the command line

# Files that take longer than most, and about how many seconds.
LONG = {
    "tests/features/views/process/test_six.py": 75,
    "tests/features/limits/process/test_processes.py": 45,
    "tests/features/limits/process/test_shares_move.py": 45,
    "tests/cli/test_run.py": 45,
    "tests/features/views/process/test_figure_5.py": 45,
    "tests/features/views/process/test_processes.py": 45,
    "tests/e2e/test_run_standby.py": 40,
    "tests/cli/test_doctor.py": 40,
    "tests/e2e/test_demo.py": 40,
    "tests/docs/test_pages.py": 35,
    "tests/cli/test_run_again.py": 35,
    "tests/features/tickets/process/test_processes.py": 30,
    "tests/features/tickets/process/test_disk.py": 30,
    "tests/features/tickets/process/test_ring.py": 30,
    "tests/agent/test_process.py": 30,
    "tests/cli/test_exit_codes.py": 25,
    "tests/client/test_again.py": 25,
    "tests/features/leadership/process/test_processes.py": 25,
    "tests/page/test_page.py": 25,
    "tests/features/leadership/process/test_first_leader.py": 23,
    "tests/cli/test_run_guards.py": 23,
    "tests/features/limits/process/test_spelled.py": 23,
    "tests/features/tickets/process/test_storm.py": 22,
    "tests/features/ring/process/test_processes.py": 22,
    "tests/cli/test_lab.py": 20,
    "tests/client/test_real.py": 19,
    "tests/e2e/test_kubernetes.py": 19,
    "tests/features/limits/process/test_other_views.py": 18,
    "tests/features/tickets/process/test_client.py": 17,
    "tests/features/tickets/process/test_load.py": 17,
    "tests/client/test_spelled.py": 15,
    "tests/e2e/test_replay.py": 15,
    "tests/features/leadership/process/test_partition.py": 15,
    "tests/features/tickets/process/test_partition.py": 15,
    "tests/e2e/test_group.py": 14,
    "tests/e2e/test_load.py": 14,
    "tests/features/gossip/process/test_membership.py": 14,
    "tests/e2e/test_toy_feature.py": 14,
    "tests/agent/test_delays.py": 14,
    "tests/features/ring/process/test_partition.py": 14,
    "tests/agent/test_grants_processes.py": 13,
    "tests/papers/detection/process/test_omega_sockets.py": 13,
    "tests/http/test_limits.py": 10,
    "tests/docs/test_wheel.py": 10,
    "tests/agent/test_agents_fuzz.py": 9,
    "tests/cli/test_doctor_paths.py": 9,
    "tests/pins/test_lab.py": 70,
    "tests/lab/test_jobs.py": 28,
    "tests/benchmarks/test_harness.py": 25,
    "tests/kit/test_promise_explored.py": 24,
    "tests/tidy/test_budget.py": 18,
    "tests/tidy/test_limits.py": 18,
    "tests/features/views/sim/test_sweeps.py": 17,
    "tests/features/leadership/sim/test_sweeps.py": 16,
    "tests/benchmarks/test_views_bench.py": 15,
    "tests/kit/test_sweeps.py": 15,
    "tests/lab/test_determinism.py": 15,
    "tests/tidy/test_code.py": 15,
    "tests/features/ring/sim/test_directed.py": 12,
    "tests/features/ring/sim/test_upgrade_model.py": 12,
    "tests/features/tickets/sim/test_sweeps.py": 12,
    "tests/features/ring/sim/test_experiments_a.py": 10,
    "tests/features/ring/sim/test_sweeps.py": 10,
    "tests/features/tickets/sim/test_experiments.py": 10,
    "tests/wire/test_fuzz.py": 10,
    "tests/tidy/test_citations.py": 8,
}


def is_real(file: str) -> bool:
    folders = file.split("/")[1:-1]
    return bool(folders) and (folders[0] in REAL_TIME or folders[-1] == PROCESS) and file not in VIRTUAL_TIME


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
