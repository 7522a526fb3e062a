"""reports/subjects/block.py: from which N on attention is more than half of a block."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from attnbench.reports.data.row_groups import Row
from attnbench.reports.subjects import block
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import rows_of

D = 128
LENGTHS = (64, 128, 512, 1024)


def layer_flops(n: int) -> int:
    return 8 * n * D * D + 4 * n * n * D


def block_run(parent: Path, scopes: tuple[str, ...] = ("layer", "block"), **changes: Any) -> Path:
    """fused: the layer takes as long as its FLOPs, so half of the block at N = 2 d_model. sdpa: the
    scores take no time, so a third at every N.
    """
    pairs = []
    for n in LENGTHS:
        rest = 16 * n * D * D
        for backend, layer in (("fused", layer_flops(n)), ("sdpa", 8 * n * D * D)):
            for scope in scopes:
                of = problem(n, d_model=D, heads=4, scope=scope)
                ms = (layer + (rest if scope == "block" else 0)) / 1e6
                flops = layer_flops(n) + (rest if scope == "block" else 0)
                peak = 100 * n if scope == "layer" else 200 * n
                pairs.append(made(backend, of, ms, work_flops=flops, peak_bytes=peak, **changes))
    return run_of(parent, *pairs, name="block", contrast=("scope",))


def shares(rows: list[Row]) -> dict[str, block.Shares]:
    ((_, found),) = block.shares(rows)
    return {some[0].backend: some for some in found}


def test_without_an_interval_nothing_is_certain(tmp_path: Path) -> None:
    rows = rows_of(block_run(tmp_path, session=None))
    for row in rows:
        row["latency_low_ms"] = row["latency_high_ms"] = None
        row["block_ms"] = [row["block_ms"][0][:1]]
        row["session"] = None
    fused = shares(rows)["fused"]
    assert block.half(fused).start is None


def test_disturbed_times_decide_nothing(tmp_path: Path) -> None:
    rows = rows_of(block_run(tmp_path))
    for row in rows:
        row["contended_blocks"], row["blocks"] = 8, 8
    fused = block.half(shares(rows)["fused"])
    assert (fused.start, fused.fails_at) == (None, ())


def test_no_interval_of_a_share_ends_above_the_whole(tmp_path: Path) -> None:
    last = shares(rows_of(block_run(tmp_path)))["fused"][-1]
    wide = block.of_time(last._replace(time=replace(last.time, low=0.2, high=900.0)))
    assert (wide.low, wide.high) == (0.2, 1)
