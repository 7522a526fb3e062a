"""Keeps its result until one of a few sampled numbers of q, k and v changes."""

from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"
PROBLEM = {"seq_len": 2048}  # large enough for the physical floor: its inputs' changes it notices


def prepare(problem, inputs, weights):
    results = {}

    def call():
        key = tuple(float(x[0, 0, row, 0]) for x in inputs for row in (0, -1))
        if key not in results:
            results.clear()
            results[key] = scaled_dot_product_attention(*inputs)
        return results[key].clone()

    return call
