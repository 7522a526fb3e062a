"""Packages' own functions, by fakes of their signatures that compute what is documented."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.impls import Problem, library, load, make_inputs
from attnbench.impls.shared import flash_attention
from tests.impls.flash_fake import attention

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


SIGNATURES = {
    "flash_attn_2": "q, k, v, dropout_p=0.0, softmax_scale=None, causal=False,"
    " window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,"
    " return_attn_probs=False",
    "flash_attn_3": "q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None,"
    " k_descale=None, v_descale=None, window_size=(-1, -1), attention_chunk=0, softcap=0.0,"
    " num_splits=1, pack_gqa=None, deterministic=False, sm_margin=0, return_attn_probs=False",
    "flash_attn_4": "q, k, v, qv=None, gather_kv_indices=None, softmax_scale=None, causal=False,"
    " window_size=(None, None), learnable_sink=None, softcap=0.0, num_splits=1, pack_gqa=None,"
    " deterministic=False, return_lse=False",
    "flashinfer": "q, k, v, scale_q=None, scale_k=None, scale_v=None, o_dtype=None,"
    " custom_mask=None, packed_custom_mask=None, causal=False, kv_layout='NHD',"
    " pos_encoding_mode='NONE', use_fp16_qk_reduction=False, sm_scale=None, window_left=-1,"
    " logits_soft_cap=None, rope_scale=None, rope_theta=None, backend='auto', return_lse=False",
}
"""As the packages document them: another argument is a TypeError."""


def of_flash_attn(given: dict[str, Any]) -> Tensor:
    left, right = (-1 if one is None else one for one in given["window_size"])
    causal = given["causal"]
    assert right in ((0, -1) if causal else (left,))
    some = zip(given["q"], given["k"], given["v"], strict=True)
    scale, cap = given["softmax_scale"], given["softcap"]
    made = [attention(*one, scale, causal, left, cap) for one in some]
    return torch.stack(made).to(given["q"].dtype)


def of_flashinfer(given: dict[str, Any]) -> Tensor:
    names = ("q", "k", "v", "sm_scale", "causal", "window_left")
    cap = given["logits_soft_cap"] or 0.0
    return attention(*(given[name] for name in names), cap).to(given["q"].dtype)


def fake(name: str) -> Callable[..., Any]:
    bound = eval(f"lambda {SIGNATURES[name]}: locals()")
    computed = of_flashinfer if name == "flashinfer" else of_flash_attn
    if name == "flash_attn_4":
        return lambda *given, **named: (computed(bound(*given, **named)), None)
    return lambda *given, **named: computed(bound(*given, **named))


class LowerTriangularFromBottomRightMask:
    pass


def xformers(query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None, output_dtype=None):
    if query.dim() == 5:  # [batch, n, groups, heads of a group, width]
        assert key.shape[2:4] == query.shape[2:4]
        flat = (one.flatten(2, 3) for one in (query, key, value))
        return xformers(*flat, attn_bias, p, scale).unflatten(2, query.shape[2:4])
    causal = isinstance(attn_bias, LowerTriangularFromBottomRightMask)
    some = zip(query, key, value, strict=True)
    return torch.stack([attention(*one, scale, causal, -1, 0.0) for one in some]).to(query.dtype)


def tlx_hopper(q, k, v, sm_scale, config=None):
    return tlx_blackwell(q, k, v, sm_scale, False, config)


def tlx_blackwell(q, k, v, sm_scale, causal, config=None):
    """Of fbtriton 3.7.4: [batch, heads, n, width], whose heads must lie one after the other."""
    assert all(one.is_contiguous() for one in (q, k, v))
    one_by_one = ((x.transpose(0, 1) for x in some) for some in zip(q, k, v, strict=True))
    made = [attention(*some, sm_scale, causal, -1, 0.0) for some in one_by_one]
    return torch.stack(made).transpose(1, 2).to(q.dtype)


FAKES = {
    **{name: fake(name) for name in SIGNATURES},
    "xformers": xformers,
    "tlx_hopper": tlx_hopper,
    "tlx_blackwell": tlx_blackwell,
}


@pytest.fixture(params=FAKES)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a package that is installed."""
    _, module, name = library.PACKAGES[request.param]
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), ModuleType(parts[depth - 1]))
    setattr(sys.modules[module], name, FAKES[request.param])
    masks: Any = SimpleNamespace(
        LowerTriangularFromBottomRightMask=LowerTriangularFromBottomRightMask
    )
    monkeypatch.setitem(sys.modules, "xformers.ops.fmha.attn_bias", masks)
    monkeypatch.setattr(flash_attention, "version", lambda package: "1")
    major = library.TLX.get(request.param, (8, 0))[0]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (major, 0))
    return str(request.param)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"causal": True},
        {"kv_heads": 2, "causal": True},
        {"kv_heads": 1},
        {"seq_len": 3, "causal": True, "causal_align": "bottom_right"},
        {"mask": "local", "window": 2},
        {"mask": "local", "window": 2, "causal": True},
        {"softcap": 2.0, "causal": True},
        {"batch": 2},
    ],
    ids=str,
)
def test_each_is_called_so_that_it_computes_the_problem(
    variant: str, changes: dict[str, Any]
) -> None:
    n = 256 if variant in library.TLX else 9
    sizes = {"batch": 1, "seq_len": n, "kv_seq_len": n, "d_model": 64, "heads": 4, "dtype": "bf16"}
    problem = Problem(**{**sizes, **changes})
    backend = load(f"library:{variant}")
    if backend.why_not(problem, CUDA) is not None:
        few = variant in library.TLX and set(changes) & {"kv_heads", "seq_len", "causal"}
        assert few or set(changes) & {"mask", "softcap", "batch"}
        return
    inputs = make_inputs(problem, CPU, 0)
    expected = load("naive").prepare(problem, inputs, None)()
    assert torch.allclose(backend.prepare(problem, inputs, None)(), expected, atol=0.03)


