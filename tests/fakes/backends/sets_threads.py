"""A correct backend that leaves torch with one thread."""

import torch


def prepare(problem, inputs, weights):
    def call():
        torch.set_num_threads(1)
        return torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=problem.causal)

    return call
