"""find_wall: which walls a scenario plans."""

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
    aligned = {"causal": True, "causal_align": "bottom_right"}
    found = ids({"d_model": 64, "heads": 1, "kv_seq_len": [1, 64], **aligned}, backends="naive")
    assert found == [
        f"wall-naive-b1-kv{kv}-d64-h1-fp32-causal_bottom_right-forward-core" for kv in (1, 64)
    ]
