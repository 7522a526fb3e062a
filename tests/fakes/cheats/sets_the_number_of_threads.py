"""Sets torch's number of threads in `prepare`, for everything that is measured after it."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the setting is one of its own process"


def prepare(problem, inputs, weights):
    threads = torch.get_num_threads()
    torch.set_num_threads(threads - 1 if threads > 1 else threads + 1)
    return lambda: scaled_dot_product_attention(*inputs)
