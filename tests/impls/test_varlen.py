"""impls/varlen.py over packed sequences and over pages, with splits and with older torch.

A fake in place of torch's function, which needs a GPU, reads what it is given as torch documents.
"""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.harness.measure.prepared_call import make_tensors
from attnbench.impls import Problem, load, make_inputs, varlen
from attnbench.impls.reference import reference
from tests.impls.flash_fake import attention

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SHAPE = {"d_model": 32, "heads": 4, "kv_heads": 2}
DECODE = {"causal": True, "causal_align": "bottom_right"}
PACKED = {"batch": 1, "lengths": "q7_2q1s9", "causal": True}
ASKED: list[dict[str, Any]] = []


def as_torch_does(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor, max_q: int,
    max_k: int, *, return_aux: Any = None, scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
    seqused_k: Tensor | None = None, block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor:  # fmt: skip
    """The signature of torch 2.13. FlashAttention 2 refuses pages of other sizes."""
    ASKED.append({"max": (max_q, max_k), "num_splits": num_splits, "firsts": (cu_seq_q, cu_seq_k)})
    assert enable_gqa == (query.shape[1] != key.shape[-2])
    outputs = []
    for one, (begin, end) in enumerate(pairwise(cu_seq_q)):
        if block_table is None:
            of = slice(int(cu_seq_k[one]), int(cu_seq_k[one + 1]))
            k, v = key[of], value[of]
        else:
            assert seqused_k is not None
            assert key.shape[1] % 256 == 0
            assert int(cu_seq_k[one + 1] - cu_seq_k[one]) == block_table.shape[1] * key.shape[1]
            pages = block_table[one].long()
            k, v = (x[pages].flatten(0, 1)[: int(seqused_k[one])] for x in (key, value))
        left, right = window_size
        outputs.append(attention(query[begin:end], k, v, scale or 0.0, right == 0, left, 0.0))
    return torch.cat(outputs)


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    ASKED.clear()
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", as_torch_does)


@pytest.mark.parametrize("variant", ["", "one_split"])
@pytest.mark.parametrize(
    "shape",
    [
        {"batch": 2, "seq_len": 1, "kv_seq_len": 300, "page": 256, **DECODE},
        {"batch": 3, "seq_len": 7, "kv_seq_len": 520, "page": 256, **DECODE},
        {"batch": 2, "seq_len": 5, "kv_seq_len": 260, "page": 256},
        {"batch": 2, "seq_len": 40, "kv_seq_len": 20, "page": 512, **DECODE},  # 20 see no key
        {"batch": 1, "seq_len": 9, "kv_seq_len": 300, "page": 256, "mask": "local", "window": 3}
        | DECODE,
        PACKED,
        {**PACKED, "mask": "local", "window": 3},
    ],
    ids=str,
)
def test_keys_are_found_by_the_table_and_by_where_sequences_begin(
    shape: dict[str, Any], variant: str
) -> None:
    p = Problem(**SHAPE, **shape)
    inputs = make_tensors(p, CPU, 0).inputs if p.page else make_inputs(p, CPU, 0)
    call = load(f"varlen:{variant}" if variant else "varlen").prepare(p, inputs, None)
    exact = reference(p, inputs, None, torch.arange(p.seq_len))
    assert torch.allclose(call().double(), exact, atol=1e-5)
    facts = getattr(call, "facts", {})
    assert facts.get("num_splits") == ASKED[0]["num_splits"] == (1 if variant else None)
    if p.page:
        assert ASKED[0]["max"][1] == -(-p.kv_seq_len // p.page) * p.page
    else:
        assert ASKED[0]["max"] == (7, 9)
        assert [one.tolist() for one in ASKED[0]["firsts"]] == [[0, 7, 8, 9], [0, 7, 16, 25]]
        assert {one.dtype for one in ASKED[0]["firsts"]} == {torch.int32}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"page": 16, "seq_len": 8}, "FlashAttention 2 needs a multiple of 256"),
        ({"page": 256, "lengths": "q5_q4"}, "needs either lengths or page"),
        ({"seq_len": 8}, "needs either lengths or page"),
        (
            {
                "page": 256,
                "seq_len": 8,
                "kv_seq_len": 9,
                "causal": True,
                "causal_align": "top_left",
            },
            "this one at the top left",
        ),
        ({"lengths": "q5_q4", "dtype": "fp32"}, "takes bf16 and fp16 only"),
        ({"lengths": "q5_q4", "d_v": 16}, "needs one width"),
        ({"lengths": "q5_q4", "d_k": 4, "d_v": 4}, "a multiple of 8"),
        ({"lengths": "q5_q4"}, None),
        ({"page": 256, "seq_len": 8}, None),
    ],
)
def test_what_it_does_not_compute_is_refused_in_a_line(
    more: dict[str, Any], said: str | None
) -> None:
    p = Problem(**{**SHAPE, "batch": 1, "dtype": "bf16", **more})
    found = varlen.why_not(p, CUDA, variant="")
    assert (found is None) if said is None else (said in str(found))
    assert "CUDA only" in str(varlen.unavailable(CPU, variant=""))


def test_torch_2_11_is_not_told_that_heads_share_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_2_11(
        query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor,
        max_q: int, max_k: int, *, scale: float, window_size: tuple[int, int],
    ) -> Tensor:  # fmt: skip
        where, how = (cu_seq_q, cu_seq_k, max_q, max_k), {"scale": scale, "enable_gqa": True}
        return as_torch_does(query, key, value, *where, window_size=window_size, **how)

    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", of_2_11)
    p = Problem(**SHAPE, **PACKED)
    inputs = make_inputs(p, CPU, 0)
    exact = reference(p, inputs, None, torch.arange(p.seq_len))
    assert torch.allclose(load("varlen").prepare(p, inputs, None)().double(), exact, atol=1e-5)


def test_a_torch_without_block_tables_or_splits_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 2.11."""
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", lambda query, key, value: query)
    p = Problem(**SHAPE, batch=1, dtype="bf16", seq_len=8, page=256)
    assert "has no block_table: pip install 'torch>=2.13'" in str(load("varlen").why_not(p, CUDA))
    assert "has no num_splits" in str(load("varlen:one_split").unavailable(CUDA))
    assert load("varlen").unavailable(CUDA) is None
