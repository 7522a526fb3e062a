"""Numbers of a row's line: none that a float cannot hold, however it is written."""

import pytest

from attnbench.harness.rows.run_files import parsed_row

LINE = '{"schema": 1, "kind": "later", "case": "node000", "x": %s}'


@pytest.mark.parametrize(
    "number",
    [
        *("1e999", "1E400", "-1e309", "1e+309", "1.8E+308", "1e0309", "1.0e00309"),
        *("9" * 310 + ".0", "9" * 250 + "e99", "9" * 250 + ".5E+98"),
    ],
)
def test_a_number_beyond_the_largest_float_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="is not JSON; a missing value is null"):
        parsed_row((LINE % number).encode())


@pytest.mark.parametrize(
    "number",
    [
        *("1.5", "-2.5e-3", "1e99", "1E+99", "1e308", "5e-324", "1e-999", "0.1234567890123456789"),
        *("9" * 199 + "e99", "0." + "0" * 400 + "1"),
    ],
)
def test_any_other_number_is_read_as_it_is_written(number: str) -> None:
    assert parsed_row((LINE % number).encode())["x"] == float(number)
