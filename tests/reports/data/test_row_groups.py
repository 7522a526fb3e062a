"""reports/data/row_groups.py: only equal problems share a group."""

from pathlib import Path

from attnbench.reports.data.row_groups import Row, groups
from tests.reports.fake_runs import case, problem, row, write_run
from tests.reports.rendering import rows_of, rows_with_statuses


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


def test_strides_that_are_the_root_of_n_are_one_problem_over_n(tmp_path: Path) -> None:
    def strided(parent: Path, windows: dict[int, int]) -> list[Row]:
        pairs = [
            case("sparse_strided", problem(n, mask="strided", window=window))
            for n, window in windows.items()
        ]
        return rows_of(write_run(parent, pairs, [row(planned) for planned in pairs]))

    (group,) = groups(strided(tmp_path / "a", {1024: 32, 4096: 64, 2048: 45}), "seq_len")
    assert group.problem["window"] == "√N"
    (group,) = groups(strided(tmp_path / "b", {1024: 64, 4096: 64, 2048: 64}), "seq_len")
    assert group.problem["window"] == 64
    assert len(groups(strided(tmp_path / "c", {1024: 32, 4096: 128}), "seq_len")) == 2
