"""The column of Table 1 that a real ensemble fills, by the experiment itself, with shorter cuts.  Spec: views 5Z, 8 (T1), D21."""

from __future__ import annotations

import pytest

from holdfast.features.views.lab.ensemble import missing
from holdfast.features.views.lab.experiments.table1_failures import EXPERIMENT, ZOOKEEPER
from holdfast.lab.experiment import parameters_of

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]


# By case and the server that leads: how many are in the view that there is. Cases 1 and 3 are one cut, as clients have only the ensemble
# between them; for the same reason case 2 cuts nothing.
TABLE_1 = {(1, 2): 4, (2, 2): 6, (3, 2): 4, (4, 2): 4, (4, 1): 6}


@pytest.mark.parametrize("case, leader", TABLE_1)
def test_a_case_of_the_table(case: int, leader: int) -> None:
    """Views 5.8, 8, T1, D21: the minority panics in cases 1 and 3; in case 4 it does if one of the two that are cut apart leads."""
    parameters = parameters_of(EXPERIMENT, {"zookeeper_seconds": "10.0"})
    (cell,) = [
        cell for cell in EXPERIMENT.cells(parameters, 0) if (cell["back end"], cell["case"], cell["leader"]) == (ZOOKEEPER, case, leader)
    ]
    finding = EXPERIMENT.judge(parameters, [EXPERIMENT.measure(cell)])
    assert finding.passed, finding.notes
    in_view = TABLE_1[case, leader]
    assert next(iter(finding.measured["views"].values())) == [in_view]
    assert next(iter(finding.measured["without a view"].values())) == 6 - in_view
