import re
from dataclasses import replace
from itertools import product
from math import inf, nan
from typing import Any

import pytest
import torch

from attnbench.impls import Problem, load
from attnbench.impls.axes import DECLARED
from attnbench.impls.discovery.registry import computing
from attnbench.impls.masks import WINDOWED
from attnbench.impls.problem import ALL_MASKS, AXES
from tests.impls.conftest import PROBLEMS, complaints

SIZES: dict[str, Any] = {"batch": 1, "seq_len": 8, "d_model": 16, "heads": 4}
LONG = "_".join(f"q{n}" for n in range(1, 41))


RAGGED: dict[str, Any] = {"seq_len": 0, "lengths": "q5_q1s4"}
PREFIX: dict[str, Any] = {
    "batch": 3,
    "seq_len": 4,
    "kv_seq_len": 20,
    "prefix": 11,
    "causal": True,
    "causal_align": "bottom_right",
}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batch": 0}, "batch is 0; wanted 1 or more"),
        ({"seq_len": -1}, "seq_len is -1; wanted 1 or more"),
        ({"d_k": -2}, "d_k is -2; wanted 1 or more, or nothing for the usual value"),
        (
            {"heads": 3},
            "d_model (16) is not a multiple of heads (3); choose other sizes, or give d_k and d_v",
        ),
        ({"kv_heads": 3}, "heads (4) must be a multiple of kv_heads (3)"),
        (
            {"causal_align": "top_left"},
            "causal_align without causal; set causal: true, or leave causal_align out",
        ),
        (
            {"causal": True, "kv_seq_len": 9},
            "causal with kv_seq_len (9) != seq_len (8) is ambiguous; set causal_align to top_left"
            " or bottom_right",
        ),
        ({"dtype": "fp64"}, "dtype is 'fp64'; wanted one of: fp32, bf16, fp16"),
        (
            {"passes": "both"},
            "passes is 'both'; wanted one of: forward, backward, forward+backward",
        ),
        ({"scope": "head"}, "scope is 'head'; wanted one of: core, layer, block"),
        (
            {"mask": "holes"},
            f"mask is 'holes'; wanted one of: {', '.join(ALL_MASKS)}",
        ),
        ({"softcap": -1.0}, "softcap is -1.0; wanted a positive number, or 0 for none"),
        ({"softcap": inf}, "softcap is inf; wanted a positive number, or 0 for none"),
        ({"softcap": nan}, "softcap is nan; wanted a positive number, or 0 for none"),
        (
            {"window": 4},
            f"window (4) with mask none, which has none; set mask to {', '.join(WINDOWED[:-1])} or"
            f" {WINDOWED[-1]}",
        ),
        (
            {"mask": "local", "kv_seq_len": 9},
            "mask local places each query at a key, but seq_len is 8 and kv_seq_len 9; make them"
            " equal, or set causal, causal_align and a longer kv_seq_len",
        ),
        (
            {"causal": True, "causal_align": "left"},
            "causal_align is 'left'; wanted one of: top_left, bottom_right",
        ),
    ],
)
def test_a_value_that_describes_no_problem_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        Problem(**SIZES | values)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rope": 4}, "rope (4) is the part of a latent cache"),
        ({"latent": 16, "rope": 4}, "rope (4) is part of d_k, which must be larger"),
        ({"latent": 16, "kv_heads": 2}, "every head makes its own keys"),
        ({"latent": 16, "page": 16}, "latent with page or kv_dtype"),
        (
            {"latent": 16, "scope": "layer"},
            "latent (16) is about stored keys and values",
        ),
        ({"page": 16, "scope": "block"}, "page (16) is about stored keys and values; set scope"),
        ({"kv_dtype": "int8", "scope": "layer"}, "kv_dtype int8 is about stored"),
        ({"page": 16, "passes": "backward"}, "passes backward with keys and values in a cache"),
        ({"page": -1}, "page is -1; wanted 0 or more"),
        ({"kv_dtype": "int4"}, "kv_dtype is 'int4'; wanted one of: same, int8, fp8"),
        (PREFIX | {"prefix": -1}, "prefix is -1; wanted 0 or more"),
        (PREFIX | {"prefix": 17}, "causal_align to bottom_right and kv_seq_len to 21 or more"),
        (PREFIX | {"causal_align": "top_left"}, "set causal_align to bottom_right"),
        (
            PREFIX | {"causal": False, "causal_align": "", "prefix": 20},
            "leaves no keys of its own",
        ),
        (PREFIX | {"mask": "padding"}, "a shared prefix is of plain keys that every query sees"),
        (PREFIX | {"page": 16}, "with latent, page, kv_dtype, lengths or a mask"),
        (PREFIX | {"kv_dtype": "int8"}, "with latent, page, kv_dtype, lengths or a mask"),
        (PREFIX | {"scope": "layer"}, "prefix (11) is about stored keys and values; set scope to"),
        (RAGGED | {"lengths": "2k"}, "'2k'; wanted <count>q<queries>s<keys>"),
        (RAGGED | {"lengths": "q0"}, "at least one sequence"),
        (RAGGED | {"lengths": "q5s4"}, "at least as many keys as queries"),
        (RAGGED | {"lengths": "4097q1"}, "more than 4096 sequences"),
        (RAGGED | {"lengths": "q5_q4", "batch": 2}, "pack their sequences into one row; wanted 1"),
        (RAGGED | {"lengths": "q5_q4", "seq_len": 5}, "have 9 tokens in all; leave seq_len out"),
        (RAGGED | {"lengths": "q5_q4", "kv_seq_len": 5}, "leave kv_seq_len out"),
        (RAGGED | {"mask": "random"}, "wanted one of: none, local, strided"),
        (RAGGED | {"causal": True, "causal_align": "top_left"}, "the last of their sequences"),
        (RAGGED | {"scope": "block"}, "scope block is self-attention"),
        (RAGGED | {"mask": "local"}, "places each query at a key"),
    ],
)
def test_what_nobody_stores_or_packs_so_is_refused_in_one_line(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        Problem(**SIZES | values)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        (
            "sdpa",
            {"softcap": 50.0},
            "does not compute softcap 50.0; see compiled, flex, fused, hf, library, naive, triton",
        ),
        (
            "sdpa",
            {"sinks": True},
            "does not compute sinks; see compiled, flex, fused, hf, naive, triton",
        ),
        ("sdpa", {"latent": 16, "rope": 2}, "does not compute latent 16; see mla"),
        ("naive", {"kv_dtype": "int8"}, "does not compute kv_dtype int8; see kv_cache"),
        ("fused", {"page": 8}, "does not compute page 8; see kv_cache, paged_flex, triton, varlen"),
        (
            "sparse_local",
            RAGGED | {"lengths": LONG, "mask": "local"},
            f"lengths {LONG[:40]}; see flex, fused, ",
        ),
        ("paged_flex", {"kv_dtype": "int8"}, "reads keys and values in pages only; set page"),
        ("mla", {}, "a latent cache only; set latent"),
        ("padded", {}, "needs lengths"),
        ("sequence_loop", {}, "needs lengths"),
    ],
)
def test_backends_refuse_what_they_do_not_compute_in_one_line(
    name: str, values: dict[str, Any], reason: str
) -> None:
    assert reason in str(load(name).why_not(Problem(**SIZES | values), torch.device("cpu")))


