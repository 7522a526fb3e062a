"""reports/subjects/devices.py: the spread between devices, and what is no such thing."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Block, Table, Text
from attnbench.reports.pages.report import open_report
from tests.reports.comparison.test_devices import LENGTHS, copies_run, gpu

TWO = (gpu(1), gpu(2, "node2"))


def blocks(run: Path) -> list[Block]:
    return list(next(one.blocks for one in open_report([run]).parts if one.name == "devices"))


def findings(run: Path) -> list[str]:
    return [one.text for one in blocks(run) if isinstance(one, Text) and one.kind == "finding"]


def test_copies_on_one_device_are_never_called_a_spread_between_devices(tmp_path: Path) -> None:
    run = copies_run(tmp_path, (gpu(1), gpu(1)), (1.0, 1.0))
    said = findings(run)
    assert not any("spread" in one for one in said)
    assert "how much devices differ is not known" in said[0]
    assert said[1].startswith("Measured again on GPU 00000001 on node1, cases took 0.995 times")
    assert not [one for one in open_report([run]).cards if one.name == "devices"]


def test_other_sections_have_one_row_of_each_case_and_the_table_of_all_rows_has_all(
    tmp_path: Path,
) -> None:
    report = open_report([copies_run(tmp_path, TWO, (1.0, 1.06))])
    parts = {part.name: part for part in report.parts}

    def rows_of(name: str) -> list[Any]:
        return [one for one in parts[name].blocks if isinstance(one, Table)]

    assert len(rows_of("rows")[0].rows) == 6 * len(LENGTHS)
    winners = next(one for one in rows_of("fastest") if one.title.startswith("Who wins where"))
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
    report = open_report([copies_run(tmp_path, where, (1.0, ratio))])
    (badge,) = (one for one in report.badges if one.label == "devices")
    assert badge.state == state
    assert text in badge.text
