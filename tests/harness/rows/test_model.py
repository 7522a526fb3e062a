"""harness/rows/model.py: what a reader may rely on in a row that was accepted."""

import pytest

from attnbench.harness.rows.model import FIELDS, check_row
from tests.made_runs import case, problem, row

MAY_LACK = [field.name for field in FIELDS["latency"].values() if field.nullable]


@pytest.mark.parametrize("name", MAY_LACK)
def test_a_field_that_may_be_null_is_null_if_the_file_lacks_it(name: str) -> None:
    found = row(case("fused", problem(64, 2)))
    found.pop(name, None)
    check_row(found)
    assert found.get(name) is None
    assert name in found


@pytest.mark.parametrize("block", [[0.5, 2], [], [1e-9, 1e12]])
def test_samples_are_positive_numbers(block: list[float]) -> None:
    row_of = row(case("fused", problem(128)), block_ms=[[block]])
    check_row(row_of)
    assert row_of["block_ms"] == [[block]]


@pytest.mark.parametrize("block", [[0.5, True], [0.5, "1"], [0.0], [1e13], [1.0, -1.0], None, 1.0])
def test_what_is_no_time_is_refused(block: object) -> None:
    with pytest.raises(ValueError, match=r"block_ms\[0\]\[0\].*: found .*, wanted"):
        check_row(row(case("fused", problem(128)), block_ms=[[block]]))


@pytest.mark.parametrize("reading", [True, "1", None, 1 << 63, [1]])
def test_readings_of_a_block_are_numbers_of_64_bits(reading: object) -> None:
    check_row(row(case("fused", problem(128)), conditions=[[{"wall_s": 0.5, "calls": 3}]]))
    with pytest.raises(ValueError, match=r"conditions\[0\]\[0\].calls: found .*, wanted"):
        check_row(
            row(case("fused", problem(128)), conditions=[[{"wall_s": 0.5, "calls": reading}]])
        )
