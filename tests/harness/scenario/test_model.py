"""From text, options and data to a scenario, and from it to problems."""

from dataclasses import fields
from pathlib import Path

import pytest

from attnbench.harness.cases.case import case_of
from attnbench.harness.files.errors import BadInput, Spelling
from attnbench.harness.scenario import (
    Change,
    Plan,
    Scenario,
    from_axes,
    from_mapping,
    load,
    load_entries,
    read_change,
)
from attnbench.harness.scenario.fields import Axes, ExtraCase
from attnbench.harness.scenario.selection import Selection, planned, select
from attnbench.impls import Problem
from attnbench.impls.problem import AXES

SMALL = "grid: {seq_len: 512, d_model: 512, heads: 8}\nplan: quick\n"


BESIDE = {"grid", "cases", "watch", "measure_on_cuda"}


def made(text: str, *changes: str) -> Scenario:
    head = "name: mine\nquestion: What?\nbackends: [naive, fused]\n"
    return load_entries(head + text, [*map(read_change, changes)]).entries[0].scenario


def problems(scenario: Scenario, device: str = "cpu") -> list[tuple[Problem, ...]]:
    return scenario.problem_groups(device)[0]


def test_a_changed_axis_holds_on_every_device() -> None:
    text = "grid: {seq_len: 8, d_model: 8, heads: 1, cpu: {N: 64}}"

    def lengths(*changes: str) -> list[tuple[int, ...]]:
        return [made(text, *changes).axes(device)["seq_len"] for device in ("cpu", "cuda")]

    assert lengths() == [(64,), (8,)]
    assert lengths("grid.seq_len=16") == [(16,), (16,)]
    assert lengths("grid.cpu.seq_len=32") == [(32,), (8,)]
    assert lengths("grid.cpu.seq_len=32", "grid.N=16") == [(32,), (16,)]


def test_sizes_may_be_written_with_k_and_m() -> None:
    scenario = made("grid: {seq_len: 4k, d_model: 512, heads: 8, prefix: [0, 2k]}")
    assert scenario.axes("cpu")["prefix"] == (0, 2048)
    scenario = made("grid: {seq_len: [512, 1k, 2K, 1m], d_model: 512, heads: 8}")
    assert scenario.grid.seq_len == (512, 1024, 2048, 1 << 20)


def test_what_a_gpu_measures_by_default_gives_way_to_what_is_given() -> None:
    text = "grid: {seq_len: 8, d_model: 8, heads: 1}\nmeasure_on_cuda: [latency, utilization]"
    usual, given = made(text), made(text, "measure=[memory]")
    assert (usual.measured("cpu"), usual.measured("cuda")) == (
        ("latency", "memory"),
        ("latency", "utilization"),
    )
    assert given.measured("cuda") == given.measured("cpu") == ("memory",)
    assert usual.resolved("cuda")["measure"] == ["latency", "utilization"]


def test_short_axis_names_mean_the_long_ones() -> None:
    scenario = made(
        "contrast: [h]\ngrid: {B: 2, N: 1k, d_model: 512, h: [1, 8], cuda: {N: 8k}}\n"
        "cases: [{N: 4k, h: 2}]"
    )
    assert (scenario.grid.batch, scenario.grid.heads) == ((2,), (1, 8))
    assert scenario.contrast == ("heads",)
    assert scenario.axes("cuda")["seq_len"] == (8192,)
    assert problems(scenario)[-1] == (Problem(batch=2, seq_len=4096, d_model=512, heads=2),)


def test_a_device_kind_overrides_axes_and_the_grid_overrides_the_top() -> None:
    cuda = "cuda: {seq_len: [4k, 8k], dtype: bf16}"
    scenario = made(f"dtype: fp16\ngrid: {{seq_len: 1k, d_model: 512, heads: 8, {cuda}}}")
    found = {
        device: [(p.seq_len, p.dtype) for (p,) in problems(scenario, device)]
        for device in ("cpu", "cuda")
    }
    assert found == {"cpu": [(1024, "fp16")], "cuda": [(4096, "bf16"), (8192, "bf16")]}


