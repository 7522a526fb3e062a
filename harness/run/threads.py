"""How many threads the workers of a run have, where the user does not say."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..devices.load import LEAST_S, LoadMeter
from ..devices.nvml import has_gpu
from ..files.errors import option

THREADS = "OMP_NUM_THREADS"


@contextmanager
def worker_threads(device: str, meta: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Workers that start meanwhile have the threads of the run that is resumed, of which `meta` is
    run.json, else as many as cores are idle now, at least one. Gives a sentence on the latter, ""
    if none were left out. Nothing is changed if the user has chosen, nor on a GPU or a `device`
    elsewhere.

    With two threads beside two busy loops on two cores 1 to 4 of quickstart's 10 pairs were
    decided, with one 10 of 10.
    """
    count, text = None, ""
    if THREADS in os.environ:
        pass
    elif meta is not None:
        count = meta["environment"].get("threads")
    elif device == "cpu" or (device == "auto" and not has_gpu()):
        meter = LoadMeter()
        time.sleep(1.5 * LEAST_S)
        if load := meter.busy():
            count = max(1, int(load.cores - load.others))
            text = (
                f"measured with {count} of {load.cores} threads because {load.text};"
                f" {option('threads', load.cores)} takes all"
            )
    if count is not None:
        os.environ[THREADS] = str(count)
    try:
        yield text
    finally:
        if count is not None:
            os.environ.pop(THREADS, None)
