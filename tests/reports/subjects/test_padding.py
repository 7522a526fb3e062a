"""reports/subjects/padding.py: from which share of padding on packing is faster."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.subjects import padding
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import rows_of

BATCHES = {0.0: "4q384", 0.2: "q480_2q384_q288", 0.5: "q768_2q320_q128", 0.78: "q1408_q128"}
PACKED_MS = {0.0: 12.0, 0.2: 10.0, 0.5: 10.0, 0.78: 10.0}


def cases(padded_ms: dict[float, float], **axes: Any) -> list[Any]:
    """`sequence_loop` takes PACKED_MS; padding under a mask twice what it does without one."""
    found = []
    for share, lengths in BATCHES.items():
        of = problem(1536, lengths=lengths, causal=True, **axes)
        more = {"padding_ratio": share, "session": lengths}
        ms, bytes_ = padded_ms[share], int(4000 * (1 + share))
        found += [
            made("padded", of, 2 * ms, peak_bytes=2 * bytes_, **more),
            made("padded:maskless", of, ms, peak_bytes=bytes_, **more),
            made("sequence_loop", of, PACKED_MS[share], peak_bytes=1024, **more),
            made("sdpa", of, 50.0, peak_bytes=90_000, **more),
        ]
    return found


def test_the_fastest_of_each_kind_are_compared_at_every_share(tmp_path: Path) -> None:
    padded_ms = {0.0: 6.0, 0.2: 10.0, 0.5: 16.1, 0.78: 40.5}
    ((_, batches),) = padding.comparisons(rows_of(run_of(tmp_path, *cases(padded_ms))))
    assert [padding.share(one) for one in batches] == [0.0, 0.2, 0.5, 0.78]
    assert {one.row["backend"] for one in batches} == {"padded:maskless"}
    assert {one.base["backend"] for one in batches} == {"sequence_loop"}
    assert [one.time.value for one in batches] == pytest.approx([0.5, 1.0, 1.61, 4.05], rel=0.05)


def test_problems_that_differ_in_more_than_lengths_are_told_apart(tmp_path: Path) -> None:
    few, many = ({"d_model": 512, "heads": heads} for heads in (4, 8))
    run = run_of(tmp_path, *cases(PACKED_MS, **few), *cases(PACKED_MS, **many))
    found = padding.comparisons(rows_of(run))
    assert [group.label for group, _ in found] == ["h\u00a0=\u00a04", "h\u00a0=\u00a08"]