def test_a_group_holds_all_values_of_the_contrast_axes() -> None:
    scenario = made(
        "contrast: [heads]\ngrid: {seq_len: [1k, 2k], d_model: 512, heads: [1, 8]}\n"
        "cases: [{seq_len: 4k, heads: 2}]"
    )
    shapes = [[(p.seq_len, p.heads) for p in group] for group in problems(scenario)]
    assert shapes == [[(1024, 1), (1024, 8)], [(2048, 1), (2048, 8)], [(4096, 2)]]


def test_explicit_cases_take_single_values_from_a_grid_that_has_no_problems_itself() -> None:
    scenario = made(
        "grid: {batch: 3, causal: true}\ncases: [{seq_len: 1k, d_model: 768, heads: 12}]"
    )
    only = Problem(batch=3, seq_len=1024, d_model=768, heads=12, causal=True)
    assert problems(scenario) == [(only,)]


def test_repeated_problems_are_planned_once_and_counted() -> None:
    scenario = made(
        "grid: {seq_len: [512, 1k, 512], d_model: 512, heads: 8, kv_seq_len: 512}\n"
        "cases: [{seq_len: 1k}]"
    )
    kept, duplicates = scenario.problem_groups("cpu")
    assert ([p.seq_len for (p,) in kept], duplicates) == ([512, 1024], 2)


def test_a_plan_by_name_and_one_that_changes_a_field() -> None:
    assert made(SMALL).plan == Plan.model_validate("quick")
    changed = made(SMALL, "plan.budget_s=3").plan
    assert (changed.like, changed.min_blocks, changed.budget_s) == ("quick", 3, 3.0)
    assert made(SMALL, "plan=rigorous").plan.precision_ratio == 0.01
    assert Plan.model_validate(changed.model_dump(mode="json")) == changed


def test_axes_by_flags_make_a_scenario() -> None:
    shape = {"seq_len": "512,1k", "heads": "8", "d_model": "512"}
    scenario = from_axes({"backends": "naive,sdpa:math", **shape, "causal": True})
    assert scenario.backends == ("naive", "sdpa:math")
    assert [(p.seq_len, p.causal) for (p,) in problems(scenario)] == [(512, True), (1024, True)]
    assert scenario.source == "command line"


def test_axes_are_texts_as_in_a_shell_or_values() -> None:
    texts = {"seq_len": "512,1k", "heads": "2", "head_dim": "64"}
    values = {"seq_len": [512, "1k"], "heads": 2, "head_dim": 64}
    for backends in ("naive,sdpa:math", ["naive", "sdpa:math"]):
        given = from_axes({"backends": backends, **values, "causal": [False, True]})
        assert given == from_axes({"backends": backends, **texts, "causal": "false,true"})
    of_model = {"backends": "naive", "seq_len": [1024], "phase": "decode", "tp": 2}
    by_text = from_axes({**of_model, "model": "gpt2,llama-3-8b", "seq_len": "1k", "tp": "2"})
    assert from_axes({**of_model, "model": ["gpt2", "llama-3-8b"]}) == by_text


def test_a_refusal_names_what_was_given_as_each_reader_writes_it() -> None:
    with pytest.raises(BadInput) as caught:
        from_axes({"backends": ["naive"], "seq_len": [512, 0], "heads": 2, "d_model": 64})
    wanted = "found 0; wanted a whole number of 1 or more, such as 512 or 1k"
    assert {caught.value.spelled(one) for one in Spelling} == {
        f"--seq-len 512,0: {wanted}",
        f"seq_len='512,0': {wanted}",
        f"--attnbench-seq-len 512,0: {wanted}",
    }


def test_a_scenario_from_python_data_is_checked_too() -> None:
    grid = {"seq_len": (512, 0), "d_model": 64, "heads": 1}
    data = {"name": "mine", "question": "What?", "backends": ("naive",), "grid": grid}
    with pytest.raises(BadInput, match=r"^here: grid.seq_len\[1\]: found 0; wanted a whole"):
        from_mapping(data, "here")
    assert from_mapping(data, "here", [Change("grid.seq_len", "1k", "")]).grid.seq_len == (1024,)
    assert grid == {"seq_len": (512, 0), "d_model": 64, "heads": 1}


