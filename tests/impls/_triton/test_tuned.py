"""The table of configurations that runs on GPUs chose: reading and refusing."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from attnbench.impls import Problem
from attnbench.impls._triton.configs import KERNELS, candidates
from attnbench.impls._triton.tuned import FILE, Kind, kind_of, read

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


def choice(problem: Problem = PROBLEM) -> dict[str, Any]:
    """As in the table."""
    sizes = {"capability": (9, 0), "item_bytes": 2, "width": 128, "n_q": 3000, "causal": True}
    configs = {
        kernel: asdict(candidates(kernel, **sizes, triton="3.6.0")[0])
        for kernel in (KERNELS if problem.backward else KERNELS[:1])
    }
    chosen = {"run": "first", "gpu": "NVIDIA H100", "triton": "3.6.0"}
    return asdict(kind_of(problem, (9, 0))) | {"configuration": configs} | chosen


def test_the_shipped_table_is_valid_and_says_if_it_is_empty() -> None:
    """Every choice must still be listed: changing a list removes the choices that left it."""
    assert (read() == {}) == ("no run on a GPU exists yet" in FILE.read_text())


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, KIND),
        ({"batch": 64, "passes": "backward", "scope": "layer"}, KIND),
        ({"seq_len": 2**17, "kv_seq_len": 2**17}, KIND),
        ({"seq_len": 1, "causal_align": "bottom_right"}, replace(KIND, queries=1)),
        (
            {"kv_seq_len": 20, "causal_align": "bottom_right"},
            replace(KIND, queries=32, keys=32),
        ),  # the others see no key
        ({"d_k": 8, "d_v": 8}, replace(KIND, width=16)),
    ],
)
def test_problems_that_differ_in_no_tile_are_of_one_kind(
    changes: dict[str, Any], kind: Kind
) -> None:
    assert kind_of(replace(PROBLEM, **changes), (9, 0)) == kind


def test_a_table_is_read_by_kinds(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    forward = replace(PROBLEM, passes="forward")
    path.write_text(json.dumps({"choices": [choice(forward), choice()]}))
    found = read(path)
    assert set(found) == {KIND, replace(KIND, passes="forward")}
    assert list(found[KIND].configs) == list(KERNELS)
    assert found[KIND].configs["forward"].descriptors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capability": "9"}, "not enough values"),
        (
            {"passes": "forward"},
            "configurations of ['forward', 'grad_q', 'grad_kv']; wanted ['forward']",
        ),
        ({"width": 256}, "is not listed for"),
        ({"triton": ""}, "triton is ''; wanted the name of the one that chose"),
    ],
)
def test_a_wrong_choice_is_refused_with_its_number(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    table = tmp_path / "tuned.json"
    forward = replace(PROBLEM, passes="forward")
    table.write_text(json.dumps({"choices": [choice(forward), choice() | changes]}))
    with pytest.raises(ValueError, match=r"tuned\.json: choice 2: ") as refusal:
        read(table)
    assert message in str(refusal.value)
