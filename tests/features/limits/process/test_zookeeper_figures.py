"""What a real ensemble adds to Figure 7 and Table 1, by the experiments themselves, with shorter cuts.  Spec: limits 8 (F7, T1), H360."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.features.limits.lab.experiments import figure7_partition, table1_failures
from holdfast.features.views.lab.ensemble import missing
from holdfast.lab.experiment import Cell, Experiment, Finding, parameters_of

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]

SETTINGS = {"back_ends": '["zookeeper"]', "zookeeper_seconds": "15.0"}
# Table 1, by case and the server that leads: the limits of L2 and L6.
TABLE_1 = {(1, 2): (1.0, 4.0), (2, 2): (4.0, 2.0), (3, 2): (1.0, 4.0), (4, 2): (1.0, 4.0), (4, 1): (4.0, 2.0)}


def finding_of(experiment: Experiment[Any], fits: Cell) -> Finding:
    """Of the one cell that this is a part of."""
    parameters = parameters_of(experiment, SETTINGS)
    (cell,) = [cell for cell in experiment.cells(parameters, 0) if fits.items() <= cell.items()]
    finding = experiment.judge(parameters, [experiment.measure(cell)])
    assert isinstance(finding, Finding)
    return finding


@pytest.mark.parametrize("policy", ["fair", "exact"])
def test_the_minority_is_in_panic(policy: str) -> None:
    """Limits 5.7, 8, F7: L2 without a view has R/6, L6 two thirds of the limit; exact never has more than R in all."""
    finding = finding_of(figure7_partition.EXPERIMENT, {"policy": policy})
    assert finding.passed, finding.notes
    assert set(finding.measured["L2"]) == {f"zookeeper, {policy}"}


@pytest.mark.parametrize("case, leader", TABLE_1)
def test_a_case_of_the_table(case: int, leader: int) -> None:
    """Limits 8, T1; views D21: panic at R/6 in cases 1 and 3, and in 4 if one of the two that are cut apart leads. In case 2 gossip goes
    round the cut between two members by the mailboxes of the ensemble."""
    finding = finding_of(table1_failures.EXPERIMENT, {"case": case, "leader": leader})
    assert finding.passed, finding.notes
    (limits,) = finding.measured["L2, L6"].values()
    assert limits == pytest.approx(TABLE_1[case, leader], abs=0.25)
