"""A correct backend whose `prepare` loads 1 GiB of code, as compilers do, and can take its time
about it.
"""

import mmap
import os
import time

COMPILES = True
VARIANTS = ("slowly",)  # a name, and no kernel that would have to run
loaded = []


def prepare(problem, inputs, weights, *, variant):
    loaded.append(mmap.mmap(-1, 1 << 30))
    if variant == "slowly":
        time.sleep(float(os.environ["COMPILES_S"]))
    q, k, v = inputs
    return lambda: (q @ k.mT * problem.scale).softmax(-1) @ v
