"""reports/analysis: what is compared with what, and what is said about it."""

from math import exp, hypot, log, nan
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.stats import ratio_interval
from attnbench.reports.analysis import heads, speed, wall
from attnbench.reports.analysis.missing_points import absent
from attnbench.reports.analysis.ratio import Ratio, time_ratio
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import Row, groups, records

from tests.reports.fake_runs import case, head_sweep, problem, quickstart, row, write_run


def rows_of(run: Path) -> list[Row]:
    return records(frame([read_run(run)]))


def made(tmp_path: Path, *cases: tuple[dict[str, Any], str]) -> list[Row]:
    return rows_of(
        write_run(
            tmp_path,
            [planned for planned, _ in cases],
            [row(planned, status) for planned, status in cases],
        )
    )


def one(rows: list[Row], **wanted: Any) -> Row:
    (found,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return found


def test_a_ratio_is_paired_within_a_session_and_says_so_where_it_is_not(tmp_path: Path) -> None:
    rows = rows_of(quickstart(tmp_path))
    fused, sdpa = (
        one(rows, backend=backend, seq_len=1024, heads=8) for backend in ("fused", "sdpa")
    )
    paired, expected = time_ratio(fused, sdpa), ratio_interval(fused["block_ms"], sdpa["block_ms"])
    assert paired is not None
    assert (paired.value, paired.low, paired.high, paired.paired) == (
        expected.value,
        expected.low,
        expected.high,
        True,
    )
    unpaired = time_ratio(fused, sdpa | {"session": "another"})
    assert unpaired is not None
    reach = hypot(
        *(log(row["latency_high_ms"] / row["latency_low_ms"]) / 2 for row in (fused, sdpa))
    )
    assert unpaired.high == pytest.approx(unpaired.value * exp(reach))
    assert unpaired.high / unpaired.low > paired.high / paired.low
    assert unpaired.text.endswith("unpaired")


def test_rows_without_a_session_are_not_paired(tmp_path: Path) -> None:
    rows = rows_of(quickstart(tmp_path, lengths=(128,)))
    found = time_ratio(rows[0] | {"session": None}, rows[1] | {"session": None})
    assert found is not None
    assert not found.paired


@pytest.mark.parametrize(
    ("low", "high", "clear"),
    [(1.1, 1.3, True), (0.7, 0.9, True), (0.9, 1.1, False), (1.0, 1.2, False), (nan, nan, False)],
)
def test_a_winner_needs_an_interval_that_leaves_out_one(
    low: float, high: float, clear: bool
) -> None:
    assert Ratio(value=1.2, low=low, high=high, paired=True, note="").clear is clear


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
    assert "no clear winner at N = 128: fused and sdpa are not told apart" in speed.finding(
        group
    ).replace("\xa0", " ")


def test_the_fastest_must_beat_every_other_one_and_not_only_the_second(tmp_path: Path) -> None:
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
    assert [member["backend"] for member in found.ranking] == ["a", "b", "c"]
    assert found.margins[0].clear
    assert not found.clear
    assert "a and c are not told apart" in speed.finding(groups(rows, "seq_len")[0])


def test_only_equal_problems_stand_together(tmp_path: Path) -> None:
    shapes = [
        {"heads": 1},
        {"heads": 8},
        {"dtype": "bf16"},
        {"causal": True},
        {"batch": 2},
        {"d_model": 256},
        {"scope": "layer"},
        {"passes": "backward"},
    ]
    rows = made(
        tmp_path,
        *((case("fused", problem(n, **shape)), "ok") for shape in shapes for n in (128, 256)),
    )
    found = groups(rows, "seq_len")
    assert [len(group.rows) for group in found] == [2] * len(shapes)
    assert len({group.label for group in found}) == len(shapes)


def test_a_key_length_that_follows_n_is_one_line_and_a_fixed_one_another(tmp_path: Path) -> None:
    fixed = [problem(n, kv_seq_len=512) for n in (128, 256)]
    rows = made(
        tmp_path,
        *((case(name, of), "ok") for name, of in zip("ab", fixed, strict=True)),
        (case("fused", problem(128)), "ok"),
    )
    assert [len(group.rows) for group in groups(rows, "seq_len")] == [2, 1]


WALLS = [
    (
        {"a": ("ok", "oom"), "b": ("ok", "ok")},
        "a runs out of memory at N = 256; b still fits at N = 256",
    ),
    (
        {"a": ("oom", "oom"), "b": ("ok", "ok")},
        "a runs out of memory at N = 128; b goes on to N = 256",
    ),
    (
        {"a": ("ok", "predicted_oom"), "b": ("oom", "crashed")},
        "b runs out of memory at N = 128; a at N = 256 (predicted)",
    ),
    (
        {"a": ("ok", "ok"), "b": ("ok", "crashed")},
        "a fits up to N = 256; b was measured up to N = 128",
    ),
    (
        {"a": ("ok", "oom"), "b": ("ok", "crashed")},
        "a runs out of memory at N = 256; b was measured up to N = 128",
    ),
    ({"a": ("ok", "oom"), "b": ("ok", "oom")}, "a and b run out of memory at N = 256"),
    ({"a": ("error", "error")}, "no case was measured or ran out of memory"),
]


@pytest.mark.parametrize(("statuses", "said"), WALLS)
def test_the_wall_is_told_as_it_was_found(
    tmp_path: Path, statuses: dict[str, tuple[str, str]], said: str
) -> None:
    found = made(
        tmp_path,
        *(
            (case(name, problem(n)), status[at])
            for name, status in statuses.items()
            for at, n in enumerate((128, 256))
        ),
    )
    (group,) = groups(found, "seq_len")
    assert wall.finding(wall.ends(group)).replace("\xa0", " ") == said


def test_heads_are_compared_with_one_head_of_the_same_backend(tmp_path: Path) -> None:
    rows = rows_of(head_sweep(tmp_path))
    ((group, costs),) = heads.comparable(rows)
    assert [cost.heads for cost in costs if cost.backend == "sdpa"] == [1, 2, 4, 8, 16, 32, 64]
    assert {cost.flops for cost in costs} == {1.0}
    fused = next(cost for cost in costs if cost.backend == "fused" and cost.heads == 8)
    assert (
        fused.peak_bytes
        == one(rows, backend="fused", heads=8)["peak_bytes"]
        / one(rows, backend="fused", heads=1)["peak_bytes"]
    )
    assert fused.time is not None
    assert fused.time.paired
    assert [cost.heads for cost in heads.most_heads(costs) if cost.backend == "fused"] == [32]
    assert group.problem["seq_len"] == 2048


def test_what_a_figure_leaves_out_is_named_once(tmp_path: Path) -> None:
    cases = [(case("a", problem(128)), "ok"), (case("a", problem(1024)), "crashed")]
    cases += [(case("b", problem(n)), "unsupported") for n in (128, 1024)]
    rows = made(tmp_path, *cases)
    assert absent(rows, rows[:1]) == ". Without a point: a at 1k (crashed); b (unsupported)"
    assert absent(rows, rows) == ""
