"""reports/analysis/speed.py: a winner must beat every other backend by more than noise."""

import re
from pathlib import Path

import pytest

from attnbench.reports.analysis import speed
from attnbench.reports.analysis.winner_map import winner_map
from attnbench.reports.data.row_groups import groups
from tests.reports.fake_inexact import inexact
from tests.reports.fake_runs import case, grid, problem, row, write_run
from tests.reports.rendering import page_of, rows_of, rows_with_statuses, summary_of, text_of


def test_a_tie_has_no_winner(tmp_path: Path) -> None:
    cases = [case(backend, problem(128)) for backend in ("fused", "sdpa")]
    blocks = ([[[1.0], [1.2], [0.9]]], [[[1.1], [1.1], [1.0]]])
    rows = rows_of(
        write_run(
            tmp_path,
            cases,
            [row(planned, block_ms=b) for planned, b in zip(cases, blocks, strict=True)],
        )
    )
    (group,) = groups(rows, "seq_len")
    text = speed.finding(group).replace("\xa0", " ")
    assert text.startswith("tie: fused = sdpa at N = 128 (ratio ")


def test_the_fastest_must_beat_every_other_backend_and_not_only_the_second(tmp_path: Path) -> None:
    cases = [case(backend, problem(128)) for backend in ("a", "b", "c")]
    blocks = ([[[1.0], [1.01], [1.0]]], [[[1.5], [1.52], [1.51]]], [[[0.5], [9.0], [2.0]]])
    rows = rows_of(
        write_run(
            tmp_path,
            cases,
            [row(planned, block_ms=b) for planned, b in zip(cases, blocks, strict=True)],
        )
    )
    found = speed.race(rows)
    assert [row["backend"] for row in found.ranking] == ["a", "b", "c"]
    assert found.margins[0].clear
    assert not found.clear
    assert [row["backend"] for row in speed.tied(found)] == ["a", "c"]
    assert speed.finding(groups(rows, "seq_len")[0]).startswith("tie: a = c at ")


def test_an_inexact_backend_wins_no_race_and_is_mentioned_beside_it(tmp_path: Path) -> None:
    rows = rows_of(inexact(tmp_path))
    (group,) = groups(rows, "seq_len")
    text = speed.finding(group)
    assert text.startswith("sdpa is fastest at N\u00a0=\u00a04k: ")
    assert re.search(
        r"; linformer:64 \(approximate, error 34 %\) takes 0\.2\d times as long as sdpa"
        r" \(0\.\d+ to 0\.\d+\)$",
        text,
    )
    assert {cell.winner for cell in winner_map(rows)} == {"sdpa"}
    assert {cell.runner_up for cell in winner_map(rows)} == {"fused"}


def test_an_inexact_backend_that_is_slower_than_the_fastest_is_not_mentioned(
    tmp_path: Path,
) -> None:
    (group,) = groups(rows_of(inexact(tmp_path, lengths=(256, 512))), "seq_len")
    assert "approximate" not in speed.finding(group)


@pytest.mark.long
def test_with_one_backend_a_page_says_once_that_there_is_nothing_to_compare(tmp_path: Path) -> None:
    cases = grid(("sdpa",), (128, 256), (1, 2, 4, 8))
    run = write_run(tmp_path, cases, [row(one) for one in cases])
    assert text_of(page_of(run)).count("nothing to compare it with") == 1
    assert "nothing to compare" not in " ".join(summary_of(run))
    found = groups(rows_of(run), "seq_len")
    assert len(found) == 4
    assert speed.tally(found) == "No problem has a time of two exact backends"


def test_a_count_of_winners_names_the_length_that_it_is_of(tmp_path: Path) -> None:
    """At 256 only sdpa ran."""
    made = [
        (case(name, problem(n)), "ok" if n == 128 or name == "sdpa" else "oom")
        for n in (128, 256)
        for name in ("naive", "sdpa")
    ]
    found = groups(rows_with_statuses(tmp_path, *made), "seq_len")
    assert speed.tally(found).startswith(
        "At the longest N of each problem that two exact backends finished: "
    )


def test_the_only_one_that_fits_is_called_so(tmp_path: Path) -> None:
    statuses = {"sdpa": "ok", "naive": "oom", "fused": "predicted_oom"}
    cases = [(case(name, problem(128)), status) for name, status in statuses.items()]
    (group,) = groups(rows_with_statuses(tmp_path, *cases), "seq_len")
    assert speed.finding(group).endswith("at N\u00a0=\u00a0128, the only one that fits")
