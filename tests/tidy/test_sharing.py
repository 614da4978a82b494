"""Who runs which file: real time first, the longest first, and one patient worker for virtual time."""

from __future__ import annotations

import runpy
from collections import OrderedDict
from typing import Any

import pytest

from tests.sharing import LONG, REAL_TIME, VIRTUAL_TIME, Sharing, is_patient, is_real
from tests.tidy.tree import ROOT

VIRTUAL, REAL = "tests/features/ring/sim/test_a.py", "tests/net/test_b.py"


class Worker:
    """What the scheduler talks to."""

    def send_runtest_some(self, indexes: list[int]) -> None:
        """It would run them."""


def given(worker: str, *files: str, workers: int = 3) -> str:
    """The file that this worker gets of those that are left."""
    sharing = Sharing.__new__(Sharing)
    sharing.workqueue = OrderedDict((file, {f"{file}::test": False}) for file in files)
    sharing.assigned_work = {}
    node: Any = Worker()
    node.workerinput = {"workerid": worker, "workercount": workers}
    sharing.registered_collections = {node: [f"{file}::test" for file in files]}
    sharing._assign_work_unit(node)
    (file,) = sharing.assigned_work[node]
    return str(file)


@pytest.mark.parametrize(
    "worker, files, chosen",
    [
        ("gw0", (VIRTUAL, REAL), REAL),
        ("gw1", (VIRTUAL, REAL), REAL),
        ("gw2", (REAL, VIRTUAL), VIRTUAL),
        ("gw0", (VIRTUAL,), VIRTUAL),
        ("gw2", (REAL,), REAL),
        ("gw0", (REAL, "tests/net/test_c.py"), REAL),
    ],
)
def test_each_worker_has_its_kind(worker: str, files: tuple[str, ...], chosen: str) -> None:
    """Tests that measure time are not begun by the worker of low priority while there are others; nobody is idle."""
    assert given(worker, *files) == chosen


def test_the_longest_goes_first() -> None:
    """A long file that is begun last keeps one worker busy and the others idle."""
    longest = max((file for file in LONG if not is_real(file)), key=lambda file: LONG[file])
    assert given("gw2", VIRTUAL, *LONG) == longest


def test_two_workers_are_equal() -> None:
    """With fewer than three nobody may be slow."""
    assert not any(is_patient({"workerid": f"gw{number}", "workercount": 2}) for number in range(2))
    assert [is_patient({"workerid": f"gw{number}", "workercount": 3}) for number in range(3)] == [False, False, True]


def test_files_and_areas_exist() -> None:
    """A name that is misspelled would be shared out as any other."""
    assert [file for file in {*LONG, *VIRTUAL_TIME} if not (ROOT / file).exists()] == []
    assert [area for area in REAL_TIME if not (ROOT / "tests" / area).is_dir()] == []


@pytest.mark.parametrize(
    "file, real",
    [
        ("tests/net/test_udp.py", True),
        ("tests/kit/test_phase.py", False),
        ("tests/features/ring/process/test_flood.py", True),
        ("tests/features/ring/sim/test_sweeps.py", False),
        ("tests/papers/detection/process/test_omega_sockets.py", True),
        ("tests/papers/detection/paper/test_omega.py", False),
        ("tests/test_it.py", False),
    ],
)
def test_time_is_real_where_processes_are(file: str, real: bool) -> None:
    """H206: limits, priority and wall-clock follow from the folder."""
    assert is_real(file) == real


def test_make_check_runs_every_unit_folder() -> None:
    """H206: what a change of a protocol breaks first; no folder of it has real time."""
    checks = runpy.run_path(str(ROOT / "scripts" / "checks.py"))
    folders = checks["pure_folders"]()
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*/*/unit")} <= set(folders)
    assert [pattern for pattern in checks["PURE"] if not any(ROOT.glob(pattern))] == []
    assert [folder for folder in folders if is_real(f"{folder}/test_it.py")] == []
