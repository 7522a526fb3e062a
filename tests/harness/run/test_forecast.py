"""harness/run/forecast.py: how long a run takes, against stored runs and by its limits."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.cases.case import Case, Wall, case_of, study_of
from attnbench.harness.cases.expected_time import END_S, Forecast
from attnbench.harness.machine.load import Load
from attnbench.harness.rows.plans import START_AHEAD_S
from attnbench.harness.run.forecast import forecast, forecast_of
from attnbench.harness.run.worker_pool import RunConfig
from attnbench.harness.scenario import Plan
from attnbench.harness.scenario.estimate import Foreseen, Pace
from attnbench.impls.problem import Problem
from tests.conftest import ROOT
from tests.made_runs import read_rows

STORED = sorted((ROOT / "results" / "reference").glob("cpu-*-quickstart"))
PACE = Pace(flops_per_s={"fp32": 1.6e11, "bf16": 2e10}, bytes_per_s=1.2e10, step_s=1e-5)
"""Of two cores of an AMD EPYC, on which the stored runs were measured."""


def config(**changes: Any) -> RunConfig:
    usual: dict[str, Any] = {
        "device": "cpu",
        "plan": Plan.model_validate("quick"),
        "measure": ("latency", "memory"),
        "timeout_s": 60.0,
        "budget_bytes": 1 << 32,
        "seed": 0,
    }
    return RunConfig(**(usual | changes))


def case(seq_len: int = 1024, backend: str = "fused", **axes: Any) -> Case:
    return Case(
        backend=backend, problem=Problem(batch=1, seq_len=seq_len, d_model=512, heads=8, **axes)
    )


def of(*cases: Case, **changes: Any) -> Forecast:
    return forecast(cases, config(**changes), PACE, {}, {})


def real_s(path: Path, meta: dict[str, Any], rows: list[dict[str, Any]]) -> float:
    """From run.json to the end of the last case."""
    begun = datetime.fromisoformat(meta["started_utc"]).timestamp()
    return (
        max(
            datetime.fromisoformat(row["started_utc"]).timestamp() + row["spent_s"]
            for row in rows
            if row["started_utc"]
        )
        - begun
    )


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_the_forecast_of_quickstart_is_within_a_factor_of_2(path: Path) -> None:
    meta = json.loads((path / "run.json").read_text())
    rows = read_rows(path)
    foreseen = {
        row["case"]: Foreseen(
            refused=row["status"] in ("unsupported", "unavailable", "predicted_oom"),
            peak_bytes=row["predicted_peak_bytes"],
        )
        for row in rows
        if row["kind"] == "latency"
    }
    planned = [*map(case_of, meta["cases"]), *map(study_of, meta.get("studies", ()))]
    found = forecast(planned, RunConfig.of(meta), PACE, foreseen, {})
    real = real_s(path, meta, rows)
    assert real / 2 <= found.about_s <= 2 * real


def test_more_processes_longer_budgets_and_longer_calls_take_longer() -> None:
    short = of(case(256)).about_s
    assert of(case(4096)).about_s > short
    assert of(case(256), plan=Plan.model_validate("rigorous")).about_s > 3 * short
    hasty = Plan.model_validate({"like": "quick", "budget_s": 0.1})
    assert of(case(4096), plan=hasty).about_s < of(case(4096)).about_s


def test_a_case_whose_calls_exceed_the_limit_is_announced() -> None:
    short, long = case(256), case(65536)
    found = of(short, long, timeout_s=5.0)
    (remark,) = found.remarks
    assert long.id in remark
    assert short.id not in remark
    assert "more than the limit of 5 s" in remark
    assert not list(of(short).remarks)


def test_walls_and_backends_that_are_gone_have_a_time() -> None:
    wall = Wall(backend="fused", problem=Problem(batch=1, seq_len=1, d_model=512, heads=8))
    starts_s = START_AHEAD_S * (config().plan.processes - 1)
    assert of(case(256, backend="no_such_backend")).about_s < starts_s + END_S + 0.1
    known = forecast([wall], config(), PACE, {}, {wall.id: 4096})
    unknown = forecast([wall], config(), PACE, {}, {})
    assert 0 < known.about_s < unknown.about_s
    limited = forecast([wall], config(wall_budget_s=5.0), PACE, {}, {})
    assert limited.about_s <= 5.0 + END_S


def test_every_block_of_every_process_is_a_step_and_a_refused_case_has_one() -> None:
    plan = Plan.model_validate("quick")
    found = of(case(256), case(256, backend="no_such_backend")).expected
    assert [one.steps for one in found.values()] == [1 + plan.processes * plan.max_blocks, 1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "times are told apart only from a factor of about 1.5 on, memory is exact"),
        ({"plan": Plan(processes=1)}, "from a factor of about 4 on"),
        ({"measure": ("memory",)}, "it takes longer, memory is exact"),
        ({"device": "cuda"}, ""),
    ],
)
def test_what_other_work_means_for_the_run_is_said_before_it(
    changes: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = {"pace": asdict(PACE), "cases": {}, "walls": {}}
    busy = forecast_of([case(256)], config(**changes), found, Load(1.62, 2))
    text = " ".join(busy.remarks)
    assert says in text
    assert ("other programs use 1.6 of its 2 cores" in text) == bool(says)
    assert ("--threads 1" in text) == ("times" in text)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one = forecast_of([case(256)], config(**changes), found, Load(1.62, 2))
    assert "--threads" not in " ".join(one.remarks)
    idle = forecast_of([case(256)], config(**changes), found)
    assert not list(idle.remarks)
