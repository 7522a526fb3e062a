"""reports/data/load.py: a tidy table with one row per planned case."""

import warnings
from math import nan
from pathlib import Path

import pandas as pd
import pytest

from attnbench.impls.problem import AXES
from attnbench.reports.data.columns import COLUMNS
from attnbench.reports.data.load import load
from tests.made_runs import case, grid, problem, quickstart, row, write_run
from tests.reports.rendering import rows_of


def test_missing_is_missing_and_never_zero(tmp_path: Path) -> None:
    frame = load(quickstart(tmp_path))
    failed = frame[frame["status"] != "ok"]
    measured = ["latency_ms", "latency_low_ms", "peak_bytes", "achieved_flops_per_s"]
    measured += ["error_ratio", "blocks", "samples", "contended_blocks"]
    assert failed[measured].isna().all(axis=None)
    of_a_gpu = ["wall_latency_ms", "hot_latency_ms", "graph_latency_ms", "launch_bound"]
    assert frame[of_a_gpu].isna().all(axis=None)
    zeros = ["contended_blocks", "throttled_blocks"]  # of a quiet machine
    zeros += [name for name, axis in AXES.items() if axis.earliest == 0 and axis.type is not bool]
    assert not (frame.select_dtypes("number").drop(columns=zeros) == 0).any().any()


def test_a_failed_case_has_no_speed_though_it_has_samples(tmp_path: Path) -> None:
    planned = case("fused", problem(128))
    wrong = row(planned) | {"status": "incorrect", "reason": "wrong"}
    run = write_run(tmp_path, [planned], [wrong])
    assert load(run)["latency_ms"].isna().all()


def test_a_single_block_has_a_latency_without_an_interval(tmp_path: Path) -> None:
    planned = case("fused", problem(128))
    run = write_run(tmp_path, [planned], [row(planned, block_ms=[[[1.0, 2.0, 3.0]]])])
    first = load(run).iloc[0]
    assert first["latency_ms"] == pytest.approx(2.0)
    assert pd.isna(first["latency_low_ms"])
    assert "one block" in first["latency_note"]


def test_the_four_latencies_of_a_gpu_are_side_by_side(tmp_path: Path) -> None:
    cases = [case("fused", problem(n, device="cuda")) for n in (128, 256)]
    quantities = {"block_ms": 1.2, "wall_block_ms": 1.5, "hot_block_ms": 1.1, "graph_block_ms": 1.0}
    samples = {name: [[[ms, ms], [ms]]] for name, ms in quantities.items()}
    rows = [
        row(cases[0], **samples, graph_reason=""),
        row(cases[1], **samples | {"graph_block_ms": None}, graph_reason="too long"),
    ]
    short, long = (found for _, found in load(write_run(tmp_path, cases, rows)).iterrows())
    names = [name.replace("block", "latency") for name in quantities]
    names[0] = "latency_ms"
    assert short[names].tolist() == pytest.approx(list(quantities.values()))
    assert short["launch_bound"]
    assert pd.isna(long["graph_latency_ms"])
    assert pd.isna(long["launch_bound"])
    assert long["graph_reason"] == "too long"


def test_page_faults_are_per_call_and_only_where_every_block_has_them(tmp_path: Path) -> None:
    cases = [case("fused", problem(n)) for n in (128, 256, 512, 1024)]
    many, few, none = ({"calls": n, "minor_faults": 10 * n} for n in (3, 1, 0))
    none |= {"calls": 4}
    conditions = [[[many, few], [none]], [[none]], [[many, {"calls": 3}]], None]
    rows = [
        row(planned, conditions=readings)
        for planned, readings in zip(cases, conditions, strict=True)
    ]
    found = load(write_run(tmp_path, cases, rows))["minor_faults_per_call"]
    assert found.tolist() == pytest.approx([5, 0, nan, nan], nan_ok=True)


def test_an_empty_plan_has_all_columns_of_the_right_kind(tmp_path: Path) -> None:
    empty = load(write_run(tmp_path / "empty", [], []))
    full = load(quickstart(tmp_path / "full", lengths=(128,)))
    assert empty.empty
    assert dict(empty.dtypes) == dict(full.dtypes)


def test_a_frame_of_many_probes_is_whole_and_takes_more_columns_without_a_warning(
    tmp_path: Path,
) -> None:
    """Columns that are put in one after the other make a frame of many blocks, which is slow."""
    planned = case("fused", problem(128))
    probed = {f"probe_{place}_ratio": place / 100 for place in range(100)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = load(write_run(tmp_path, [planned], [row(planned, **probed)]))
        frame["own"] = frame["latency_ms"] / frame["seq_len"]
    assert frame["probe_99_ratio"].tolist() == [0.99]
    untyped = [name for name, kind in frame.dtypes.items() if str(kind) == "object"]
    assert untyped == [name for name, one in COLUMNS.items() if one.dtype == "object"]


def test_columns_that_a_probe_adds_are_kept(tmp_path: Path) -> None:
    planned = case("fused", problem(128))
    probed = row(planned, energy_j=1.5, trace={"not": "a number"})
    frame = load(write_run(tmp_path, [planned], [probed]))
    assert frame["energy_j"].tolist() == [1.5]
    assert "trace" not in frame


@pytest.mark.parametrize(
    ("passes", "ratio"), [("forward", None), ("backward", 5 / 4), ("forward+backward", 7 / 6)]
)
def test_papers_count_a_fifth_product_in_the_backward_pass(
    tmp_path: Path, passes: str, ratio: float | None
) -> None:
    cases = grid(("naive",), (512,), passes=passes)
    (one,) = rows_of(write_run(tmp_path, cases, [row(one) for one in cases]))
    found = one["papers_flops_per_s"]
    if ratio is None:
        assert found is None
    else:
        assert found / one["achieved_flops_per_s"] == pytest.approx(ratio)
