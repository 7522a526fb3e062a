"""How long many rows take to analyse, to compare and to merge, and how much memory, against their
targets. `make bench` runs these.
"""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from attnbench.harness.rows.run_files import read_rows
from tests.bench.conftest import child
from tests.fakes.shard_runs import scenario, write_shard
from tests.made_runs import case, fake_run, problem, row, write_run

ROWS = 20_000
BACKENDS = ("naive", "fused", "sdpa", "sdpa:math", "triton", "sparse_local", "linformer")
MOST_S, MOST_BYTES = 10.0, 10**9
SHARDS, MOST_MERGING_BYTES = 40, 150 << 20
ANALYSE = """
import json, sys
from attnbench.reports import growth_fit
from attnbench.reports.claims.claim import outcomes
from attnbench.reports.claims.ledger import CLAIMS
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.run_meta import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.subjects import energy, roofline
run = read_run(sys.argv[1])
rows, meta = rows_of([run]), run_meta([run])
fits = sum(not one.reason for _, members in growth_fit.growths(rows) for one in members)
roofline.places(rows, meta)
energy.energy_costs(rows, meta)
claims = [one.verdict for one in outcomes(CLAIMS, rows)]
print(json.dumps({"rows": len(rows), "fits": fits, "claims": len(claims)}))
"""


def run_of_many(folder: Path, lengths: range) -> Path:
    """1 680 cases for each length."""
    sizes = product((1, 2), (256, 512, 1024, 2048, 4096), ("fp32", "bf16"), ("core", "layer"))
    shapes = (
        problem(2**n, h, batch=batch, d_model=d, dtype=dtype, scope=scope)
        for batch, d, dtype, scope in sizes
        for h in (1, 2, 4, 8, 16, 32)
        for n in lengths
    )
    cases = [case(backend, shape) for shape in shapes for backend in BACKENDS]
    return write_run(folder, cases, [row(planned) for planned in cases])


def over_many_lengths(folder: Path) -> Path:
    """10 000 cases of one problem over N, in five processes of four blocks."""
    backends = ("naive", "fused", "sdpa", "sdpa:math")
    cases = [case(one, problem(n)) for n in range(1, 2501) for one in backends]
    return fake_run(folder, 1, planned=cases)


@pytest.mark.parametrize(("words", "most_s"), [((), 15.0), (("--format", "html"), 30.0)])
@pytest.mark.parametrize(
    "make", [lambda folder: run_of_many(folder, range(7, 13)), over_many_lengths]
)
def test_ten_thousand_cases_are_read_in_seconds(
    tmp_path: Path, make: Callable[[Path], Path], words: tuple[str, ...], most_s: float
) -> None:
    run = make(tmp_path)
    _, cpu_s, peak_bytes = child("attnbench", "show", run, *words)
    print(f"{cpu_s:.1f} s, {peak_bytes:,} bytes")
    assert cpu_s <= most_s
    assert peak_bytes <= MOST_BYTES


def test_rows_are_loaded_and_analysed_in_10_s_and_1_gb(tmp_path: Path) -> None:
    run = run_of_many(tmp_path, range(7, 16))
    (program := tmp_path / "analyse.py").write_text(ANALYSE)
    said, cpu_s, peak_bytes = child(program, run)
    found = json.loads(said)
    print(f"{found}, {cpu_s:.1f} s, {peak_bytes:,} bytes")
    assert found["rows"] == 9 * 1680
    assert found["claims"] > 0
    assert found["fits"] == 1680
    assert peak_bytes <= MOST_BYTES
    assert cpu_s <= MOST_S


@pytest.mark.parametrize("shape", ["table", "json"])
def test_two_runs_are_compared_within_10_s_and_1_gb(tmp_path: Path, shape: str) -> None:
    backends = ("naive", "fused", "sdpa", "sdpa:math")
    cases = [case(one, problem(n)) for n in range(1, ROWS // 4 + 1) for one in backends]
    base, new = (fake_run(tmp_path, seed, planned=cases) for seed in (1, 2))
    compare = ("attnbench", "compare", base, new, "--format", shape)
    text, cpu_s, peak_bytes = child(*compare)
    print(f"{cpu_s:.1f} s, {peak_bytes:,} bytes")
    if shape == "table":
        assert f"of {ROWS} cases" in text
    else:
        assert len(json.loads(text)["cases"]) == 2 * ROWS
    assert cpu_s <= MOST_S
    assert peak_bytes <= MOST_BYTES


def test_forty_shards_of_four_thousand_cases_take_little_memory(tmp_path: Path) -> None:
    lengths = [64 * number for number in range(1, 1001)]
    of = scenario(
        grid={"seq_len": lengths, "d_model": 64, "heads": [1, 2]},
        limits={"memory_gib": 0.5, "max_cases": 4000},
    )
    runs = [write_shard(tmp_path, f"{number}/{SHARDS}", of=of) for number in range(1, SHARDS + 1)]
    _, _, peak_bytes = child("attnbench", "merge", *runs, "-o", tmp_path / "whole")
    assert sum(1 for _ in read_rows(tmp_path / "whole")) == 4000
    assert peak_bytes <= MOST_MERGING_BYTES
