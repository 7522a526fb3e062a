"""The table of configurations that runs on GPUs chose: reading, refusing, adding."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from attnbench.impls import Problem
from attnbench.impls._triton.configs import KERNELS, candidates
from attnbench.impls._triton.tuned import (
    ABOUT,
    FILE,
    Choice,
    Kind,
    choice_of,
    kind_of,
    merged,
    read,
)

PROBLEM = Problem(
    batch=2,
    seq_len=3000,
    d_model=512,
    heads=4,
    dtype="bf16",
    causal=True,
    passes="forward+backward",
)
KIND = Kind(
    capability="9.0",
    dtype="bf16",
    width=128,
    causal=True,
    passes="forward+backward",
    queries=4096,
    keys=4096,
)


def facts(number: int = 0, *, problem: Problem = PROBLEM) -> dict[str, Any]:
    """As in a row, through JSON."""
    kernels = KERNELS if problem.backward else KERNELS[:1]
    listed = {
        kernel: candidates(
            kernel,
            capability=(9, 0),
            item_bytes=2,
            width=128,
            n_q=3000,
            causal=True,
            triton="3.6.0",
        )[number]
        for kernel in kernels
    }
    found: dict[str, Any] = json.loads(
        json.dumps({"configuration": {kernel: asdict(config) for kernel, config in listed.items()}})
    )
    return found


def choice(number: int = 0, *, problem: Problem = PROBLEM, run: str = "first") -> Choice:
    return choice_of(
        problem, (9, 0), facts(number, problem=problem), run=run, gpu="NVIDIA H100", triton="3.6.0"
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps({"about": ABOUT, "choices": []}))
    return path


def test_the_shipped_table_is_valid_and_says_if_it_is_empty() -> None:
    """Every choice must still be listed: changing a list removes the choices that left it."""
    assert (read() == {}) == ("no run on a GPU exists yet" in FILE.read_text())


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, KIND),
        ({"batch": 64, "passes": "backward", "scope": "layer"}, KIND),
        ({"seq_len": 2**17, "kv_seq_len": 2**17}, KIND),
        (
            {"seq_len": 2048, "kv_seq_len": 2048, "passes": "forward"},
            replace(KIND, passes="forward", queries=2048, keys=2048),
        ),
        ({"seq_len": 1, "causal_align": "bottom_right"}, replace(KIND, queries=1)),
        (
            {"kv_seq_len": 20, "causal_align": "bottom_right"},
            replace(KIND, queries=32, keys=32),
        ),  # the others see no key
        ({"d_k": 8, "d_v": 72}, KIND),
        ({"d_k": 8, "d_v": 8}, replace(KIND, width=16)),
    ],
)
def test_problems_that_differ_in_no_tile_are_of_one_kind(
    changes: dict[str, Any], kind: Kind
) -> None:
    assert kind_of(replace(PROBLEM, **changes), (9, 0)) == kind


@pytest.mark.parametrize(
    "changes", [{"mask": "local"}, {"softcap": 5.0}, {"sinks": True}, {"page": 16}]
)
def test_choices_of_problems_that_are_not_plain_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the table is of plain problems"):
        choice(problem=replace(PROBLEM, passes="forward", **changes))


def test_merged_choices_can_be_read_and_the_newest_of_a_kind_stays(table: Path) -> None:
    forward = replace(PROBLEM, passes="forward")
    table.write_text(merged([choice(), choice(problem=forward)], table))
    table.write_text(merged([choice(1, run="second")], table))
    found = read(table)
    assert found == {
        KIND: choice(1, run="second"),
        replace(KIND, passes="forward"): choice(problem=forward),
    }
    assert list(found[KIND].configs) == list(KERNELS)
    assert found[KIND].configs["forward"].descriptors
    assert json.loads(table.read_text())["about"] == ABOUT


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capability": "9"}, "not enough values"),
        ({"dtype": "fp8"}, "fp8"),
        (
            {"passes": "forward"},
            "configurations of ['forward', 'grad_q', 'grad_kv']; wanted ['forward']",
        ),
        ({"width": 256}, "is not listed for"),
        ({"capability": "8.0"}, "is not listed for"),
        ({"queries": 16}, "is not listed for"),
        ({"triton": ""}, "triton is ''; wanted the name of the one that chose"),
        ({"gpu": 9}, "gpu is 9; wanted the name of the one that chose"),
        ({"speed": 3}, "speed"),
    ],
)
def test_a_wrong_choice_is_refused_with_its_number(
    table: Path, changes: dict[str, Any], message: str
) -> None:
    table.write_text(merged([choice(problem=replace(PROBLEM, passes="forward")), choice()], table))
    written = json.loads(table.read_text())
    written["choices"][1] |= changes
    table.write_text(json.dumps(written))
    with pytest.raises(ValueError, match=r"tuned\.json: choice 2: ") as refusal:
        read(table)
    assert message in str(refusal.value)
