"""impls/paged_flex.py: flex_attention over pages where they lie."""

from random import Random

import pytest
import torch

from attnbench.harness.measure.prepared_call import make_tensors
from attnbench.impls import Problem, load
from attnbench.impls.paged_flex import in_one_row, page_mask
from attnbench.impls.shared.kv_tensors import read_back
from attnbench.impls.shared.mask_tensors import mask_matrix
from tests.budget import first
from tests.impls.conftest import complaints

CPU = torch.device("cpu")
DECODE = {"causal": True, "causal_align": "bottom_right"}
SHAPES = [
    {"batch": 2, "seq_len": 1, "kv_seq_len": 100, "page": 16, **DECODE},
    {"batch": 3, "seq_len": 150, "kv_seq_len": 210, "page": 8, **DECODE},
    {"batch": 2, "seq_len": 40, "kv_seq_len": 20, "page": 7, **DECODE},  # 20 queries see no key
    {"batch": 1, "seq_len": 5, "kv_seq_len": 33, "page": 64},
]


def problem_of(**shape: object) -> Problem:
    return Problem(d_model=64, heads=4, kv_heads=2, **shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_mask_has_each_key_of_a_sequence_once_and_no_other(shape: dict[str, int]) -> None:
    p = problem_of(**shape)
    inputs = make_tensors(p, CPU, 0).inputs
    mask = page_mask(p, inputs.more["page_table"])
    pool, (plain, _) = in_one_row(inputs.key), read_back(p, inputs, torch.float32)
    rows = torch.arange(p.seq_len - p.empty_rows)
    wanted = mask_matrix(p, rows + p.empty_rows)
    keys = torch.arange(pool.shape[2])
    for entry in range(p.batch):
        seen = mask.mask_mod(torch.tensor(entry), torch.tensor(0), rows[:, None], keys)
        seen = seen.expand(len(rows), -1)
        listed = mask.kv_indices[entry, 0, 0, : mask.kv_num_blocks[entry, 0, 0]]
        assert torch.equal((keys // p.page)[seen.any(0)].unique(), listed.long().sort().values)
        count = seen.sum(-1)
        assert torch.equal(
            count, torch.full_like(count, p.kv_seq_len) if wanted is None else wanted[0].sum(-1)
        )
        found = pool[0, :, seen[-1]]  # of the last query
        own = plain[entry] if wanted is None else plain[entry][:, wanted[0, -1]]
        assert torch.equal(found.sort(1).values, own.sort(1).values)


def test_pages_are_read_where_they_lie() -> None:
    inputs = make_tensors(problem_of(**SHAPES[0]), CPU, 0).inputs
    assert in_one_row(inputs.key).data_ptr() == inputs.key.data_ptr()


def test_a_gpu_needs_pages_as_large_as_blocks() -> None:
    backend, cuda = load("paged_flex"), torch.device("cuda")
    said = backend.module.why_not(problem_of(**SHAPES[0]), cuda)  # type: ignore[attr-defined]
    assert said.endswith("blocks of 128 keys; set page to a multiple of it")


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("shape", first(2, SHAPES))
def test_results_are_as_close_as_the_textbook(shape: dict[str, int], dtype: str) -> None:
    p = problem_of(**shape, dtype=dtype)
    if reason := load("paged_flex").why_not(p, CPU):
        pytest.skip(reason)
    assert complaints(p, ["paged_flex"], Random(ascii(p)).randrange(1000)) == {"paged_flex": ""}
