"""Gives the heap's free memory back after its calls, so that others' calls have page faults."""

import ctypes

from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the baseline beside it is slower than in its own worker, and the answer says so"
PROBLEM = {"seq_len": 1024}
libc = ctypes.CDLL(None)


def unavailable(device):
    return None if device.type == "cpu" and hasattr(libc, "malloc_trim") else "needs glibc's heap"


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        libc.malloc_trim(0)
        return result

    return call
