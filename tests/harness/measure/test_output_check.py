"""What is returned must be a plain tensor of its own, complete when the call returns."""

import pytest
import torch

from attnbench.harness.measure.output_check import FirstLook, digest, improper
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


@pytest.mark.parametrize("result", [torch.randn(2, 4, 40, 8), (torch.randn(40, 8), torch.ones(3))])
def test_a_result_that_changes_after_the_first_look_is_noticed(result):
    look = FirstLook(result)
    assert not look.changed
    (result if isinstance(result, torch.Tensor) else result[1]).mul_(2)
    assert look.changed


def test_equal_results_have_equal_digests_and_a_bit_makes_another():
    result = torch.randn(2, 4, 40, 8)
    assert digest(result) == digest(result.clone())
    assert digest((result, result)) != digest(result)
    other = result.clone()
    other[1, 3, 39, 7] = torch.nextafter(other[1, 3, 39, 7], torch.tensor(9.0))
    assert digest(other) != digest(result)
