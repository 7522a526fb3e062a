"""What limits the audited kernels."""

from collections.abc import Iterator

import pandas as pd

from ..audit import limits
from ..audit.kernels import by_gpu, kernels
from ..data.run_meta import Meta
from ..elements import Block, note

TITLE = "What limits the kernels"
ORDER = 48
NEEDS = ()
ABOUT = ("kernels",)


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    gpus = by_gpu(kernels(meta))
    if gpus:
        yield from limits.blocks(list(gpus.values()))
    else:
        yield note("No kernel was audited. attnbench kernels audit compiles and reads them.")
