"""The runs that are kept can be read and reported without measuring anything."""

import json
from html import unescape

import pytest

import attnbench
from attnbench.reports.pages.html import render
from attnbench.reports.pages.report import open_report
from tests.conftest import ROOT

RUNS = sorted(path.parent for path in (ROOT / "results" / "reference").glob("*/run.json"))


def test_there_is_a_cpu_run():
    assert any(path.name.startswith("cpu-") for path in RUNS)


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.name)
def test_a_kept_run_has_every_case_and_a_page(run):
    frame = attnbench.load(run)
    assert len(frame) == len(json.loads((run / "run.json").read_text())["cases"])
    ok = frame[frame.status == "ok"]
    measured = json.loads((run / "run.json").read_text())["scenario"]["measure"]
    assert ok.latency_ms.gt(0).all() if "latency" in measured else ok.peak_bytes.gt(0).all()
    page = unescape(render(open_report([run])))
    assert json.loads((run / "run.json").read_text())["scenario"]["question"] in page
    assert all(kernel in page for kernel in frame.kernel.dropna())


def test_the_kept_quickstart_shows_wall_and_heads():
    frame = attnbench.load(next(path for path in RUNS if path.name.endswith("-quickstart")))
    assert {"ok", "oom"} <= set(frame.status)
    assert set(frame.heads) == {1, 8}
    predicted = frame[(frame.status == "ok") & frame.backend.isin(["naive", "fused"])]
    assert (predicted.peak_bytes - predicted.predicted_peak_bytes).abs().max() <= 16