def test_what_run_json_holds_is_plain_and_resolved() -> None:
    cases = "cases=[{N: 4k, device: cuda}, {N: 2k, device: cpu}]"
    resolved = made(SMALL, "grid.cuda.N=8k", cases).resolved("cuda")
    defaults = made(SMALL).model_dump(mode="json", exclude={*BESIDE, *AXES})
    usual = {"batch": 1, "dtype": "fp32", "causal": False, "mask": "none"}
    shape = {"seq_len": 8192, "d_model": 512, "heads": 8, "passes": "forward", "scope": "core"}
    assert resolved == {
        **defaults,
        "watch": {},
        "source": "scenario",
        "grid": {name: [value] for name, value in {**usual, **shape}.items()},
        "cases": [{"seq_len": 4096}],
    }
    assert (resolved["plan"]["budget_s"], resolved["limits"]["timeout_s"]) == (2.0, 60.0)


def test_the_table_has_every_field_of_a_problem() -> None:
    assert set(AXES) == {field.name for field in fields(Problem)}


def test_the_models_have_a_field_for_every_axis() -> None:
    assert list(Axes.model_fields) == list(AXES)
    assert list(ExtraCase.model_fields) == ["device", *AXES]
    wide = [name for name, axis in AXES.items() if axis.scenario_wide]
    assert [name for name in Scenario.model_fields if name in AXES] == wide
    for name in wide:
        assert Scenario.model_fields[name].default == AXES[name].given


WALLS = {"name": "mine", "question": "What?", "backends": ["naive", "fused"], "find_wall": True}


def wall_ids(grid: dict, **fields: object) -> list[str]:
    return [
        wall.id
        for wall in planned(from_mapping({**WALLS, "grid": grid, **fields}, "here"), "cpu").walls
    ]


def test_there_is_a_wall_for_each_backend_and_combination_whatever_the_lengths() -> None:
    found = wall_ids({"seq_len": [512, 1024, 4096], "d_model": 512, "heads": [1, 8]})
    assert found == [
        f"wall-{backend}-b1-d512-h{heads}-fp32-forward-core"
        for heads in (1, 8)
        for backend in ("naive", "fused")
    ]


def test_a_grid_without_lengths_has_walls_alone() -> None:
    scenario = from_mapping({**WALLS, "grid": {"d_model": 512, "heads": 8}}, "here")
    assert scenario.problem_groups("cpu") == ([], 0)
    assert len(planned(scenario, "cpu").walls) == scenario.count("cpu") == 2


def test_fixed_keys_and_alignment_stay_with_the_wall() -> None:
    aligned = {"causal": True, "causal_align": "bottom_right"}
    found = wall_ids(
        {"d_model": 64, "heads": 1, "kv_seq_len": [1, 64], **aligned}, backends="naive"
    )
    assert found == [
        f"wall-naive-b1-kv{kv}-d64-h1-fp32-causal_bottom_right-forward-core" for kv in (1, 64)
    ]


NAMES = ("fused", "linformer[rank=16]", "linformer[rank=32]")
SHAPE = {"seq_len": "64", "d_model": "32", "heads": "2"}
TEXT = "name: a\nquestion: b?\ngrid: {seq_len: 64, d_model: 32, heads: 2}\n"


@pytest.mark.parametrize(
    "given", ['["fused", "linformer[rank=16,32]"]', "\n- fused\n- linformer[rank=16,32]"]
)
def test_several_values_are_several_backends_in_a_file(tmp_path: Path, given: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{TEXT}backends: {given}\nbaseline: linformer[rank=16]\n")
    assert load(file).backends == NAMES


def test_they_are_told_apart_in_cases_and_can_be_selected() -> None:
    scenario = from_axes({**SHAPE, "backends": "fused,linformer[rank=16,32]"})
    assert scenario.backends == NAMES
    cases = select(scenario, "cpu", Selection()).cases
    assert [case.fields().get("parameters") for case in cases] == [None, {"rank": 16}, {"rank": 32}]
    assert cases[1].id == "linformer[rank=16]-b1-n64-d32-h2-fp32-forward-core"
    assert [case_of(case.fields()) for case in cases] == cases
    for pattern in ("linformer[rank=32]", "[rank=32]-b1", cases[2].id):
        assert select(scenario, "cpu", Selection(only=(pattern,))).cases == [cases[2]]


def test_the_textbooks_scenario_works_an_example_by_hand() -> None:
    assert "worked_example" in load("textbook").studies
