"""reports/subjects/chunks.py: a prefill in chunks beside one in a single call."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.subjects import chunks
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import rows_of, subject_of

N, SIZE = 1024, 256


def prefill(backend: str, chunk_ms: dict[int, float], whole_ms: float = 100.0) -> list[Any]:
    found = [made(backend, problem(N, causal=True, causal_align="top_left"), whole_ms)]
    found[0][1]["peak_bytes"] = 4096 * 1024
    for keys, ms in chunk_ms.items():
        corner = "top_left" if keys == SIZE else "bottom_right"
        of = problem(SIZE, kv_seq_len=keys, causal=True, causal_align=corner)
        found.append(made(backend, of, ms, peak_bytes=1024 * keys))
    return found


EVERY = {256: 10.0, 512: 20.0, 768: 40.0, 1024: 50.0}


def test_all_chunks_together_are_over_the_single_call(tmp_path: Path) -> None:
    run = run_of(tmp_path, *prefill("sdpa", EVERY), *prefill("fused", EVERY, whole_ms=60.0))
    sdpa, fused = chunks.prefills(rows_of(run))
    assert (sdpa.row["seq_len"], sdpa.row["peak_bytes"]) == (SIZE, 1024 * 1024)
    assert sdpa.row["latency_ms"] == pytest.approx(120, rel=0.03)
    assert sdpa.time.value == pytest.approx(1.2, rel=0.03)
    assert sdpa.time.low < 1.2 < sdpa.time.high
    assert fused.time.value == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("missing", EVERY)
def test_a_chunk_that_was_not_timed_leaves_no_prefill(missing: int, tmp_path: Path) -> None:
    some = {keys: ms for keys, ms in EVERY.items() if keys != missing}
    run = run_of(tmp_path, *prefill("sdpa", some))
    assert chunks.prefills(rows_of(run)) == []
    assert subject_of(chunks, run).card is None


def test_a_triangle_from_the_other_corner_is_no_chunk(tmp_path: Path) -> None:
    found = prefill("sdpa", EVERY)
    for planned, row in found[2:]:
        planned["causal_align"] = row["causal_align"] = "top_left"
    assert chunks.prefills(rows_of(run_of(tmp_path, *found))) == []
