from collections.abc import Callable
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import Plan, Scenario, from_axes, from_mapping, load
from attnbench.impls import Problem
from attnbench.impls.problem import AXES

Write = Callable[[str], Path]
HEAD = "name: mine\nquestion: What?\nbackends: [naive, fused]\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def write_file(text: str) -> Path:
        Path("f.yaml").write_text(text, encoding="utf-8")
        return Path("f.yaml")

    return write_file


@pytest.fixture
def small(write: Write) -> Path:
    return write(HEAD + "grid: {seq_len: 512, d_model: 512, heads: 8}\nplan: quick\n")


def problems(scenario: Scenario, device: str = "cpu") -> list[tuple[Problem, ...]]:
    return scenario.problem_groups(device)[0]


def test_sizes_may_be_written_with_k_and_m(write: Write) -> None:
    scenario = load(write(HEAD + "grid: {seq_len: [512, 1k, 2K, 1m], d_model: 512, heads: 8}"))
    assert scenario.grid.seq_len == (512, 1024, 2048, 1 << 20)


def test_short_axis_names_mean_the_long_ones(write: Write) -> None:
    text = (
        "contrast: [h]\ngrid: {B: 2, N: 1k, d_model: 512, h: [1, 8], cuda: {N: 8k}}\ncases: [{N:"
        " 4k, h: 2}]"
    )
    scenario = load(write(HEAD + text))
    assert (scenario.grid.batch, scenario.grid.heads, scenario.contrast) == (
        (2,),
        (1, 8),
        ("heads",),
    )
    assert scenario.axes("cuda")["seq_len"] == (8192,)
    assert problems(scenario)[-1] == (Problem(batch=2, seq_len=4096, d_model=512, heads=2),)


def test_a_device_kind_overrides_axes_and_the_grid_overrides_the_top(write: Write) -> None:
    text = (
        "dtype: fp16\ngrid: {seq_len: 1k, d_model: 512, heads: 8, cuda: {seq_len: [4k, 8k], dtype:"
        " bf16}}"
    )
    scenario = load(write(HEAD + text))
    assert [(p.seq_len, p.dtype) for (p,) in problems(scenario, "cpu")] == [(1024, "fp16")]
    assert [(p.seq_len, p.dtype) for (p,) in problems(scenario, "cuda")] == [
        (4096, "bf16"),
        (8192, "bf16"),
    ]


def test_a_group_holds_all_values_of_the_contrast_axes(write: Write) -> None:
    text = (
        "contrast: [heads]\ngrid: {seq_len: [1k, 2k], d_model: 512, heads: [1, 8]}\ncases:"
        " [{seq_len: 4k, heads: 2}]"
    )
    shapes = [[(p.seq_len, p.heads) for p in group] for group in problems(load(write(HEAD + text)))]
    assert shapes == [[(1024, 1), (1024, 8)], [(2048, 1), (2048, 8)], [(4096, 2)]]


def test_explicit_cases_take_single_values_from_a_grid_that_has_no_problems_itself(
    write: Write,
) -> None:
    scenario = load(
        write(
            HEAD + "grid: {batch: 3, causal: true}\ncases: [{seq_len: 1k, d_model: 768, heads: 12}]"
        )
    )
    assert problems(scenario) == [
        (Problem(batch=3, seq_len=1024, d_model=768, heads=12, causal=True),)
    ]


def test_repeated_problems_are_planned_once_and_counted(write: Write) -> None:
    text = (
        "grid: {seq_len: [512, 1k, 512], d_model: 512, heads: 8, kv_seq_len: 512}\ncases:"
        " [{seq_len: 1k}]"
    )
    kept, duplicates = load(write(HEAD + text)).problem_groups("cpu")
    assert ([p.seq_len for (p,) in kept], duplicates) == ([512, 1024], 2)


def test_a_plan_by_name_and_one_that_changes_a_field(small: Path) -> None:
    assert load(small).plan == Plan.model_validate("quick")
    assert load(small).plan.processes == 1
    changed = load(small, ["plan.budget_s=3"]).plan
    assert (changed.like, changed.min_blocks, changed.budget_s) == ("quick", 6, 3.0)
    assert load(small, ["plan=rigorous"]).plan.precision_ratio == 0.01
    assert Plan.model_validate(changed.model_dump(mode="json")) == changed


def test_axes_by_flags_make_a_scenario() -> None:
    scenario = from_axes(
        {
            "backends": "naive,sdpa:math",
            "seq_len": "512,1k",
            "heads": "8",
            "d_model": "512",
            "causal": True,
        }
    )
    assert scenario.backends == ("naive", "sdpa:math")
    assert [(p.seq_len, p.causal) for (p,) in problems(scenario)] == [(512, True), (1024, True)]
    assert scenario.source == "command line"


def test_a_scenario_from_python_data_is_checked_too() -> None:
    data = {
        "name": "mine",
        "question": "What?",
        "backends": ("naive",),
        "grid": {"seq_len": (512, 0), "d_model": 64, "heads": 1},
    }
    with pytest.raises(
        BadInput,
        match=(
            r"^here: grid.seq_len\[1\]: found 0; wanted a whole number from 1 on, such as 512"
            r" or 1k$"
        ),
    ):
        from_mapping(data, "here")
    scenario = from_mapping(data, "here", ["grid.seq_len=1k"])
    assert scenario.grid.seq_len == (1024,)
    assert data["grid"] == {"seq_len": (512, 0), "d_model": 64, "heads": 1}


def test_what_run_json_holds_is_plain_and_resolved(small: Path) -> None:
    resolved = load(
        small, ["grid.cuda.N=8k", "cases=[{N: 4k, device: cuda}, {N: 2k, device: cpu}]"]
    ).resolved("cuda")
    defaults = load(small).model_dump(mode="json", exclude={"grid", "cases", "watch", *AXES})
    assert resolved == {
        **defaults,
        "watch": {},
        "source": "f.yaml",
        "grid": {
            "batch": [1],
            "seq_len": [8192],
            "d_model": [512],
            "heads": [8],
            "dtype": ["fp32"],
            "causal": [False],
            "mask": ["none"],
            "passes": ["forward"],
            "scope": ["core"],
        },
        "cases": [{"seq_len": 4096}],
    }
    assert (resolved["plan"]["budget_s"], resolved["limits"]["timeout_s"]) == (2.0, 60.0)
