"""Leaves all threads of the process on one core, except while it is called itself."""

import os
from pathlib import Path

from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the baseline beside it is slower than in its own worker, and the answer says so"


def unavailable(device):
    cores = len(os.sched_getaffinity(0))
    return None if device.type == "cpu" and cores > 1 else "it needs a CPU with two cores"


def prepare(problem, inputs, weights):
    cores = os.sched_getaffinity(0)

    def pin(to):
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), to)

    def call():
        pin(cores)
        result = scaled_dot_product_attention(*inputs)
        pin({min(cores)})
        return result

    return call
