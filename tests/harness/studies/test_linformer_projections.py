"""Trained projections keep more of attention than random ones."""

import pytest
import torch

from attnbench.harness.studies import linformer_projections
from attnbench.impls.problem import Problem


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], dict]:
    torch.set_num_threads(1)
    problem = Problem(batch=1, seq_len=8, d_model=8, heads=1)
    findings = linformer_projections.run(problem, torch.device("cpu"), 0)
    return {(one["inputs"], one["projections"]): one for one in findings}


@pytest.mark.long
@pytest.mark.parametrize("kind", linformer_projections.KINDS)
def test_training_and_pooling_keep_what_random_projections_lose(found, kind: str) -> None:
    random, pooled, trained = (found[kind, name] for name in ("random", "mean pooling", "trained"))
    assert random["output_cosine_low"] < 0.1
    for one in (pooled, trained):
        assert one["output_cosine_low"] > random["output_cosine_high"]
        assert one["error_l2_ratio_high"] < random["error_l2_ratio_low"]


def test_smooth_inputs_have_the_variance_and_the_correlation_that_they_say() -> None:
    generator = torch.Generator().manual_seed(0)
    q, _, _ = linformer_projections._inputs("neighbours alike", 400, generator)
    assert float(q.var()) == pytest.approx(1, rel=0.1)
    products = (q[:, 1:] * q[:, :-1]).mean()
    assert float(products / q.square().mean()) == pytest.approx(0.9, abs=0.02)
