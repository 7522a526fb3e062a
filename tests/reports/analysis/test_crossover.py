"""reports/analysis/crossover.py: from which N on one backend is faster than another."""

from pathlib import Path

import pytest

from attnbench.reports.analysis.crossover import crossover
from tests.reports.fake_inexact import inexact
from tests.reports.fake_runs import case, problem, row, write_run
from tests.reports.rendering import rows_of


def test_a_crossover_is_found_between_two_lengths_and_placed_by_interpolation(
    tmp_path: Path,
) -> None:
    rows = rows_of(inexact(tmp_path))
    found = crossover(rows, "linformer", "sdpa")
    assert found is not None
    assert (found.slower_to, found.faster_from) == (1024, 2048)
    assert found.even_at == pytest.approx(1536, rel=0.05)
    assert found.text == "from N = 2k on (slower up to 1k, even at about 1500)"
    never, always = crossover(rows, "rnn", "sdpa"), crossover(rows, "sdpa", "fused")
    assert never is not None
    assert always is not None
    assert (never.faster_from, never.text) == (None, "not up to N = 4k")
    assert (always.faster_from, always.text) == (256, "at every N from 256 on")
    assert crossover(rows, "linformer", "naive") is None


def test_a_length_at_which_two_cannot_be_told_apart_counts_for_neither(tmp_path: Path) -> None:
    blocks = {128: [2.0, 2.02], 256: [0.5, 2.2], 512: [0.5, 0.51]}
    pairs = [
        (case(name, problem(n)), blocks[n] if name == "b" else [1.0, 1.01])
        for n in blocks
        for name in ("a", "b")
    ]
    rows = [row(planned, block_ms=[[[value] for value in given * 4]]) for planned, given in pairs]
    found = crossover(
        rows_of(write_run(tmp_path, [planned for planned, _ in pairs], rows)), "b", "a"
    )
    assert found is not None
    assert (found.slower_to, found.faster_from) == (128, 512)
