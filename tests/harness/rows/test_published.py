"""Numbers that others published, read as runs."""

import json
import shutil
from pathlib import Path

import pytest

import attnbench
from attnbench.harness.rows.names import SHIPPED, find
from attnbench.harness.rows.run_files import BadRun, read_meta, read_rows
from attnbench.reports.comparison.compare import compare_runs
from attnbench.reports.pages import terminal
from attnbench.reports.pages.report import open_report

ROOT = Path(__file__).resolve().parents[3]
NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/run.json"))
REFERENCE = ROOT / "results" / "reference"


def test_all_that_is_published_is_a_run() -> None:
    folders = {path.name for path in (ROOT / "results" / "published").iterdir() if path.is_dir()}
    assert folders == {*NAMES}
    assert len(NAMES) == 13


@pytest.mark.parametrize("name", NAMES)
def test_every_folder_reads_and_says_whose_it_is(name: str, tmp_path: Path) -> None:
    run = find(f"published/{name}", tmp_path)
    source = read_meta(run)["source"]
    assert all(source[field] for field in ("title", "cited", "url", "licence", "date"))
    frame = attnbench.load(run)
    assert len(frame) == len(read_meta(run)["cases"]) == len(list(read_rows(run)))
    assert frame["case"].is_unique
    timed = frame[frame["latency_ms"].notna()]
    assert len(timed)
    assert set(timed["latency_note"]) == {"published: one number"}
    assert timed["latency_low_ms"].isna().all()
    assert timed["samples"].eq(1).all()
    assert frame["device_name"].str.startswith("NVIDIA ").all()
    assert frame.loc[frame["status"] != "ok", "latency_ms"].isna().all()
    text = " ".join(str(one) for one in terminal.render_briefly(open_report([run])))
    assert source["url"] in text
    assert "Trust" not in text
    assert "SM utilization" not in text


def test_numbers_are_those_that_were_printed(tmp_path: Path) -> None:
    cudnn = attnbench.load(find("published/cudnn-h200", tmp_path)).set_index("case")
    case = "sdpa:cudnn-b2-n32768-d8192-h64-hkv8-bf16-causal-forward-core"
    assert cudnn.loc[case, "latency_ms"] == pytest.approx(56.813)  # line 2 of the original
    assert cudnn.loc[case, "achieved_flops_per_s"] == pytest.approx(619e12, rel=1e-3)
    paper = attnbench.load(find("published/flashattention-a100", tmp_path)).set_index("case")
    whole = "b16-n2048-d512-h8-fp16-forward+backward-core"
    flash = paper.loc[f"sdpa:flash-{whole}"]
    whole_bytes = flash["needed_bytes"] + flash["input_bytes"]
    assert whole_bytes == 418 * 2**20  # Table 21
    assert paper.loc[f"fused-{whole.replace('2048', '16384')}", "status"] == "oom"


def test_a_run_of_ours_is_compared_with_one_and_nothing_is_confirmed(tmp_path: Path) -> None:
    ours = REFERENCE / "h200-20261126-published"
    found = compare_runs(ours, find("published/cudnn-h200", tmp_path))
    both = [one for one in found.of("latency") if one.base and one.new]
    assert len(both) == 4
    ratios = [one.ratio.value for one in both]
    assert len(ratios) == 4
    assert all(0.9 < ratio < 1.1 for ratio in ratios)
    assert not found.differences
    other = compare_runs(ours, find("published/cudnn-a100", tmp_path))  # another device
    assert other.verdicts


def test_what_is_not_published_is_refused_with_what_is_near(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such published run; did you mean cudnn-h200"):
        find("published/cudnn-h300", tmp_path)


@pytest.mark.parametrize("field", ["attnbench", "started_utc", "seed"])
def test_a_null_without_a_source_is_refused(field: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SHIPPED / "cudnn-h200", run)
    meta = json.loads((run / "run.json").read_text())
    del meta["source"]
    known = {"attnbench": "0.2.0", "started_utc": "2026-11-26T20:13:13+00:00", "seed": 0}
    (run / "run.json").write_text(json.dumps({**meta, **known}))
    assert read_meta(run)["run"] == "cudnn-h200"
    (run / "run.json").write_text(json.dumps({**meta, **known, field: None}))
    with pytest.raises(BadRun, match=f"{field}: found null, wanted a value"):
        read_meta(run)
