"""Replaces time.perf_counter_ns by a clock that runs at a tenth of the speed."""

import time

from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "clocks are bound before a backend is loaded"
real = time.perf_counter_ns


def prepare(problem, inputs, weights):
    def call():
        time.perf_counter_ns = lambda: real() // 10
        return scaled_dot_product_attention(*inputs)

    return call
