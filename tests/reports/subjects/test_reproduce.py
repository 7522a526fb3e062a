"""reports.subjects._reproduce.py: the command plans the same case, plan and limits."""

import shlex
from typing import Any

import pytest

from attnbench.harness.cases.case import case_of
from attnbench.harness.scenario import from_axes, from_mapping, read_change
from attnbench.harness.scenario.fields import Limits, Plan
from attnbench.harness.scenario.selection import planned
from attnbench.reports.data.typed import typed
from attnbench.reports.subjects._reproduce import USUAL_LIMITS, USUAL_SETTINGS, command

SMALL = {"seq_len": 256, "d_model": 64, "heads": 4}
ALIGNS = ["top_left", "bottom_right"]
GRIDS: dict[str, dict[str, Any]] = {
    "usual": {"seq_len": [128, 1000, 8192], "d_model": 512, "heads": [1, 8]},
    "causal": {**SMALL, "causal": True, "dtype": "bf16"},
    "fewer keys": {**SMALL, "kv_seq_len": [64, 512], "causal": True, "causal_align": ALIGNS},
    "grouped heads": {**SMALL, "heads": 8, "kv_heads": [1, 2], "batch": 4},
    "own widths": {**SMALL, "d_k": 32, "d_v": [8, 16]},
    "masks": {**SMALL, "mask": ["none", "padding", "local"], "window": 7},
    "training a layer": {**SMALL, "passes": ["backward", "forward+backward"], "scope": "layer"},
}
PLAN_CHANGES = (
    "quick",
    "standard",
    {"like": "quick", "budget_s": 0.5},
    {"like": "rigorous", "windows": 2, "allocator": "default"},
)


def options(words: list[str]) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """As the command line takes them: axes, changes, and what is neither."""
    axes: dict[str, Any] = {}
    changes: list[str] = []
    flags: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name = word.removeprefix("--").replace("-", "_")
        if name == "causal":
            axes[name] = True
        elif name == "set":
            changes.append(next(rest))
        elif name == "plan":
            changes.insert(0, f"plan={next(rest)}")
        elif name in ("device", "seed", "measure"):
            flags[name] = next(rest)
        else:
            axes[name] = next(rest)
    return axes, changes, flags


@pytest.mark.parametrize("plan", PLAN_CHANGES)
@pytest.mark.parametrize("name", GRIDS)
def test_the_command_plans_exactly_that_case(name: str, plan: Any) -> None:
    limits = {"memory_gib": 0.5, "timeout_s": 20.0} if plan == "quick" else {}
    measure = ["latency", "memory", "utilization"] if plan == "standard" else ["latency", "memory"]
    data: dict[str, Any] = {"name": "made_up", "question": "?", "backends": ["fused", "sdpa:math"]}
    data |= {"grid": GRIDS[name], "plan": plan, "limits": limits}
    scenario = from_mapping({**data, "measure": measure}, "a test")
    run = {"scenario": scenario.resolved("cpu"), "seed": 7, "device": "cpu"}
    cases = planned(scenario, "cpu").cases
    assert cases
    for case in cases:
        words = shlex.split(command({"device": "cpu", **case.fields()}, run))
        assert words[:2] == ["attnbench", "run"]
        axes, changes, flags = options(words[2:])
        again = from_axes(axes, [*map(read_change, changes)])
        assert planned(again, "cpu").cases == [case_of(case.fields())]
        assert again.plan.model_dump(exclude={"like"}) == scenario.plan.model_dump(exclude={"like"})
        assert again.limits == scenario.limits
        assert flags.pop("measure", "latency,memory").split(",") == measure
        assert flags == {"device": "cpu", "seed": "7"}


def test_what_is_left_out_of_the_command_is_the_default() -> None:
    assert {name: getattr(Plan(), name) for name in USUAL_SETTINGS} == USUAL_SETTINGS
    assert {name: getattr(Limits(), name) for name in USUAL_LIMITS} == USUAL_LIMITS


SIZES = {"batch": 1, "seq_len": 8, "kv_seq_len": 8, "d_model": 8, "heads": 1, "kv_heads": 1}
MASK = {"causal": False, "causal_align": "", "mask": "none", "window": 0}
REST = {"d_k": 8, "d_v": 8, "dtype": "fp16", "passes": "forward", "scope": "core"}
ROW = {"device": "cuda", "backend": "my kernel; rm", **SIZES, **MASK, **REST}


def test_a_run_without_a_plan_still_has_a_command() -> None:
    text = command(ROW, {"scenario": {}})
    assert (
        text
        == "attnbench run --backends 'my kernel; rm' --batch 1 --seq-len 8 --d-model 8 --heads 1"
        " --dtype fp16 --device cuda"
    )


def test_a_command_names_no_program_of_the_file_and_no_text_that_acts_on_a_terminal() -> None:
    environments = [{"name": name, "path": "/tmp/evil"} for name in ("old", "new")]
    run = {"scenario": {}, "environments": environments}
    text = command({**ROW, "python": "old"}, run)
    assert "/tmp/evil" not in text
    assert shlex.split(text)[:2] == ["attnbench", "run"]
    for name in ("a\x1b]0;b", "a\nrm", "a\u202eb", "a\ud800"):
        assert command({**ROW, "backend": name}, run).startswith("(not shown: ")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["attnbench", "run", "a b; rm"], "attnbench run 'a b; rm'"),
        (["attnbench.run('quickstart')"], "attnbench.run('quickstart')"),
        (["attnbench.run('x'); evil()"], None),
        (["pytest", "-p", "evil", "a.yaml"], "pytest"),
        (["curl", "evil"], None),
        ([], None),
        ("attnbench run x; evil", None),
        (["attnbench", 7], None),
        (["attnbench", "run", "\x1b[2J"], "(not shown: it has characters that cannot be printed)"),
    ],
)
def test_what_was_typed_is_shown_quoted_if_it_is_ours(words: Any, shown: str | None) -> None:
    assert typed(words) == shown


def test_programs_and_permissions_of_what_was_typed_are_left_out() -> None:
    words = ["attnbench", "run", "x", "--python", "old=/tmp/evil", "--python=new=evil"]
    shown = typed([*words, "--allow-import", "--seed", "1"])
    kept, _, said = shown.partition("  # ")
    assert kept == "attnbench run x --seed 1"
    assert "give them again" in said


def test_naming_a_module_permits_its_import_so_it_is_left_out_too() -> None:
    words = ["attnbench", "run", "--backends", "sdpa:flash, evil:attend,naive", "--heads", "2"]
    shown = typed([*words, "--backend", "os:system"])
    kept, _, said = shown.partition("  # ")
    assert kept == "attnbench run --backends 'sdpa:flash, naive' --heads 2"
    assert "give them again" in said
    assert typed(["attnbench", "run", "--backends=evil:attend"]) == f"attnbench run  # {said}"
