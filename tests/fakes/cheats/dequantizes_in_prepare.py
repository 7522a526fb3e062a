"""Dequantizes keys and values before the clock starts, and keeps them."""

from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.shared.kv_tensors import plain

COMPUTES = ("kv_dtype",)
INCORRECT = "from memory|times as far"
PROBLEM = {"seq_len": 64, "kv_seq_len": 1024, "kv_dtype": "int8"}


def prepare(problem, inputs, weights):
    _, read = plain(problem, inputs, inputs.query.dtype)
    return lambda: scaled_dot_product_attention(inputs.query, read.key, read.value)
