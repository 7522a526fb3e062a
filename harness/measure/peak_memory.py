"""The peak memory of one call: exact bytes, and what the kernel and the device see of it."""

import ctypes
import gc
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch
from torch.autograd.profiler import profile as CpuProfile  # noqa: N812 - a class

from ..devices.nvml import nvml_device, open_gpu, used_bytes
from ..rows.readings import seen_from_bytes
from .clock import no_garbage_collection
from .output_check import tensors_of
from .warm_heap import WarmHeap

T = TypeVar("T")

MARK = "attnbench::measured"
ALLOCATION = "[memory]"  # the profiler's name of an event of the allocator
EVENTS = "allocator events"
UNCACHED = "PYTORCH_NO_CUDA_MEMORY_CACHING"
SLOW_S = 1.0  # a call that takes longer is not repeated for the less exact numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Bytes above what was allocated before the call was set up, under their names in a row.

    `peak_bytes` and `output_bytes` are exact: what was asked for. The others include pages, blocks,
    segments, and on the device also other processes. None if the device has no such number or the
    call is too slow to be repeated. docs/format.md has the details.

    `result_bytes`: of the tensors that the call returns; None if they are no plain tensors.
    `outside_result_bytes`: what else the call left alive with them, outside torch's allocator.
    """

    peak_bytes: int | None
    output_bytes: int | None
    peak_source: str | None
    resident_peak_bytes: int | None = None
    allocated_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    device_used_bytes: int | None = None
    result_bytes: int | None = field(default=None, compare=False)
    outside_result_bytes: int | None = field(default=None, compare=False)

    def row_fields(self) -> dict[str, Any]:
        """Without what only judges the peak itself."""
        own = ("result_bytes", "outside_result_bytes")
        return {name: value for name, value in asdict(self).items() if name not in own}


def peak(
    setup: Callable[[], T],
    call: Callable[[T], object],
    device: torch.device,
    *,
    resident: bool = False,
) -> Peak:
    """The most extra bytes alive at any moment of `call(setup())`, above what was before `setup`.

    What `setup` leaves behind counts, since the call needs it (a graph for the backward pass); its
    own peak does not. The output is what the call leaves alive while its result is held: an output,
    gradients, or a graph that depends on them. `resident` adds the kernel's view on the CPU; it
    changes the C heap's settings for good (see resident_peak_bytes).
    """
    with no_garbage_collection():  # what an earlier call left in a cycle is not freed in this one
        if device.type == "cuda":
            return _cuda(setup, call, device)
        return _cpu(setup, call, resident=resident)


def _cpu(setup: Callable[[], T], call: Callable[[T], object], *, resident: bool) -> Peak:
    """Running sum of the CPU allocator's own events, which include buffers inside kernels.

    Read from the profiler's raw events: its trace export may drop memory events (pytorch#166121).
    Events belong to the allocating thread, and torch's CPU kernels allocate in the calling one. Not
    torch.profiler.profile: that wrapper imports torch's compiler when it starts, which takes more
    than a second and some 100 MiB beside what is measured.
    """
    heap = WarmHeap()
    with allocations_followed() as profile:
        ready = setup()
        used = heap.used_bytes()
        begun = perf_counter()
        with torch.profiler.record_function(MARK):
            result = call(ready)
        spent_s = perf_counter() - begun
        grown = None if used is None else (heap.used_bytes() or used) - used
        size = result_bytes(result)
        del result, ready
    assert profile.kineto_results is not None
    mark = next(one for one in profile.kineto_results.events() if one.name() == MARK)
    start_ns, end_ns = mark.start_ns(), mark.start_ns() + mark.duration_ns()
    levels = allocated_levels(profile)
    before = next((size for ns, size in reversed(levels) if ns < start_ns), 0)
    during = [before, *(size for ns, size in levels if start_ns <= ns <= end_ns)]
    repeat = resident and spent_s <= SLOW_S
    return Peak(
        peak_bytes=max(during),
        output_bytes=during[-1] - before,
        peak_source=EVENTS,
        resident_peak_bytes=resident_peak_bytes(setup, call) if repeat else None,
        result_bytes=None if grown is None else size,
        outside_result_bytes=(None if grown is None else max(0, grown - (during[-1] - before))),
    )


def saved_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """What a forward pass with gradients leaves alive while its output is held: the output, and
    what its graph keeps for the backward pass. Calls it once; None if bytes are not counted.
    """
    return peak(lambda: None, lambda _: call(), device).output_bytes


@contextmanager
def allocations_followed() -> Iterator[CpuProfile]:
    """Record what torch's CPU allocator does meanwhile, for `allocated_levels` afterwards."""
    with warnings.catch_warnings():
        # The profiler warns of what it cannot see on a machine without a GPU.
        warnings.simplefilter("ignore")
        with CpuProfile(use_cpu=True, use_kineto=True, profile_memory=True) as profile:
            yield profile


def allocated_levels(profile: CpuProfile) -> list[tuple[int, int]]:
    """After each event of the allocator, in ns: the bytes that were allocated and not freed since
    it was followed; below 0 if more was freed.
    """
    assert profile.kineto_results is not None
    events: list[Any] = list(profile.kineto_results.events())
    events = [one for one in events if one.name() == ALLOCATION]
    events.sort(key=lambda one: one.start_ns())
    sizes = accumulate(one.nbytes() for one in events)
    return [(one.start_ns(), size) for one, size in zip(events, sizes, strict=True)]


