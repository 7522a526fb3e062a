"""A correct backend whose `prepare` takes 1 GiB of address space, as compilers do.

`compiles:slowly` also takes COMPILES_S seconds, `compiles:ahead` takes them before it.
"""

import mmap
import os
import time

COMPILES = True
VARIANTS = ("slowly", "ahead")  # without PINS_KERNEL: no kernel has to run
loaded = []


def compile_ahead(problem, device, *, variant):
    if variant == "ahead":
        time.sleep(float(os.environ["COMPILES_S"]))


def prepare(problem, inputs, weights, *, variant):
    loaded.append(mmap.mmap(-1, 1 << 30))
    if variant == "slowly":
        time.sleep(float(os.environ["COMPILES_S"]))
    q, k, v = inputs
    return lambda: (q @ k.mT * problem.scale).softmax(-1) @ v
