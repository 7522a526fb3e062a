"""reports/data/row_groups.py: only equal problems share a group; one row of each copied case."""

from pathlib import Path

import pytest

from attnbench.reports.data.row_groups import (
    Row,
    distinguishing_axes,
    first_copies,
    followers,
    groups,
)
from attnbench.reports.pages.run_titles import subtitle
from tests.made_runs import case, problem, row, write_run
from tests.reports.rendering import rows_of, rows_with_statuses

RUNS = Path(__file__).parents[2] / "approved" / "runs"


def test_only_equal_problems_share_a_group(tmp_path: Path) -> None:
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
    rows = rows_with_statuses(
        tmp_path,
        *((case("fused", problem(n, **shape)), "ok") for shape in shapes for n in (128, 256)),
    )
    found = groups(rows, "seq_len")
    assert [len(group.rows) for group in found] == [2] * len(shapes)
    assert len({group.label for group in found}) == len(shapes)


def test_a_key_length_that_follows_n_is_one_line_and_a_fixed_one_another(tmp_path: Path) -> None:
    fixed = [problem(n, kv_seq_len=512) for n in (128, 256)]
    rows = rows_with_statuses(
        tmp_path,
        *((case(name, of), "ok") for name, of in zip("ab", fixed, strict=True)),
        (case("fused", problem(128)), "ok"),
    )
    assert [len(group.rows) for group in groups(rows, "seq_len")] == [2, 1]


def test_a_size_follows_another_that_it_is_a_function_of() -> None:
    def following(**batch: int) -> dict[str, str]:
        shapes = [problem(int(n[1:]), batch=size) for n, size in batch.items()]
        return followers([case("fused", of) for of in shapes], "seq_len")

    assert following(n512=8, n1024=4, n2048=2) == {"batch": "4\u202f096 / N"}
    assert following(n512=2, n1024=4, n2048=8) == {"batch": "N / 256"}
    assert following(n1=3, n2=6, n3=9) == {"batch": "3 N"}
    assert following(n512=8, n1024=3, n2048=1) == {"batch": "f(N)"}
    assert following(n512=8, n1024=4) == {}  # two problems are no function
    assert following(n512=8, n1024=8, n2048=8, n02048=4) == {}


def test_a_size_that_follows_n_names_no_problem_and_is_told_once_in_the_header(
    tmp_path: Path,
) -> None:
    sizes = {512: 8, 1024: 4, 2048: 2}
    cases = [
        (case("fused", problem(n, batch=batch, heads=heads)), "ok")
        for n, batch in sizes.items()
        for heads in (1, 8)
    ]
    rows = rows_with_statuses(tmp_path, *cases)
    assert distinguishing_axes(rows) == ["seq_len", "heads"]
    labels = [group.label for group in groups(rows, None)]
    assert len({*labels}) == len(labels) == 6
    assert not any("B" in label for label in labels)
    header = subtitle({"device": "cpu", "environment": {}}, rows)
    assert header.count("B\u00a0=\u00a04\u202f096 / N") == 1
    by_hand = [row | {"batch": row["batch"] + (row["seq_len"] == 512)} for row in rows]
    assert distinguishing_axes(by_hand) == ["batch", "seq_len", "heads"]


def test_strides_that_are_the_root_of_n_are_one_problem_over_n(tmp_path: Path) -> None:
    def strided(parent: Path, windows: dict[int, int]) -> list[Row]:
        pairs = [
            case("sparse_strided", problem(n, mask="strided", window=window))
            for n, window in windows.items()
        ]
        return rows_of(write_run(parent, pairs, [row(planned) for planned in pairs]))

    rows = strided(tmp_path / "a", {1024: 32, 4096: 64, 2048: 45})
    (group,) = groups(rows, "seq_len")
    assert group.problem["window"] == "√N"
    assert followers(rows, "seq_len") == {}
    (group,) = groups(strided(tmp_path / "b", {1024: 64, 4096: 64, 2048: 64}), "seq_len")
    assert group.problem["window"] == 64
    assert len(groups(strided(tmp_path / "c", {1024: 32, 4096: 128}), "seq_len")) == 2


def test_heads_of_a_given_width_stay_one_problem_where_they_fill_d_model(tmp_path: Path) -> None:
    """8 * 64 = d_model, and yet 64 was given: the whole layer belongs to its pruned ones."""
    pruned = [case("fused", problem(128, heads, d_k=64, d_v=64)) for heads in (8, 4, 1)]
    rows = rows_with_statuses(tmp_path, *((planned, "ok") for planned in pruned))
    (group,) = groups(rows, "heads")
    assert [row["heads"] for row in group.rows] == [8, 4, 1]
    assert group.problem["d_k"] == group.problem["d_v"] == 64


def test_widths_of_another_run_do_not_fix_those_of_this_one(tmp_path: Path) -> None:
    pruned = [case("fused", problem(128, heads, d_k=64, d_v=64)) for heads in (8, 1)]
    usual = [case("fused", problem(128, heads)) for heads in (8, 1)]
    runs = [
        write_run(tmp_path, cases, [row(planned) for planned in cases], name=name)
        for name, cases in (("pruned", pruned), ("usual", usual))
    ]
    found = {group.problem["run"]: group for group in groups(rows_of(*runs), "heads")}
    assert [len(group.rows) for group in found.values()] == [2, 2]
    assert [group.problem["d_k"] for group in found.values()] == [64, "d_model/h"]


def test_what_goes_with_an_axis_does_not_split_its_groups(tmp_path: Path) -> None:
    masks = [{"mask": "none"}, {"mask": "local", "window": 64}]
    corners = [{"causal": False}, {"causal": True, "causal_align": "top_left"}]
    for axis, shapes in (("mask", masks), ("causal", corners)):
        made = [case(name, problem(128, **of)) for name, of in zip("ab", shapes, strict=True)]
        rows = rows_with_statuses(tmp_path / axis, *((planned, "ok") for planned in made))
        assert len(groups(rows, axis)) == 1
        assert len(groups(rows, None)) == 2


@pytest.mark.parametrize(
    ("corners", "labels"),
    [
        (("bottom_right",), ["N_kv = N", "N_kv = 64"]),  # of a square both are one
        (
            ("top_left", "bottom_right"),
            ["N_kv = N", "N_kv = 64, aligned top_left", "N_kv = 64, aligned bottom_right"],
        ),
    ],
)
def test_a_corner_is_named_where_triangles_differ_in_it(
    corners: tuple[str, ...], labels: list[str], tmp_path: Path
) -> None:
    cross = [problem(128, kv_seq_len=64, causal=True, causal_align=one) for one in corners]
    square = problem(128, causal=True, causal_align="top_left")
    of = [case(name, one) for name, one in zip("abc", (square, *cross), strict=False)]
    rows = rows_with_statuses(tmp_path, *((planned, "ok") for planned in of))
    assert [one.label.replace("\u00a0", " ") for one in groups(rows, None)] == labels


def test_of_old_copies_the_first_of_each_case_stays_or_the_lowest_of_a_shard() -> None:
    rows = rows_of(RUNS / "devices")
    first = first_copies(rows)
    assert (len(rows), len(first)) == (18, 6)
    assert [row["case"] for row in first] == [
        row["case"] for row in rows if "replica" not in row["case"]
    ]
    shard = [row for row in rows if (row["seq_len"], row["replica"]) != (256, 1)]
    found = first_copies(shard)
    assert len(found) == 6
    assert {row["replica"] for row in found if row["seq_len"] == 256} == {2}
