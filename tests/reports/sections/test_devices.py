"""reports/sections/devices.py: the spread between devices, and what is no such thing."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Block, Table, Text
from attnbench.reports.pages.report import open_report
from attnbench.reports.sections import devices
from tests.reports.fake_copies import LENGTHS, copies_run, gpu
from tests.reports.fake_runs import quickstart

TWO = (gpu(1), gpu(2, "node2"))


def blocks(run: Path) -> list[Block]:
    read = [read_run(run)]
    return list(devices.render(frame(read), run_meta(read)))


def findings(run: Path) -> list[str]:
    return [one.text for one in blocks(run) if isinstance(one, Text) and one.kind == "finding"]


def table(run: Path, title: str) -> Table:
    (found,) = (one for one in blocks(run) if isinstance(one, Table) and title in one.title)
    return found


def test_the_spread_is_a_number_with_its_interval(tmp_path: Path) -> None:
    spread, said, *_ = findings(copies_run(tmp_path, TWO, (1.0, 1.06)))
    assert spread.startswith("Device-to-device spread: 5.47 % (4.66 to 6.30 %)")
    assert "GPU 00000002 on node2 takes 1.0" in said
    assert "over 6 groups of cases" in said


def test_every_case_stands_with_both_times_and_the_largest_difference_first(tmp_path: Path) -> None:
    run = copies_run(tmp_path, TWO, (1.0, 1.06))
    found = table(run, "case by case")
    assert len(found.rows) == 3 * len(LENGTHS)
    assert found.columns[2:4] == ("GPU 00000001 on node1", "GPU 00000002 on node2")
    ratios = [float(row[4].split()[0]) for row in found.rows]
    assert ratios == sorted(ratios, reverse=True)
    assert all(" to " in row[4] for row in found.rows)
    hosts = table(run, "Timed copies by device")
    assert [row[:2] for row in hosts.rows] == [
        ("GPU 00000001 on node1", "18"),
        ("GPU 00000002 on node2", "18"),
    ]


def test_copies_on_one_device_are_never_called_a_spread_between_devices(tmp_path: Path) -> None:
    run = copies_run(tmp_path, (gpu(1), gpu(1)), (1.0, 1.0))
    said = findings(run)
    assert not any("spread" in one for one in said)
    assert "how much devices differ is not known" in said[0]
    assert said[1].startswith("Measured again on GPU 00000001 on node1, cases took 0.995 times")
    assert not [one for one in open_report([run]).cards if one.name == "devices"]


def test_a_run_without_copies_has_no_data(tmp_path: Path) -> None:
    (only,) = blocks(quickstart(tmp_path, lengths=(128, 256)))
    assert isinstance(only, Text)
    assert only.kind == "note"
    assert "--replicate 2" in only.text


def test_other_sections_have_one_row_of_each_case_and_the_table_of_all_rows_has_all(
    tmp_path: Path,
) -> None:
    report = open_report([copies_run(tmp_path, TWO, (1.0, 1.06))])
    parts = {part.name: part for part in report.parts}

    def rows_of(name: str) -> list[Any]:
        return [one for one in parts[name].blocks if isinstance(one, Table)]

    assert len(rows_of("rows")[0].rows) == 6 * len(LENGTHS)
    winners = next(one for one in rows_of("summary") if one.title.startswith("Who wins where"))
    assert len(winners.rows) == len(LENGTHS)
    assert all("GPU" not in cell for row in winners.rows for cell in row)


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


def test_a_run_without_copies_has_no_such_badge(tmp_path: Path) -> None:
    report = open_report([quickstart(tmp_path, lengths=(128, 256))])
    assert "devices" not in [badge.label for badge in report.badges]
