"""reports/data/noise_floor.py: which noise counts, and what is assumed by kind of device."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.harness.rows.run_store import point_latest
from attnbench.reports.data.noise_floor import process_noise
from attnbench.reports.data.run_meta import read_run
from tests.made_runs import CPU_NAME, PLANNED, fake_run, floor_file, timed, write_run
from tests.reports.rendering import rows_of

FACTS = {"cuda": {"device_name": "Imaginary GPU"}, "cpu": {"cpu": CPU_NAME}}


def noise_of(parent: Path, device: str, processes: int) -> tuple[str, float]:
    rows = [timed(one, 1.0, Random(5), processes=processes) for one in PLANNED]
    facts: dict[str, Any] = {"device": device, "environment": FACTS[device]}
    run = read_run(write_run(parent, PLANNED, rows, name=f"{device}-{processes}", **facts))
    found, _ = process_noise([run], run)
    return found.source, found.spread.ratio


@pytest.mark.parametrize(("device", "assumed"), [("cuda", 0.06), ("cpu", 0.3)])
def test_the_runs_own_processes_count_before_a_self_check_and_that_before_what_is_assumed(
    tmp_path: Path, device: str, assumed: float
) -> None:
    assert noise_of(tmp_path / "none", device, 1) == ("assumed", pytest.approx(assumed))
    checked = tmp_path / "checked"
    checked.mkdir()
    other = "cpu" if device == "cuda" else "cuda"
    floor_file(checked, device=other, environment=FACTS[other])
    assert noise_of(checked, device, 1)[0] == "assumed", "the check is of another device"
    floor_file(checked, device=device, environment=FACTS[device], run_noise_ratio=0.17)
    assert noise_of(checked, device, 2)[0] == "selfcheck", "two processes tell too little"
    source, ratio = noise_of(checked, device, 3)
    assert source == "rows"
    assert 0.02 < ratio < 0.15, "processes that differ by 2 %"


def test_three_runs_of_a_scenario_say_how_far_a_latency_reaches(tmp_path: Path) -> None:
    """As noise of a comparison they do not count: one may be of other code."""
    found = []
    for seed in (1, 2, 3):
        run = fake_run(tmp_path, seed)
        meta = json.loads((run / "run.json").read_text()) | {"scenario": {"name": "one"}}
        (run / "run.json").write_text(json.dumps(meta))
        point_latest(tmp_path, run.name)  # a link is no further run
        found.append(rows_of(run)[0])
    assert [row["latency_reach"] == "between runs" for row in found] == [False, False, True]
    assert found[2]["latency_low_ms"] < found[2]["latency_run_low_ms"]
    assert found[2]["between_runs_ratio"] is None
