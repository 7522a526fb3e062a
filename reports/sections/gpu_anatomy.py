"""What an SM holds of the audited kernels."""

from collections.abc import Iterator

import pandas as pd

from ..audit import anatomy
from ..audit.kernels import by_gpu, kernels
from ..data.run_meta import Meta
from ..elements import Block, note

TITLE = "GPU anatomy"
ORDER = 47
NEEDS = ()
ABOUT = ("kernels",)


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    gpus = by_gpu(kernels(meta))
    if not gpus:
        yield note("No kernel was audited. attnbench kernels audit compiles and reads them.")
        return
    several = len({run for run, _ in gpus}) > 1
    yield from anatomy.blocks(list(gpus.values()), [run if several else "" for run, _ in gpus])
