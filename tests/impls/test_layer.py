import torch

from attnbench.impls import Problem, make_weights
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