def test_every_axis_has_a_field() -> None:
    assert set(DECLARED) == set(AXES)


@pytest.mark.parametrize("name", [name for name, axis in AXES.items() if axis.scores])
def test_backends_compute_what_an_axis_makes_of_scores(name: str) -> None:
    more = 2 if AXES[name].type is int else 1.5
    problem = replace(PROBLEMS["wide_values"], **{name: AXES[name].default + more})
    found = complaints(problem, [one for one in computing(name) if not load(one).compiles], 0)
    assert found
    assert not any(found.values()), found


def test_sizes_left_out_take_the_usual_values() -> None:
    p = Problem(**SIZES)
    assert (p.kv_seq_len, p.kv_heads, p.d_k, p.d_v, p.scale) == (8, 4, 4, 4, 0.5)
    assert Problem(**SIZES | {"heads": 3, "d_k": 5, "d_v": 7}).d_k == 5
    usual = {"none": 0, "padding": 0, "random": 0, "local": 128, "strided": 32, "blocks": 4}
    for mask, window in (usual | {"chunked": 128, "tree": 2}).items():
        assert Problem(**SIZES | {"seq_len": 1024}, mask=mask).window == window


@pytest.mark.parametrize("align", ["top_left", "bottom_right"])
def test_empty_rows_are_those_counted_one_by_one(align: Any) -> None:
    for n_q, n_kv in product(range(1, 7), repeat=2):
        p = Problem(**SIZES | {"seq_len": n_q, "kv_seq_len": n_kv}, causal=True, causal_align=align)
        offset = n_kv - n_q if align == "bottom_right" else 0
        seen = [[j <= i + offset for j in range(n_kv)] for i in range(n_q)]
        assert p.empty_rows == sum(not any(row) for row in seen)
