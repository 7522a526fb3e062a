"""The formulas of torch's kernels for CUDA against every row that an H200 has left."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from attnbench.harness.cases.case import problem_of
from attnbench.impls.peak_formulas.flash import sdpa
from attnbench.impls.peak_formulas.sdpa_on_cuda import most_bytes, peak_bytes
from attnbench.impls.problem import Problem

ROOT = Path(__file__).parents[3]
CUDA = SimpleNamespace(type="cuda")
ROWS = [
    row
    for path in sorted(ROOT.glob("results/reference/h200-*/rows.jsonl"))
    for row in map(json.loads, path.read_text().splitlines())
    if row["backend"].split(":")[0] == "sdpa" and row.get("peak_bytes") is not None
]


def test_every_row_of_sdpa_on_an_h200_is_met_to_the_byte() -> None:
    assert len(ROWS) >= 43
    assert {row["kernel"] for row in ROWS} == {"flash", "efficient", "cudnn"}
    for row in ROWS:
        found = sdpa(problem_of(row), CUDA, 1, variant=row["kernel"])
        assert found == row["peak_bytes"], row["case"]


def test_what_sdpa_takes_by_itself_is_bounded() -> None:
    forward = [row for row in ROWS if row["passes"] == "forward" and row["mask"] == "none"]
    for row in forward:
        most = most_bytes("sdpa", problem_of(row))
        assert row["peak_bytes"] <= most, row["case"]
        if row["heads"] * row["seq_len"] >= 64 * 256:  # so many that keys are not split
            assert most <= 1.07 * row["peak_bytes"], row["case"]


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": "fp32"},
        {"d_k": 60, "d_v": 60},
        {"scope": "layer"},
        {"seq_len": 1},
        {"passes": "backward", "seq_len": 100, "kv_seq_len": 100},
    ],
)
def test_what_no_row_has_shown_has_no_bytes(other: dict[str, object]) -> None:
    """One query may split the keys, over as many SMs as there are."""
    known = Problem(batch=1, seq_len=4096, kv_seq_len=4096, d_model=512, heads=8, dtype="bf16")
    assert peak_bytes(known, "flash")
    assert peak_bytes(replace(known, **other), "flash") is None
