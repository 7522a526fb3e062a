from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from torch.nn.attention import flex_attention
from torch.nn.attention.flex_attention import create_block_mask

from attnbench.impls import Problem, flex, load, make_inputs
from attnbench.impls.shared import flash_attention, inductor
from attnbench.impls.shared.flex_attention import block_mask
from attnbench.impls.shared.mask_tensors import computed_rows, mask_matrix

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
PARTS = tuple(
    f"{full}{side}_{what}"
    for full in ("", "full_")
    for side in ("kv", "q")
    for what in ("num_blocks", "indices")
)
LENGTHS = [
    (300, 300, ""),
    (256, 256, ""),
    (129, 128, "top_left"),
    (200, 500, "top_left"),
    (500, 200, "top_left"),
    (384, 640, "bottom_right"),
    (500, 200, "bottom_right"),
    # as after a cache: the first of two queries must not see the second's key
    *((n_q, n_q + more, "bottom_right") for n_q in (1, 2, 130) for more in (1, 63, 64, 127, 300)),
]
WINDOWS = (1, 64, 127, 128, 1000)


def causal(seq_len: int, kv_seq_len: int, align: str) -> Problem:
    shape = {"batch": 1, "seq_len": seq_len, "kv_seq_len": kv_seq_len, "d_model": 16, "heads": 1}
    return Problem(**shape, causal=True, causal_align=align)


def problems(mask: str) -> list[Problem]:
    triangles = [causal(*lengths) for lengths in LENGTHS]
    if mask == "none":
        return triangles
    placed = [one for one in triangles if one.seq_len <= one.kv_seq_len]
    placed.append(replace(causal(500, 500, ""), causal=False, causal_align=""))
    return [replace(one, mask=mask, window=window) for one in placed for window in WINDOWS]


@pytest.mark.parametrize("mask", ["none", "local", "chunked"])
def test_the_block_mask_is_the_one_that_torch_computes_from_all_pairs(mask: str) -> None:
    """There is none only where every query sees every key."""
    for problem in problems(mask):
        seen = mask_matrix(problem, computed_rows(problem, CPU))[0]

        def pair(b: Tensor, h: Tensor, q: Tensor, kv: Tensor, seen: Tensor = seen) -> Tensor:
            return seen[q, kv]

        ours = block_mask(problem, CPU)
        if ours is None:
            assert seen.all(), problem
            continue
        assert not seen.all(), problem
        theirs = create_block_mask(pair, None, None, *seen.shape, device="cpu")
        assert (ours.seq_lengths, ours.BLOCK_SIZE) == (theirs.seq_lengths, theirs.BLOCK_SIZE)
        for part in PARTS:
            assert torch.equal(getattr(ours, part), getattr(theirs, part)), (problem, part)
        (n_q, n_kv), zero = seen.shape, torch.tensor(0)
        pairs = ours.mask_mod(zero, zero, torch.arange(n_q)[:, None], torch.arange(n_kv))
        assert torch.equal(pairs, seen), problem


@pytest.mark.long
def test_a_long_mask_is_made_without_a_tensor_of_all_pairs() -> None:
    mask = block_mask(causal(1 << 18, 1 << 18, ""), CPU)  # all pairs would be 64 GiB
    assert mask.kv_num_blocks.numel() == 2048
    assert int(mask.full_kv_num_blocks.sum()) == 2048 * 2047 // 2


# ---- kernels that torch generates on a GPU -------------------------------------------------------

SMALL = {"batch": 1, "seq_len": 8, "d_model": 64, "heads": 4, "dtype": "bf16"}


@pytest.mark.parametrize("variant", ["", *flex.VARIANTS])
def test_a_variant_asks_torch_for_its_kernel_and_the_row_says_so(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a fake that computes nothing in place of torch's compiler for GPUs."""
    asked: list[dict[str, Any]] = []

    def noted(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        asked.append(options)
        return q

    for name, fake in (("flex_attention", noted), ("compiled", lambda f: f)):
        monkeypatch.setattr(flex, name, fake)
    monkeypatch.setattr(flex, "compile_now", lambda problem, inputs, weights, call: call)
    problem = Problem(**SMALL)
    backend = load(f"flex:{variant}" if variant else "flex")
    call = backend.prepare(problem, make_inputs(problem, CPU, 0), None)
    call()
    wanted = {"BACKEND": flex.BACKENDS[variant]} if variant else {}
    assert asked[0].get("kernel_options", {}) == getattr(call, "facts", {}) == wanted


def test_torch_knows_these_kernels_and_refuses_others() -> None:
    assert {*flex.BACKENDS.values()} <= {*get_args(flex_attention._Backend)}
    q = torch.zeros(1, 1, 16, 16)
    with pytest.raises(ValueError, match="Invalid BACKEND"):
        flex_attention.flex_attention(q, q, q, kernel_options={"BACKEND": "decode"})  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("variant", "changes", "said"),
    [
        ("decode", {"seq_len": 128}, "takes fewer than 128 queries, not 128"),
        ("decode", {"heads": 12, "kv_heads": 4, "d_model": 192}, "3 heads share a key"),
        ("decode", {"kv_heads": 2}, None),
        ("flash", {"dtype": "fp32"}, "not fp32"),
        ("flash", {"sinks": True, "passes": "backward"}, "no gradient of the log-sum-exp"),
        ("flash", {"sinks": True}, None),
        ("triton", {"seq_len": 500}, None),
    ],
)
def test_what_a_kernel_cannot_is_refused_in_a_line(
    variant: str, changes: dict[str, Any], said: str | None
) -> None:
    found = flex.why_not(Problem(**{**SMALL, **changes}), CUDA, variant=variant)
    assert (found is None) if said is None else (said in str(found))


def test_a_kernel_for_gpus_is_unavailable_elsewhere_and_names_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "flex_attention has its triton kernel for CUDA only, not for cpu"
    assert load("flex:triton").unavailable(CPU) == said
    package = "needs flash-attn-4, which is not installed: pip install --pre flash-attn-4"
    assert load("flex:flash").unavailable(CUDA) == package
    monkeypatch.setattr(flash_attention, "version", lambda package: "1")
    monkeypatch.setattr(inductor, "find_spec", lambda name: None)
    assert "needs triton" in str(load("flex:flash").unavailable(CUDA))
