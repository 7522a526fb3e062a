"""A run of a scenario file: one row for each case, in a folder of its own."""

from pathlib import Path

from tests.contract.conftest import rows


def test_every_case_of_a_small_scenario_is_measured_once(finished_run: Path) -> None:
    found = rows(finished_run)
    assert len(found) == 8
    assert len({row["case"] for row in found}) == 8
    assert {row["status"] for row in found} == {"ok"}
