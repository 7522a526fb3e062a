"""reports/pages/run_titles.py: the shortest name that tells a run from the others."""

import pytest

from attnbench.reports.data.row_groups import varying_axes
from attnbench.reports.pages.run_titles import run_titles

FIRST = {
    "run": "20261124T093000Z-wall-aaaa1111",
    "scenario": {"name": "wall"},
    "device": "cpu",
    "environment": {"cpu": "AMD EPYC", "device_name": "NVIDIA H200 141GB"},
    "started_utc": "2026-11-24T09:30:00Z",
}


@pytest.mark.parametrize(
    ("others", "titles"),
    [
        ([], ["wall"]),
        ([{"scenario": {"name": "heads"}}], ["wall", "heads"]),
        ([{"device": "cuda"}], ["AMD EPYC", "H200"]),
        ([{"started_utc": "2026-11-28T09:30:00Z"}], ["24\u00a0Nov", "28\u00a0Nov"]),
        ([{"started_utc": "2026-11-24T10:30:00Z"}], ["09:30:00", "10:30:00"]),
        (
            [{"started_utc": f"2026-11-{day}"} for day in ("24T10:30:00Z", "28T10:30:00Z")],
            ["24\u00a0Nov 09:30:00", "24\u00a0Nov 10:30:00", "28\u00a0Nov"],
        ),
        ([{"run": "20261124T093000Z-wall-bbbb2222"}], ["aaaa1111", "bbbb2222"]),
        ([{}], ["run 1", "run 2"]),
        (
            [{"device": "cuda"}, {"scenario": {"name": "heads"}, "device": "cuda"}],
            ["wall AMD EPYC", "wall H200", "heads"],
        ),
        (
            [{"device": "cuda"}, {"device": "cuda", "started_utc": "2026-11-28T09:30:00Z"}],
            ["AMD EPYC", "H200 24\u00a0Nov", "H200 28\u00a0Nov"],
        ),
    ],
)
def test_a_run_has_the_shortest_name_that_tells_it_from_the_others(others, titles):
    meta = {str(place): FIRST | changes for place, changes in enumerate([{}, *others])}
    assert [*run_titles(meta).values()] == titles


@pytest.mark.parametrize(
    ("second", "third", "axes"),
    [
        ({"device": "cuda", "dtype": "bf16"}, {"device": "cuda", "dtype": "bf16"}, ["run"]),
        ({"dtype": "bf16"}, {"dtype": "fp32"}, ["run", "dtype"]),
        ({"heads": 8}, {"heads": 8}, ["run", "heads"]),
    ],
)
def test_what_the_header_says_of_a_run_is_not_said_before_every_problem(second, third, axes):
    one = {"run": "a", "device": "cpu", "dtype": "fp32", "heads": 1}
    assert varying_axes([one, one | {"run": "b"} | second, one | {"run": "b"} | third]) == axes
    assert varying_axes([one, one | second]) == [*second]  # of one run all is said
