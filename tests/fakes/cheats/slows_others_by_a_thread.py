"""Has a thread that multiplies matrices while it is not called itself."""

import threading

import torch
from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the baseline beside it is slower than in its own worker, and the answer says so"


def prepare(problem, inputs, weights):
    others = threading.Event()
    x = torch.randn(256, 256)

    def work():
        while True:
            others.wait()
            x @ x

    threading.Thread(target=work, daemon=True).start()

    def call():
        others.clear()
        result = scaled_dot_product_attention(*inputs)
        others.set()
        return result

    return call
