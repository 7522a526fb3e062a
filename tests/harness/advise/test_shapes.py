"""A model's problems and bytes as attnbench advise asks for them, and what formulas say."""

import pytest

from attnbench.harness.advise.shapes import ModelShapes, implementations
from attnbench.harness.cases.case import problem_of
from attnbench.harness.cases.costs import input_bytes
from attnbench.harness.models.resolve import model_of
from attnbench.harness.scenario.preflight import preflight
from attnbench.reports.advise.asked import Implementation

GPT2 = ModelShapes(model=model_of("gpt2"), batch=2, dtype="fp32", device="cpu")


def test_each_kind_of_layer_is_a_problem_with_its_count():
    (asked,) = GPT2.asked("prefill", 128)
    assert asked.count == 12
    problem = problem_of(asked.problem)
    assert (problem.batch, problem.seq_len, problem.heads, problem.causal) == (2, 128, 12, True)
    assert GPT2.input_bytes(asked.problem) == input_bytes(problem)


def test_the_cache_is_two_numbers_per_width_token_and_layer():
    assert GPT2.cache_bytes(100) == 2 * 12 * 2 * 768 * 100 * 4
    assert GPT2.cache_bytes(100, paged=True) == GPT2.cache_bytes(112)  # in seven pages of 16 tokens


def test_a_backend_with_a_formula_is_predicted_by_it_exactly():
    import torch

    from attnbench.harness.cases.case import Case

    (asked,) = GPT2.asked("prefill", 256)
    found = GPT2.predicted_peak(Implementation(name="eager", backend="fused"), asked.problem)
    case = Case(backend="fused", problem=problem_of(asked.problem))
    fields = preflight(case, torch.device("cpu"), 1 << 40).fields
    assert found.value == fields["predicted_peak_bytes"]
    assert not found.at_most


@pytest.mark.skipif(
    not any(one.backend == "hf:sdpa" for one in implementations()), reason="needs transformers"
)
def test_a_function_of_transformers_is_bounded_by_the_backend_that_allocates_alike():
    (asked,) = GPT2.asked("prefill", 256)
    found = GPT2.predicted_peak(Implementation(name="eager", backend="hf:eager"), asked.problem)
    assert found.value is not None
    assert found.at_most
    assert "fused" in found.words