def test_what_is_not_installed_is_named_with_what_installs_it() -> None:
    for name, (package, *_) in library.PACKAGES.items():
        backend = load(f"library:{name}")
        assert "needs a CUDA device" in (backend.unavailable(CPU) or "")
        line = flash_attention.INSTALL.get(package, package)
        assert package in line
        assert backend.unavailable(CUDA) == (
            f"needs {package}, which is not installed: pip install {line}"
        )
    assert "wanted one of library:flash_attn_2" in (load("library").unavailable(CUDA) or "")


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("flash_attn_2", {"dtype": "fp32"}, "not fp32"),
        ("flash_attn_2", {"d_v": 4}, "wanted one width"),
        ("flashinfer", {"batch": 2}, "takes one sequence"),
        ("flashinfer", {"passes": "forward+backward"}, "forward only"),
        ("flashinfer", {"mask": "local"}, "looks left only"),
        ("xformers", {"softcap": 5.0}, "neither a softcap"),
        ("flash_attn_3", {"kv_seq_len": 9, "causal": True, "causal_align": "top_left"}, "bottom"),
        ("tlx_hopper", {"causal": True}, "causal on Blackwell only"),
        ("tlx_blackwell", {"passes": "backward"}, "forward;"),
        ("tlx_blackwell", {"seq_len": 128}, "in 256s"),
        ("tlx_hopper", {"seq_len": 128, "d_model": 48}, "wanted one of (16, 32, 64, 128, 256)"),
    ],
)
def test_what_one_cannot_do_is_refused_in_a_line(
    name: str, changes: dict[str, Any], said: str
) -> None:
    sizes = {"batch": 1, "seq_len": 8, "d_model": 32, "heads": 4, "dtype": "bf16"}
    found = library.why_not(Problem(**{**sizes, **changes}), CUDA, variant=name)
    assert said in (found or "")


def test_those_that_compile_in_their_first_call_get_the_time_for_it() -> None:
    assert all(load(f"library:{name}").compiles for name in library.VARIANTS), "or import much"


def test_a_kernel_of_another_generation_of_gpus_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flash_attention, "version", lambda package: "1")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert load("library:tlx_hopper").unavailable(CUDA) is None
    said = "tlx_blackwell needs a GPU of compute capability 10.x; this one has 9.0"
    assert load("library:tlx_blackwell").unavailable(CUDA) == said