def result_bytes(result: object) -> int | None:
    """Memory that the returned tensors need; None if one is not a plain tensor."""
    needed: dict[int, tuple[int, int]] = {}  # by storage: of the views on it, and its own size
    for tensor in tensors_of(result):
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return None
        storage = tensor.untyped_storage()
        seen, _ = needed.get(storage.data_ptr(), (0, 0))
        needed[storage.data_ptr()] = seen + tensor.nbytes, storage.nbytes()
    return sum(min(views, size) for views, size in needed.values())


def _cuda(setup: Callable[[], T], call: Callable[[T], object], device: torch.device) -> Peak:
    """What was asked for, before the allocator rounds; and what the allocator made of it."""
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_stats(device)
    ready = setup()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    prepared = torch.cuda.memory_stats(device)
    begun = perf_counter()
    result = call(ready)
    torch.cuda.synchronize(device)
    spent_s = perf_counter() - begun
    after = torch.cuda.memory_stats(device)
    exact = not uncounted()
    size = result_bytes(result) if exact and from_torch(result) else None
    del result, ready
    reserved, used = _reserved(setup, call, device) if spent_s <= SLOW_S else (None, None)
    requested, allocated = "requested_bytes.all", "allocated_bytes.all"
    return Peak(
        peak_bytes=after[f"{requested}.peak"] - before[f"{requested}.current"] if exact else None,
        output_bytes=(
            after[f"{requested}.current"] - prepared[f"{requested}.current"] if exact else None
        ),
        peak_source="cuda requested bytes" if exact else None,
        allocated_peak_bytes=after[f"{allocated}.peak"] - before[f"{allocated}.current"],
        reserved_peak_bytes=reserved,
        device_used_bytes=used,
        result_bytes=size,
    )


def from_torch(result: object) -> bool:
    """Whether all returned tensors lie in memory of torch's CUDA allocator, and none elsewhere.

    Raises RuntimeError for cudaMallocAsync, which has no snapshot.
    """
    spans = [(one["address"], one["total_size"]) for one in torch.cuda.memory_snapshot()]
    return all(
        isinstance(tensor, torch.Tensor)
        and any(start <= tensor.data_ptr() < start + size for start, size in spans)
        for tensor in tensors_of(result)
    )


def uncounted() -> str:
    """Why torch's CUDA allocator does not count what is asked for; "" if it does.

    torch reads the variable whatever its value is (c10/cuda/CUDACachingAllocator.cpp).
    """
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        return f"the allocator {backend} does not count the bytes that were asked for"
    if UNCACHED in os.environ:
        return f"with {UNCACHED} set torch does not count the bytes that were asked for"
    return ""


def _reserved(
    setup: Callable[[], T], call: Callable[[T], object], device: torch.device
) -> tuple[int, int | None]:
    """Segments taken from the device, from an empty cache on; and all that the device uses."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = call(setup())
    torch.cuda.synchronize(device)
    reserved, used = torch.cuda.max_memory_reserved(device) - before, device_used_bytes(device)
    del result
    return reserved, used


def device_used_bytes(device: torch.device) -> int | None:
    gpu = open_gpu(nvml_device(device)).value
    return used_bytes(gpu).value if gpu else None


def release(device: torch.device) -> None:
    """Return freed memory to the system, so that every case starts from the same level.

    Collects no garbage: see `freeze_gc`.
    """
    if device.type == "cuda":
        torch.cuda.empty_cache()
    else:
        ctypes.CDLL(None).malloc_trim(0)


def freeze_gc() -> None:
    """Collect garbage once, then exempt what is left from collection; call it without live tensors.

    Torch and its lazily loaded parts are a million objects: going through them took 0.2 s each
    time, most of a short run.
    """
    gc.collect()
    gc.freeze()


# ---- in resident pages: a check from outside torch -----------------------------------------------

# proc(5), /proc/pid/clear_refs: sets the high-water mark to what is resident now
RESET_HIGH_WATER = "5"
SLACK_BYTES = 1 << 20  # a mark that is further above was not reset


def resident_peak_bytes(setup: Callable[[], T], call: Callable[[T], object]) -> int | None:
    """VmHWM of `call(setup())` above what was resident before `setup`.

    None if the kernel keeps no such mark or does not reset it, or if the heap holds free blocks:
    they would be used again, and then stay resident beside the next tensor. It sees what torch's
    allocator does not: buffers of matrix libraries, other threads, Python's own. It does not see
    memory that is never touched, nor small tensors that fit into resident pages, so it is off by
    some 0.5 MiB either way.

    Sets the C heap to glibc's fixed defaults for good. While glibc moves its threshold by itself,
    tensors of up to 32 MiB are carved from a heap that keeps and splinters freed memory: naive at
    N = 2048, h = 8 then has 4.3 times its peak resident.
    """
    heap = WarmHeap()
    heap.give_back()
    ctypes.CDLL(None).malloc_trim(0)  # free pages would be used again without a trace
    free = heap.free_bytes()
    if free is None or free > seen_from_bytes("cpu"):
        return None
    before = status_bytes("VmRSS")
    ready = setup()
    if before is None or not _reset():
        return None
    result = call(ready)
    highest = status_bytes("VmHWM")
    del result, ready
    return None if highest is None else max(0, highest - before)


def _reset() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text(RESET_HIGH_WATER)
    except OSError:
        return False
    highest, now = status_bytes("VmHWM"), status_bytes("VmRSS")
    return highest is not None and now is not None and highest - now <= SLACK_BYTES


def own_bytes(pid: int) -> int:
    """Written pages that a process shares with none, so what a fork still shares does not count; 0
    if it has ended.
    """
    return status_bytes("Private_Dirty", f"{pid}/smaps_rollup") or 0


def status_bytes(name: str, of: str = "self/status") -> int | None:
    """A line of a file of /proc, proc(5); None if the kernel has no such line."""
    try:
        lines = Path("/proc", of).read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found.split()[1]) * 1024
