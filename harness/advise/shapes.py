"""A model as `attnbench advise` asks about it: its layers' problems, their bytes, and formulas of
a call's peak, without torch, whose import takes seconds.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.util import find_spec
from math import ceil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from ...impls import missing
from ...impls.discovery.loading import described
from ...impls.peak_formulas import nearest, sdpa_on_cuda
from ...impls.problem import ITEM_BYTES, Dtype, Problem
from ...reports.advise.asked import Asked, Bytes, Implementation, Phase
from ..cases.case import problem_of
from ..cases.costs import input_bytes
from ..devices.host import quota
from ..models.layers import Model
from ..models.questions import KV_BITS, appended_bytes, cache_bytes, cached_bytes, questions

if TYPE_CHECKING:
    import torch


_described, _missing = cache(described), cache(missing)  # asked for every context that is tried


def peak(backend: str, problem: Problem, device: str) -> Bytes:
    """By the backend's own formula, else by its nearest relative's. `device`: its kind."""
    own, place, threads = _described(backend), _place(device), usual_threads()
    if refused := _missing(backend) or own.why_not(problem, place):
        return Bytes(value=None, words=refused)
    found = own.peak_bytes(problem, place, threads)
    if found is not None:
        return Bytes(value=found, words="by the formula")
    if device == "cuda" and backend in ("sdpa", "hf", "hf:sdpa"):
        most = sdpa_on_cuda.most_bytes(backend, problem)
        if most is not None:
            words = "upper bound (torch's fused kernels)"
            return Bytes(value=most, words=words, at_most=True)
    for near in nearest(backend, problem, threads):
        found = _described(near.backend).peak_bytes(near.problem, place, threads)
        if found is not None:
            return Bytes(value=found + near.more_bytes, words=near.words, at_most=True)
    return Bytes(value=None, words=f"no formula for {backend} on {device}")


def _place(device: str) -> "torch.device":
    """What of a device formulas and refusals read: its type."""
    return cast("torch.device", SimpleNamespace(type=device))


@cache
def usual_threads() -> int:
    """How many threads torch takes in a worker (environment.fix_threads): OMP_NUM_THREADS, else one
    for each core that this process may use, without their second threads; no more than there are.
    """
    import psutil

    limit, cores = quota(), len(os.sched_getaffinity(0))
    allowed = ceil(limit.cores) if limit else psutil.cpu_count(logical=False)
    with suppress(KeyError, ValueError):
        allowed = int(os.environ["OMP_NUM_THREADS"])
    return max(1, min(cores, allowed or cores))


NAMES = ("eager", "sdpa", "flex_attention", "flash_attention_2")
COMPILES = "flex_attention"
OWN = {"eager": "fused", "sdpa": "sdpa", "flex_attention": "flex"}
"""Backends of attnbench that compute alike, where transformers is not installed."""


def implementations(*, by_transformers: bool | None = None) -> list[Implementation]:
    """The values of attn_implementation, with the backend that is measured for each."""
    if by_transformers is None:
        by_transformers = find_spec("transformers") is not None
    if by_transformers:
        return [
            Implementation(name=name, backend=f"hf:{name}", compiles=name == COMPILES)
            for name in NAMES
        ]
    return [
        Implementation(name=name, backend=backend, own=True, compiles=name == COMPILES)
        for name, backend in OWN.items()
    ]


def weights_of(model: Model, dtype: Dtype, *, given: bool) -> tuple[int | None, str, str]:
    """Bytes of all weights, in what they are stored, and how they are known; None, and why not.

    As the files have them, unless another dtype is `given` and the configuration tells how many.
    """
    counted = model.weights
    if model.weight_bytes is not None and (counted is None or not given):
        return model.weight_bytes, "in safetensors files", "those of the files beside config.json"
    if counted is None:
        return None, "", model.uncounted
    billions = counted.parameters / 1e9
    number = f"{billions:,.0f}" if billions >= 100 else f"{billions:.3g}"
    words = f"{number} billion parameters, {counted.words}"
    stored = f"in {counted.method}" if counted.method else f"in {dtype}"
    return counted.size_bytes(ITEM_BYTES[dtype]), stored, words


@dataclass(frozen=True, kw_only=True)
class ModelShapes:
    """reports.advise.asked.Shapes for a model in one dtype, on one kind of device.

    `kv_dtype`: one of KV_BITS, if keys and values are kept in fewer bits. `queries`: of phases that
    compute another number of tokens than questions.QUERIES says.
    """

    model: Model
    batch: int
    dtype: Dtype
    device: str
    kv_dtype: str = ""
    queries: Mapping[Phase, int] = field(default_factory=dict)

    def asked(self, phase: Phase, context: int) -> Sequence[Asked]:
        """Raises BadInput for a context beyond the model's own limit."""
        queries = self.queries.get(phase, 0)
        given: dict[str, Any] = {"context": context, "batch": self.batch, "dtype": self.dtype}
        found = questions(self.model, phase, queries=queries, **given)
        quantized = bool(self.kv_dtype)  # then k and v of a call are copies of what is kept
        return [
            Asked(
                phase=phase,
                layer=one.layer.text(),
                count=one.count,
                problem=None if one.problem is None else asdict(one.problem),
                why=one.why,
                cached_bytes=0 if quantized else cached_bytes(one, context=context),
                appended_bytes=appended_bytes(one),
            )
            for one in found
        ]

    def input_bytes(self, problem: Mapping[str, Any]) -> int:
        return input_bytes(problem_of(problem))

    def cache_bytes(self, context: int, *, paged: bool = False) -> int:
        bits = KV_BITS.get(self.kv_dtype, 8.0 * ITEM_BYTES[self.dtype])
        return cache_bytes(self.model, context=context, batch=self.batch, bits=bits, paged=paged)

    def predicted_peak(self, implementation: Implementation, problem: Mapping[str, Any]) -> Bytes:
        return peak(implementation.backend, problem_of(problem), self.device)
