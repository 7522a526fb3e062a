"""The cookbook's entries for other tools, executed as they stand where the tool is installed."""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.rows.run_store import point_latest
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
REFERENCE = ROOT / "results" / "reference" / "cpu-20261124-quickstart"
RUN = "20261124T203015Z-quickstart-6ce2bfb4"
ENTRIES = {
    re.findall(r"^import (\w+)$", code, re.M)[0]: code
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
}

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]  # theirs, of what they use


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(REFERENCE, tmp_path / "results" / RUN)
    point_latest(tmp_path / "results", RUN)
    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb"))
    return tmp_path


def executed(tool: str) -> dict[str, Any]:
    """What the entry's names are in the end."""
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed: pip install {tool}")
    known: dict[str, Any] = {}
    exec(compile(ENTRIES[tool], f"docs/cookbook.md, {tool}", "exec"), known)
    return known


def test_each_of_the_three_has_an_entry() -> None:
    assert sorted(ENTRIES) == ["duckdb", "mlflow", "wandb"]


def test_mlflow_has_every_measured_case(results: Path) -> None:
    known = executed("mlflow")
    (run,) = known["mlflow"].search_runs(experiment_names=["attention"], output_format="list")
    measured = known["frame"][known["frame"].status == "ok"]
    assert len(run.data.metrics) == 2 * len(measured)
    first = measured.iloc[0]
    assert run.data.metrics[f"{first.case}/latency_ms"] == first.latency_ms
    assert run.info.run_name == known["run"].path.name


def test_wandb_has_a_run_of_its_own_without_a_network(results: Path) -> None:
    executed("wandb")
    (logged,) = (results / "wandb").rglob("run-*.wandb")
    assert logged.stat().st_size > 0
    (table,) = (results / "wandb").rglob("cases_*.table.json")
    assert "fused-b1-n128" in table.read_text()


def test_duckdb_answers_over_frames_and_over_files(results: Path) -> None:
    known = executed("duckdb")
    lengths = [row[0] for row in known["fastest"].fetchall()]
    assert lengths == sorted({*known["cases"][known["cases"].status == "ok"].seq_len})
    ((_, count),) = known["rows"].fetchall()
    assert count == len((results / "results" / RUN / "rows.jsonl").read_text().splitlines())
