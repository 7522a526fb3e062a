"""find_wall: which walls a scenario plans, and what is refused."""

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import from_mapping
from attnbench.harness.scenario.selection import walls_of

HEAD = {"name": "mine", "question": "What?", "backends": ["naive", "fused"], "find_wall": True}


def ids(grid: dict, **fields: object) -> list[str]:
    return [
        wall.id for wall in walls_of(from_mapping({**HEAD, "grid": grid, **fields}, "here"), "cpu")
    ]


def test_there_is_a_wall_for_each_backend_and_combination_whatever_the_lengths() -> None:
    found = ids({"seq_len": [512, 1024, 4096], "d_model": 512, "heads": [1, 8]})
    assert found == [
        f"wall-{backend}-b1-d512-h{heads}-fp32-forward-core"
        for heads in (1, 8)
        for backend in ("naive", "fused")
    ]


def test_a_grid_without_lengths_has_walls_alone() -> None:
    scenario = from_mapping({**HEAD, "grid": {"d_model": 512, "heads": 8}}, "here")
    assert scenario.problem_groups("cpu") == ([], 0)
    assert len(walls_of(scenario, "cpu")) == scenario.count("cpu") == 2


def test_fixed_keys_and_alignment_stay_with_the_wall() -> None:
    found = ids(
        {
            "d_model": 64,
            "heads": 1,
            "kv_seq_len": [1, 64],
            "causal": True,
            "causal_align": "bottom_right",
        },
        backends=["naive"],
    )
    assert found == [
        f"wall-naive-b1-kv{kv}-d64-h1-fp32-causal_bottom_right-forward-core" for kv in (1, 64)
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"grid": {"seq_len": 512, "heads": 8}},
            "here: grid.d_model: missing; wanted d_model and heads; add d_model",
        ),
        (
            {"grid": {"d_model": 512}, "cases": [{"seq_len": 512, "heads": 1}]},
            "grid.heads: missing",
        ),
        (
            {"grid": {"d_model": 510, "heads": 8}},
            "here: grid.heads: d_model (510) is not a multiple of heads (8)",
        ),
        (
            {"grid": {"d_model": 512, "heads": 8, "causal": True, "kv_seq_len": 512}},
            "set causal_align to top_left or bottom_right",
        ),
        (
            {"grid": {"d_model": 512, "heads": 8}, "find_wall": 1},
            "find_wall: found 1; wanted true or false",
        ),
        (
            {"grid": {"d_model": 512, "heads": [1, 2]}, "limits": {"max_cases": 3}},
            "grid: 4 cases on",
        ),
    ],
)
def test_what_makes_no_wall_is_refused_in_one_line(changes: dict, words: str) -> None:
    with pytest.raises(BadInput) as found:
        from_mapping({**HEAD, **changes}, "here")
    (line,) = found.value.problems
    assert words in line
