"""What is returned must be a plain tensor of its own, and every timed call must give the same."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnbench.harness.measure.output_check import (
    POSITIONS,
    Fingerprint,
    improper,
    share_storage,
)
from attnbench.harness.measure.prepared_call import make_tensors
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
SMALL = Problem(batch=2, seq_len=40, d_model=32, heads=4)
TENSORS = make_tensors(SMALL, CPU, 0)


class Lazy(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (torch.randn(2, 4, 40, 8), ""),
        (torch.randn(2, 40, 4, 8).transpose(1, 2), ""),  # in another layout, but its own
        (torch.randn(2, 4, 40, 8).as_subclass(Lazy), "of type Lazy; wanted a torch.Tensor"),
        (torch.nn.Parameter(torch.randn(2, 4, 40, 8)), "of type Parameter"),
        (None, ""),  # left out
        ([1.0], "of type list"),
        (torch.randn(2, 4, 40, 8).double(), "of torch.float64; wanted torch.float32"),
        (torch.randn(2, 4, 40, 8).to("meta"), "on meta"),
        (torch.randn(2, 4, 40, 8).to_sparse(), "in layout torch.sparse_coo"),
        (torch.randn(2, 4, 40, 1).expand(2, 4, 40, 8), "repeats 1280 bytes"),
        (TENSORS.inputs.value, "an input's own memory"),
        (TENSORS.inputs.query.flip(-1).set_(TENSORS.inputs.query.untyped_storage()), "own memory"),
    ],
)
def test_an_output_is_a_plain_tensor_in_storage_of_its_own(output, complaint):
    found = improper(SMALL, output, (), TENSORS)
    assert (complaint in found) if complaint else found == ""


def test_results_that_share_memory_are_recognised():
    one, other = torch.randn(4), torch.randn(4)
    assert not share_storage(one, other)
    assert share_storage(one, one[2:])
    assert share_storage((one, other), (torch.randn(2), other))


@pytest.fixture
def fingerprint():
    found = Fingerprint(SMALL, 0)
    output = torch.randn(2, 4, 40, 8)
    found.expected = {False: found.take(output), True: found.take(-output)}
    return found, output


def test_the_same_result_passes_in_either_sign_and_rounding_is_allowed(fingerprint):
    found, output = fingerprint
    found.look(output * (1 + 1e-6), False, must=True)
    found.look(-output, True, must=True)
    assert found.complaint == ""
    assert found.expected[False].size == POSITIONS


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda output: -output, "the result of earlier inputs"),
        (lambda output: output * 1.005, "another result than the call that was checked"),
        (lambda output: output * float("nan"), "another result"),
        (torch.zeros_like, "another result"),
    ],
)
def test_another_result_is_noticed_for_good(fingerprint, change, complaint):
    found, output = fingerprint
    found.look(change(output), False, must=True)
    assert complaint in found.complaint
    found.look(output, False, must=True)
    assert complaint in found.complaint


def test_one_wrong_tile_of_queries_is_noticed():
    problem = replace(SMALL, seq_len=4096, batch=1)
    found, output = Fingerprint(problem, 0), torch.randn(1, 4, 4096, 8)
    found.expected = {False: found.take(output)}
    output[:, :, 1024:1088] = 0.0
    found.look(output, False, must=True)
    assert "another result" in found.complaint


def test_results_that_ignore_their_inputs_are_recognised(fingerprint):
    found, _ = fingerprint
    assert found.follows_inputs()
    found.expected[True] = found.expected[False].copy()
    assert not found.follows_inputs()
    found.expected = dict.fromkeys((False, True), np.zeros(5))
    assert found.follows_inputs()  # all queries masked: nothing can follow


@pytest.mark.parametrize(
    ("calls", "repeats"),
    [  # what a call's result is multiplied by, and whether its inputs have the other signs
        ([(1, False)], None),
        ([(1, False), (1, False)], True),
        ([(1, False), (1 + 2**-23, False), (1 + 2**-23, False)], False),
        ([(1, False), (-1, True)], None),  # of other values
        ([(1, False), (-1, True), (-1, True)], True),
    ],
)
def test_bits_are_compared_with_those_of_the_call_before_on_equal_inputs(
    fingerprint, calls, repeats
):
    found, output = fingerprint
    for factor, flipped in calls:
        found.look(output * factor, flipped, must=True)
    assert (found.repeats_exactly, found.complaint) == (repeats, "")
