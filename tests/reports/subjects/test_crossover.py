"""reports/subjects/crossover.py: from which N on one backend is faster than another."""

from pathlib import Path

import pytest

from attnbench.reports.data.row_groups import Row
from attnbench.reports.subjects import crossover as subject
from attnbench.reports.subjects._pairs import Crossover
from attnbench.reports.subjects.crossover import crossover
from tests.made_runs import case, inexact, problem, row, write_run
from tests.reports.rendering import rows_of, subject_of


def test_a_crossover_is_found_between_two_lengths(tmp_path: Path) -> None:
    rows = rows_of(inexact(tmp_path))
    found = crossover(rows, "linformer", "sdpa")
    assert (found.fails_at[-1], found.start) == (1024, 2048)
    assert text_of(crossover(rows, "rnn", "sdpa")) == "at no N up to 4 096"
    assert text_of(crossover(rows, "sdpa", "fused")) == "at every N from 256 to 4 096"
    assert crossover(rows, "linformer", "naive") is None


def text_of(found: Crossover | None) -> str:
    return found.text("slower").replace("\u202f", " ")


SLOWER, OPEN, FASTER = [2.0, 2.02], [0.5, 2.2], [0.5, 0.51]


def of_blocks(parent: Path, *at: list[float]) -> Crossover:
    """`b` against `a`, whose blocks take 1 ms, at N = 128, 256, ..."""
    blocks = {128 << place: given for place, given in enumerate(at)}
    pairs = [
        (case(name, problem(n)), blocks[n] if name == "b" else [1.0, 1.01])
        for n in blocks
        for name in ("a", "b")
    ]
    rows = [row(planned, block_ms=[[[value] for value in given * 4]]) for planned, given in pairs]
    return crossover(rows_of(write_run(parent, [planned for planned, _ in pairs], rows)), "b", "a")


def test_a_length_at_which_two_cannot_be_told_apart_counts_for_neither(tmp_path: Path) -> None:
    found = of_blocks(tmp_path, SLOWER, OPEN, FASTER)
    assert (found.fails_at[-1], found.start) == (128, 512)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ((FASTER, FASTER, OPEN), "only at N = 128 and 256"),
        ((FASTER, SLOWER), "only at N = 128"),
        ((SLOWER, OPEN), "at no N up to 256"),
        ((OPEN, SLOWER, FASTER, FASTER), "at N = 512 and longer (slower at 256)"),
        ((OPEN, SLOWER, FASTER), "at N = 512, the longest (slower at 256)"),
        ((OPEN, OPEN, FASTER), "at N = 512, the longest"),
        ((FASTER,), "at N = 128"),
    ],
)
def test_no_length_is_spoken_for_by_another_one(
    tmp_path: Path, at: tuple[list[float], ...], text: str
) -> None:
    assert text_of(of_blocks(tmp_path, *at)).startswith(text)


def findings_of(rows: list[Row]) -> list[str]:
    """What is said of each challenger of the only problem."""
    ((_, every),) = subject.challenged(rows)
    return subject.finding(every).replace("\u00a0", " ").replace("\u202f", " ").split("; ")


def test_a_tie_is_not_called_slower(tmp_path: Path) -> None:
    """With the same times at N = 256, and slower at every other."""
    rows = rows_of(inexact(tmp_path, backends=("sdpa", "rnn")))
    short = {row["backend"]: row for row in rows if row["seq_len"] == 256}
    short["rnn"]["block_ms"] = short["sdpa"]["block_ms"]
    assert findings_of(rows)[0] == "rnn is not clearly faster than sdpa up to N = 4 096"


def test_a_longest_n_that_did_not_run_leaves_a_recurrent_layer_inexact(tmp_path: Path) -> None:
    """Bytes are compared with exact attention only."""
    rows = rows_of(inexact(tmp_path, backends=("sdpa", "rnn")))
    unfinished = {"exactness": None, "latency_ms": None, "status": "interrupted"}
    next(row for row in rows if row["backend"] == "rnn" and row["seq_len"] == 4096).update(
        unfinished
    )
    assert not any("bytes" in text for text in findings_of(rows))


@pytest.mark.parametrize(
    ("backends", "drawn"),
    [
        (("fused", "sdpa", "linformer", "performer"), {"fused", "sdpa", "performer"}),
        (("sdpa", "linformer"), None),
    ],
)
def test_an_output_that_carries_no_information_has_no_line(
    tmp_path: Path, backends: tuple[str, ...], drawn: set[str] | None
) -> None:
    card = subject_of(
        subject, inexact(tmp_path, backends=backends, cosines={"linformer": 0.004})
    ).card
    if drawn is None:
        assert card is None
        return
    assert {series.backend for panel in card.picture.panels for series in panel.series} == drawn
    assert not any("linformer" in row[1] for row in card.picture.table.rows)
