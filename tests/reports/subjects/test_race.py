"""reports/subjects/_race.py: a winner must beat every other backend by more than noise."""

import re
from pathlib import Path

from attnbench.reports.data.row_groups import groups
from attnbench.reports.subjects import _race as fastest
from attnbench.reports.subjects._race import race
from tests.made_runs import case, inexact, problem, row, write_run
from tests.reports.rendering import rows_of


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
    text = fastest.finding(group).replace("\xa0", " ")
    assert text.startswith("at N = 128: fused takes 1.03 ms; sdpa cannot be told apart from it (")


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
    found = race(rows)
    assert [row["backend"] for row in found.ranking] == ["a", "b", "c"]
    assert found.margins[0].clear
    assert not found.clear
    assert [row["backend"] for row in found.tied] == ["a", "c"]
    assert "ms; c cannot be told apart" in fastest.finding(groups(rows, "seq_len")[0])


def test_an_inexact_backend_wins_no_race_and_is_mentioned_beside_it(tmp_path: Path) -> None:
    rows = rows_of(inexact(tmp_path))
    (group,) = groups(rows, "seq_len")
    text = fastest.finding(group)
    assert text.startswith("at N\u00a0=\u00a04\u202f096: sdpa takes ")
    assert re.search(
        r"; linformer:64 \(approximate, error 34 %\) takes 0\.2\d times as long as sdpa"
        r" \(0\.\d+ to 0\.\d+\)$",
        text,
    )
    for alone in groups(rows, None):
        first, second = race(alone.rows).ranking[:2]
        assert (first["backend"], second["backend"]) == ("sdpa", "fused")
