"""Pins the threads of other workers of its run to one core, again and again."""

import os
from contextlib import suppress
from itertools import count
from pathlib import Path

from torch.nn.functional import scaled_dot_product_attention

from attnbench.harness.devices.host import descendants, run_pid

ESCAPES = "it reaches into other processes, as the user who started it may"


def unavailable(device):
    cores = len(os.sched_getaffinity(0))
    return None if device.type == "cpu" and cores > 1 else "it needs a CPU with two cores"


def prepare(problem, inputs, weights):
    calls = count()

    def pin():
        for process in {*descendants(run_pid())} - {os.getpid()}:
            if any(descendants(process)):  # the fork server and guards: forks would inherit it
                continue
            with suppress(OSError):
                for thread in Path(f"/proc/{process}/task").iterdir():
                    os.sched_setaffinity(int(thread.name), {0})

    def call():
        if next(calls) % 50 == 0:
            pin()
        return scaled_dot_product_attention(*inputs)

    return call
