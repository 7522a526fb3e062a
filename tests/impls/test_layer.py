from dataclasses import replace

import torch

from attnbench.impls import Problem, load, make_inputs, make_weights
from attnbench.impls.layer import BIAS_SD

CPU = torch.device("cpu")
SHAPE = Problem(batch=2, seq_len=12, d_model=24, heads=3, kv_heads=3, d_k=6, d_v=10, scope="layer")


def test_weights_are_equal_for_equal_seeds_and_within_xaviers_bound() -> None:
    one, same, other = (make_weights(SHAPE, CPU, seed) for seed in (5, 5, 6))
    assert all(torch.equal(a, b) for a, b in zip(one.tensors(), same.tensors(), strict=True))
    assert not torch.equal(one.w_q, other.w_q)
    assert one.w_o.shape == (24, 30)
    bound = (6 / (24 + 18)) ** 0.5
    assert 0.9 * bound < float(one.w_q.abs().max()) <= bound
    biases = torch.cat([one.b_q, one.b_k, one.b_v, one.b_o])
    assert 0.8 * BIAS_SD < float(biases.std()) < 1.2 * BIAS_SD


def test_head_i_owns_its_contiguous_block_of_columns() -> None:
    """If only head 1's rows of W_V are nonzero, only its columns of W_O matter."""
    weights, inputs = make_weights(SHAPE, CPU, 0), make_inputs(SHAPE, CPU, 0)
    weights = replace(weights, b_v=torch.zeros_like(weights.b_v))
    head = slice(SHAPE.d_v, 2 * SHAPE.d_v)
    w_v, w_o = torch.zeros_like(weights.w_v), torch.zeros_like(weights.w_o)
    w_v[head], w_o[:, head] = weights.w_v[head], weights.w_o[:, head]
    for name in ("naive", "fused", "sdpa"):
        backend = load(name)
        by_values = backend.prepare(SHAPE, inputs, replace(weights, w_v=w_v))()
        by_columns = backend.prepare(SHAPE, inputs, replace(weights, w_o=w_o))()
        assert torch.allclose(by_values, by_columns, atol=1e-6)
        assert by_values.any()
