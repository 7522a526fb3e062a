"""harness/row_checks.py: what a reader may rely on in a row that was accepted."""

import pytest

from attnbench.harness.row_checks import check_row
from attnbench.harness.row_schema import FIELDS
from tests.reports.fake_runs import case, problem, row

MAY_LACK = [field.name for field in FIELDS["latency"].values() if field.nullable]


@pytest.mark.parametrize("name", MAY_LACK)
def test_a_field_that_may_be_null_is_null_if_the_file_lacks_it(name: str) -> None:
    found = row(case("fused", problem(64, 2)))
    found.pop(name, None)
    check_row(found)
    assert found.get(name) is None
    assert name in found or FIELDS["latency"][name].later
