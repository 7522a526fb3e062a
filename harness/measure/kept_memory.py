"""What a case keeps between its calls, and what it takes outside torch's allocator.

The baseline is taken before `prepare`. What `prepare` and earlier calls keep is not in the peak of
a call, and what numpy or a library allocates is in no count of torch: without both, a backend that
keeps its scores would look small.
"""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, TypeVar

import torch
from humanize import naturalsize

from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ..cases.costs import mask_bytes
from ..devices.host import descendants
from ..rows.readings import BELOW, seen_from_bytes
from .clock import Clock
from .peak_memory import (
    EVENTS,
    Peak,
    allocated_levels,
    allocations_followed,
    own_bytes,
    peak,
    status_bytes,
    uncounted,
)
from .warm_heap import WarmHeap

T = TypeVar("T")

WORTH_COLLECTING_BYTES = 1 << 20  # more than this may be garbage in cycles
COMPILES = "compiling and importing keep memory too, which cannot be told from the backend's"
PAGES = "resident pages"
AT_LEAST = f"{EVENTS}, at least: buffers of oneDNN are not among them"
NOT_COUNTED = "this system does not say how much memory is in use"
UNSEEN = f"{BELOW} ({naturalsize(seen_from_bytes('cpu'), binary=True, format='%.0f')})"
NO_PAGES = (
    "resident pages were not counted: the call takes more than a second, or the heap does not"
    " allow it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Bytes that are kept between calls, and the peak of `prepare`; `missing` says why one of those
    that are kept is None.
    """

    workspace_bytes: int | None
    outside_bytes: int | None
    prepare_peak_bytes: int | None = None
    missing: dict[str, str] = field(default_factory=dict)


def kept_memory(problem: Problem, device: torch.device, *, compiles: bool) -> "KeptMemory":
    """From here on, what is kept counts. `compiles`: as the backend's."""
    known = mask_bytes(problem)
    return CudaKept(device, known) if device.type == "cuda" else HostKept(known, compiles=compiles)


class HostKept:
    """Made before `prepare`, which `of` calls; `read` later, between two calls.

    Torch's part are its allocator's events during `prepare`; all else that malloc has given out
    since, or that is resident, is outside: also what torch's allocator got in the first call, and
    what processes hold that the backend has started.
    """

    def __init__(self, known_bytes: int, *, compiles: bool) -> None:
        """`known_bytes` count as inputs."""
        self.known_bytes, self.compiles = known_bytes, compiles
        self.torch_bytes = self.highest_bytes = 0
        self.before = self._in_use()

    def of(self, prepare: Callable[[], T]) -> T:
        with allocations_followed() as profile:
            result = prepare()
        sizes = [0, *(size for _, size in allocated_levels(profile))]
        self.torch_bytes, self.highest_bytes = sizes[-1], max(sizes)
        return result

    def read(self) -> Kept:
        torch_bytes, grown = max(0, self.torch_bytes), None if self.compiles else self._grown()
        if grown is not None and grown - torch_bytes > WORTH_COLLECTING_BYTES:
            gc.collect()
            grown = self._grown()
        why = COMPILES if self.compiles else NOT_COUNTED
        return Kept(
            workspace_bytes=max(0, torch_bytes - self.known_bytes),
            prepare_peak_bytes=max(0, self.highest_bytes - self.known_bytes),
            outside_bytes=None if grown is None else max(0, grown - torch_bytes),
            missing={"outside_bytes": why} if grown is None else {},
        )

    def _grown(self) -> int | None:
        """By the larger of two counts: malloc's is exact, pages see what is mapped without it."""
        pairs = zip(self._in_use(), self.before, strict=True)
        known = [now - then for now, then in pairs if now is not None and then is not None]
        return max(known, default=None)

    def _in_use(self) -> tuple[int | None, int | None]:
        own, shared = status_bytes("RssAnon"), status_bytes("RssShmem")
        if own is None:
            return WarmHeap().used_bytes(), None
        pages = own + (shared or 0)  # shared: mmap's default in Python
        pages += sum(map(own_bytes, descendants(os.getpid())))
        return WarmHeap().used_bytes(), pages


class CudaKept:
    """As HostKept: torch's part by its own statistics; outside is what else the device gave."""

    def __init__(self, device: torch.device, known_bytes: int) -> None:
        self.device, self.known_bytes = device, known_bytes
        self.before = self._reading()
        self.highest_bytes = 0

    def of(self, prepare: Callable[[], T]) -> T:
        torch.cuda.reset_peak_memory_stats(self.device)
        result = prepare()
        self.highest_bytes = self._reading()["highest"] - self.before["requested"]
        return result

    def read(self) -> Kept:
        if self._grown("requested") > WORTH_COLLECTING_BYTES:
            gc.collect()
        why, kept_bytes = uncounted(), self._grown("requested")
        return Kept(
            workspace_bytes=None if why else max(0, kept_bytes - self.known_bytes),
            prepare_peak_bytes=None if why else max(0, self.highest_bytes - self.known_bytes),
            outside_bytes=max(0, self._grown("used") - self._grown("reserved")),
            missing={"workspace_bytes": why} if why else {},
        )

    def _grown(self, name: str) -> int:
        return self._reading()[name] - self.before[name]

    def _reading(self) -> dict[str, int]:
        torch.cuda.synchronize(self.device)
        statistics = torch.cuda.memory_stats(self.device)
        free_bytes, total_bytes = torch.cuda.mem_get_info(self.device)
        return {
            "requested": statistics["requested_bytes.all.current"],
            "highest": statistics["requested_bytes.all.peak"],
            "reserved": torch.cuda.memory_reserved(self.device),
            "used": total_bytes - free_bytes,
        }


KeptMemory = HostKept | CudaKept


# ---- with the peak of a call ---------------------------------------------------------------------


def memory_fields(
    found: Peak, kept: Kept, device: torch.device, *, by_onednn: bool = False
) -> dict[str, Any]:
    """The fields of the case's row. `by_onednn`: it computes with a library whose buffers no
    allocator event tells of.
    """
    if by_onednn and found.peak_source == EVENTS:
        found = replace(found, peak_source=AT_LEAST)
    missing, outside = dict(kept.missing), kept.outside_bytes
    if device.type == "cuda":
        if found.peak_bytes is None:
            missing["peak_bytes"] = uncounted()
    else:
        found, why = _with_a_result_elsewhere(found)
        missing |= {"peak_bytes": why} if why else {}
        if outside is not None and found.resident_peak_bytes is None:
            outside, missing["outside_bytes"] = None, NO_PAGES
        elif outside is not None:
            outside += max(0, (found.resident_peak_bytes or 0) - (found.peak_bytes or 0))
            if outside < seen_from_bytes("cpu"):
                outside, missing["outside_bytes"] = None, UNSEEN
    return {
        **found.row_fields(),
        "workspace_bytes": kept.workspace_bytes,
        "prepare_peak_bytes": kept.prepare_peak_bytes,
        "outside_bytes": outside,
        "memory_missing": missing or None,
    }


def _with_a_result_elsewhere(found: Peak) -> tuple[Peak, str]:
    """If a result is not torch's memory, so that its exact count says little: the count by pages.
    Else as it is. And why there is none.
    """
    result, pages = found.result_bytes, found.resident_peak_bytes
    if result is None or (found.output_bytes or 0) >= result:
        return found, ""
    if pages is None or pages < seen_from_bytes("cpu"):
        unknown = replace(found, peak_bytes=None, output_bytes=result, peak_source=None)
        return unknown, NO_PAGES if pages is None else UNSEEN
    peak_bytes = max(found.peak_bytes or 0, pages)
    return replace(found, peak_bytes=peak_bytes, output_bytes=result, peak_source=PAGES), ""


def too_small(found: Peak) -> str:
    """Why the peak cannot be that of a call with this result; "" if it can."""
    if found.peak_bytes is None or found.result_bytes is None:
        return ""
    outside = found.outside_result_bytes or 0
    numbers = {"has a peak of": found.peak_bytes, "leaves": found.output_bytes or 0}
    for what, size in numbers.items():
        if size + outside < found.result_bytes:
            got, wanted = (naturalsize(n, binary=True) for n in (size, found.result_bytes))
            return (
                f"the call {what} {got}, less than the {wanted} of its own result: it returned"
                " memory that it had not allocated, so an earlier call or `prepare` did"
            )
    return ""


def mask_cost(
    problem: Problem, backend: Backend, device: torch.device, clock: Clock
) -> dict[str, float | None]:
    """What the backend's mask costs by itself: fields of the row; none if it builds none for this
    problem.

    The time is that of the second one: the first imports what it needs.
    """
    with torch.no_grad():
        if backend.build_mask(problem, device) is None:
            return {}
        clock.finish()
        start = perf_counter()
        mask = backend.build_mask(problem, device)
        clock.finish()
        spent_ms = (perf_counter() - start) * 1e3
        del mask
        found = peak(lambda: None, lambda _: backend.build_mask(problem, device), device)
    return {"mask_build_ms": spent_ms, "mask_build_peak_bytes": found.peak_bytes}
