from itertools import product
from math import inf, nan
from typing import Any

import pytest

from attnbench.impls import Problem
from attnbench.impls.problem import ALL_MASKS

SIZES: dict[str, Any] = {"batch": 1, "seq_len": 8, "d_model": 16, "heads": 4}


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
            "mask is 'holes'; wanted one of: none, padding, random, local, strided, blocks,"
            " chunked, tree",
        ),
        ({"softcap": -1.0}, "softcap is -1.0; wanted a positive number, or 0 for none"),
        ({"softcap": inf}, "softcap is inf; wanted a positive number, or 0 for none"),
        ({"softcap": nan}, "softcap is nan; wanted a positive number, or 0 for none"),
        (
            {"window": 4},
            "window (4) with mask none, which has none; set mask to local, strided,"
            " blocks, chunked or tree",
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


def test_sizes_left_out_take_the_usual_values() -> None:
    p = Problem(**SIZES)
    assert (p.kv_seq_len, p.kv_heads, p.d_k, p.d_v, p.scale) == (8, 4, 4, 4, 0.5)
    assert Problem(**SIZES | {"heads": 3, "d_k": 5, "d_v": 7}).d_k == 5
    windows = [Problem(**SIZES | {"seq_len": 1024}, mask=mask).window for mask in ALL_MASKS]
    expected = {"none": 0, "padding": 0, "random": 0, "local": 128, "strided": 32, "blocks": 4}
    expected |= {"chunked": 128, "tree": 2}
    assert dict(zip(ALL_MASKS, windows, strict=True)) == expected


@pytest.mark.parametrize("align", ["top_left", "bottom_right"])
def test_empty_rows_are_those_counted_one_by_one(align: Any) -> None:
    for n_q, n_kv in product(range(1, 7), repeat=2):
        p = Problem(**SIZES | {"seq_len": n_q, "kv_seq_len": n_kv}, causal=True, causal_align=align)
        offset = n_kv - n_q if align == "bottom_right" else 0
        seen = [[j <= i + offset for j in range(n_kv)] for i in range(n_q)]
        assert p.empty_rows == sum(not any(row) for row in seen)
