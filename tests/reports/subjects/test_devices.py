"""reports/subjects/devices.py: the spread between devices, and what is no such thing."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Block, Text
from attnbench.reports.pages.report import open_report
from attnbench.reports.subjects import devices, name_of
from attnbench.reports.subjects.trust import checks
from tests.reports.comparison.test_devices import LENGTHS, copies_run, gpu
from tests.reports.rendering import blocks_of, rows_and_meta, subject_of, tables_of

TWO = (gpu(1), gpu(2, "node2"))


def blocks(run: Path) -> list[Block]:
    return blocks_of(devices, run)


def findings(run: Path) -> list[str]:
    return [one.text for one in blocks(run) if isinstance(one, Text) and one.kind == "finding"]


def test_copies_on_one_device_are_never_called_a_spread_between_devices(tmp_path: Path) -> None:
    run = copies_run(tmp_path, (gpu(1), gpu(1)), (1.0, 1.0))
    said = findings(run)
    assert not any("spread" in one for one in said)
    assert "how much devices differ is not known" in said[0]
    assert said[1].startswith("Measured again on GPU 00000001 on node1, cases took 0.995 times")
    assert subject_of(devices, run).card is None


def test_other_sections_have_one_row_of_each_case_and_the_table_of_all_rows_has_all(
    tmp_path: Path,
) -> None:
    report = open_report([copies_run(tmp_path, TWO, (1.0, 1.06))])
    (every,) = (one for one in report.subjects if name_of(one) == "rows")
    assert len(tables_of(list(report.part(every).blocks))[0].rows) == 6 * len(LENGTHS)
    (time,) = (one for one in report.cards if one.name == "fastest")
    winners = time.picture.table
    assert len(winners.rows) == len(LENGTHS)
    assert all("GPU" not in cell for row in winners.texts for cell in row)


@pytest.mark.parametrize(
    ("where", "ratio", "state", "text"),
    [
        (TWO, 1.1, "caution", "differ by more than"),
        (TWO, 1.0, "good", "agree within"),
        ((gpu(1), gpu(1)), 1.0, "unknown", "is not known"),
    ],
)
def test_the_badge_is_good_only_if_two_devices_agree(
    tmp_path: Path, where: tuple[dict[str, Any], ...], ratio: float, state: str, text: str
) -> None:
    run = copies_run(tmp_path, where, (1.0, ratio))
    found, said = checks(*rows_and_meta(run))["devices"]
    assert found == state
    assert text in said
