"""How long compilers took while a case was set up, by their own counts.

torch's compiler counts whole frames and their backward passes, Inductor and what that calls in it
(torch._dynamo.utils.calculate_time_spent). Triton tells a listener of each kernel that it compiled.
Neither package is imported here: what has not been imported has compiled nothing.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

US_PER_MS = 1e3


class CompileTime:
    """`ms` in all: None if nothing was compiled."""

    ms: float | None = None

    def add(self, ms: float | None) -> None:
        if ms is not None:
            self.ms = (self.ms or 0.0) + ms

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add how long the work inside takes by the host's clock, also if it fails."""
        begun_s = perf_counter()
        try:
            yield
        finally:
            self.add((perf_counter() - begun_s) * 1e3)


@contextmanager
def compile_time() -> Iterator[CompileTime]:
    """Of what is compiled inside, complete after it."""
    found, triton = CompileTime(), CompileTime()
    before_ms = _torch_ms()
    with _listening(triton):
        yield found
    if (ms := _torch_ms() - before_ms) > 0:
        found.add(ms)  # kernels that it had Triton compile are in it
    else:
        found.add(triton.ms)


def _torch_ms() -> float:
    utils = sys.modules.get("torch._dynamo.utils")
    return utils.calculate_time_spent()["total_wall_time"] * 1e3 if utils else 0.0


@contextmanager
def _listening(found: CompileTime) -> Iterator[None]:
    """To Triton, from version 3.4 on; whoever listened before still hears."""
    knobs = sys.modules.get("triton.knobs")
    before = getattr(getattr(knobs, "compilation", None), "listener", None)

    def hear(**told: Any) -> None:
        if not told["cache_hit"]:
            found.add(told["times"].total / US_PER_MS)
        if before is not None:
            before(**told)

    if knobs is None:
        yield
        return
    knobs.compilation.listener = hear
    try:
        yield
    finally:
        knobs.compilation.listener = before
