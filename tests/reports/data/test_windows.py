"""reports/data/load.py and read.py: means over the windows of a row; broken windows are refused."""

import pytest

from attnbench.reports.data.load import load
from attnbench.reports.data.read import BadRun, read_run
from tests.made_runs import case, problem, row, write_run
from tests.reports.subjects.test_utilization import with_utilization

COMPLETE = {"way": "eager", "process": 0, "window_s": 2.0, "calls": 1000}
BROKEN = [
    ({"windows": [3]}, "windows[0]: found 3"),
    ({"windows": [{**COMPLETE, "calls": "9"}]}, "windows[0].calls: found '9'"),
    (
        {"windows": [{**COMPLETE, "window_s": 0}]},
        "windows[0].window_s: found 0",
    ),
    ({"windows": [{**COMPLETE, "x_ratio": [1]}]}, "windows[0].x_ratio: found [1]"),
    ({"windows": [{"way": "eager"}]}, "windows[0].window_s: found nothing"),
    ({"missing": {"x": 3}}, "missing.x: found 3"),
    ({"tables": [3]}, "tables: found [3]"),
]


def test_the_frame_has_means_over_windows_and_the_energy_of_a_call_and_a_token(tmp_path):
    frame = load(with_utilization(tmp_path)).set_index("backend")
    assert frame.loc["naive", "utilization_tier"] == "gpm"
    assert frame.loc["naive", "sm_active_ratio"] == pytest.approx(0.2)
    assert frame.loc["naive", "energy_per_call_j"] == pytest.approx(0.9)
    assert frame.loc["naive", "energy_per_token_j"] == pytest.approx(0.9 / 1024)
    assert frame.loc["naive", "hmma_ratio"] != frame.loc["naive", "hmma_ratio"]  # NaN, and not 0
    assert "calls" not in frame.columns


def test_rows_without_windows_have_no_utilization(tmp_path):
    frame = load(
        write_run(tmp_path, [case("fused", problem(64))], [row(case("fused", problem(64)))])
    )
    assert frame["utilization_tier"].isna().all()
    assert frame["energy_per_call_j"].isna().all()


@pytest.mark.parametrize(("changes", "message"), BROKEN)
def test_broken_windows_are_named(tmp_path, changes, message):
    with pytest.raises(BadRun, match=r"rows\.jsonl:1: ") as refusal:
        read_run(with_utilization(tmp_path, **changes))
    assert message in str(refusal.value)
