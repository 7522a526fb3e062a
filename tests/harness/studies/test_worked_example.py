"""The worked example has the numbers that textbooks print, and those of definitions under masks."""

import pytest
import torch

from attnbench.harness.studies import worked_example
from attnbench.impls.problem import Problem


@pytest.fixture(scope="module")
def examples() -> dict[str, dict]:
    problem = Problem(batch=1, seq_len=64, d_model=64, heads=8)
    found = worked_example.run(problem, torch.device("cpu"), 0)
    return {one["mask"]: one for one in found}


def test_scores_weights_and_outputs_are_those_in_print(examples) -> None:
    one = examples["none"]
    assert one["score_rows"] == [[0.5, 0.5, 1.0], [0.5, 0.5, 0.5], [1.0, 1.0, 1.5]]
    printed = [0.274, 0.274, 0.452], [0.333, 0.333, 0.333], [0.274, 0.274, 0.452]
    assert [pytest.approx(row, abs=5e-4) for row in printed] == one["weight_rows"]
    first, second, third = one["output_rows"]
    assert first == third == pytest.approx([0.726, 0.726, 0.548, 0.726], abs=5e-4)
    assert second == pytest.approx([0.667] * 4, abs=5e-4)


def test_fills_and_booleans_agree_but_for_a_token_that_sees_nothing(examples) -> None:
    names = list(examples)
    causal, filled, nothing, fills = (examples[name] for name in names[1:])
    assert causal["weight_rows"] == filled["weight_rows"]
    assert causal["score_rows"][0] == [0.5, None, None]
    assert filled["score_rows"][0] == [0.5, -1e9, -1e9]
    assert nothing["weight_rows"][0] == [0, 0, 0]
    assert nothing["output_rows"][0] == [0, 0, 0, 0]
    assert fills["weight_rows"][0] == pytest.approx([1 / 3] * 3)
    assert nothing["output_rows"][1:] == fills["output_rows"][1:]


def test_backends_agree_with_the_numbers(examples) -> None:
    assert all(one["worst_error"] < 1e-6 for one in examples.values())
