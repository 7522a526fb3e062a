"""Peak bytes of one call, exactly, and the budget that a worker lives under."""

import ctypes
import gc
import re
import resource
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

T = TypeVar("T")

MARK = "attnbench::measured"


def peak_bytes(setup: Callable[[], T], call: Callable[[T], object], device: torch.device) -> tuple[int, str]:
    """The most extra bytes alive at any moment of `call(setup())`, above what stood before `setup`, and how it was counted.

    What `setup` leaves behind counts, since the call needs it (a graph for the backward pass); its own peak does not.
    """
    if device.type == "cuda":
        return _cuda_requested(setup, call, device), "cuda requested bytes"
    return _allocator_events(setup, call), "allocator events"


def _cuda_requested(setup: Callable[[], T], call: Callable[[T], object], device: torch.device) -> int:
    """What the client asked for, before the allocator rounds: requested_bytes of torch.cuda.memory_stats."""
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_stats(device)["requested_bytes.all.current"]
    ready = setup()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = call(ready)
    torch.cuda.synchronize(device)
    peak = torch.cuda.memory_stats(device)["requested_bytes.all.peak"]
    del result, ready
    return int(peak - before)


def _allocator_events(setup: Callable[[], T], call: Callable[[T], object]) -> int:
    """Running sum of the CPU allocator's own events, which see buffers inside kernels too.

    Read from the profiler's raw events: its trace export may drop memory events (pytorch#166121). Events belong to the thread
    that allocates, and torch's CPU kernels allocate in the calling one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the profiler warns of what it cannot see on a machine without a GPU
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            ready = setup()
            with torch.profiler.record_function(MARK):
                result = call(ready)
            del result, ready
    events = profile.profiler.kineto_results.events()
    start_ns = next(event.start_ns() for event in events if event.name() == MARK)
    alive = 0
    peak: int | None = None
    for event in sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        if peak is None and event.start_ns() >= start_ns:
            peak = alive
        alive += event.nbytes()
        if peak is not None:
            peak = max(peak, alive)
    return alive if peak is None else peak


def release(device: torch.device) -> None:
    """Give back what has no owner any more, so that the next case starts from the same floor. Collects no garbage: see `settle`."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    else:
        ctypes.CDLL(None).malloc_trim(0)


def settle() -> None:
    """Break reference cycles, then put what is left out of the collector's sight. Only while no tensors are held.

    Torch and its lazily loaded parts are a million objects: going through them took 0.2 s each time, most of a short run.
    """
    gc.collect()
    gc.freeze()


class Budget:
    """The memory budget of a worker, counted from where it stands when this is made.

    CPU: the soft limit of the address space, so that an allocation beyond it fails as torch's own out-of-memory error; make it
    only after the thread pools have started, since their stacks count too. CUDA: a fraction of the device; an address-space
    limit would break CUDA's reservations.
    """

    def __init__(self, budget_bytes: int, device: torch.device) -> None:
        self.device = device
        self.hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        floor = torch.cuda.memory_reserved(device) if device.type == "cuda" else _address_space_bytes()
        self.limit = floor + budget_bytes
        self.tighten()

    def tighten(self, held_bytes: int = 0) -> None:
        """From here on allocations beyond the budget fail. `held_bytes` are ours, held for the gate, and do not count."""
        limit = self.limit + held_bytes
        if self.device.type == "cuda":
            total = torch.cuda.get_device_properties(self.device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), self.device)
        else:
            soft = limit if self.hard == resource.RLIM_INFINITY else min(limit, self.hard)
            resource.setrlimit(resource.RLIMIT_AS, (soft, self.hard))

    def relax(self) -> None:
        """For work that is ours and not the backend's: the reference, the profiler's buffers."""
        if self.device.type == "cuda":
            torch.cuda.set_per_process_memory_fraction(1.0, self.device)
        else:
            resource.setrlimit(resource.RLIMIT_AS, (self.hard, self.hard))


def _address_space_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out: torch's CUDA error, the CPU allocator's RuntimeError, or Python's own."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and any(sign in text for sign in OOM_SIGNS)


def out_of_memory_reason(error: BaseException, budget_bytes: int) -> str:
    """What was asked for and did not fit, in words; the error's own first line where it does not say how much."""
    import humanize

    found = re.search(r"allocate (\d+) bytes|[Tt]ried to allocate ([\d.]+ [KMGT]iB)", str(error))
    budget = humanize.naturalsize(budget_bytes, binary=True)
    if found is None:
        text = str(error).strip().split("\n")[0] or type(error).__name__
        return f"{text[:300]} (the budget is {budget})"
    asked = found[2] or humanize.naturalsize(int(found[1]), binary=True)
    return f"{asked} more did not fit into the budget of {budget}"


OOM_SIGNS = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "std::bad_alloc",
)


def available_bytes(device: torch.device) -> int:
    """Memory that a worker could take now: the device's, or the host's within its control group (cgroup v2 memory.max)."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        used -= int(counts["inactive_file"])  # page cache that the kernel gives back at once
    except (OSError, ValueError, KeyError):
        return free
    return free if limit == "max" else min(free, max(0, int(limit) - used))
