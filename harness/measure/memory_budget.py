"""A worker's memory budget, and how to recognise out of memory."""

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOMEM

import torch

from ..devices.host import address_space_bytes
from .peak_memory import release

OOM_SIGNS = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA out of memory",
    "CUDA error: out of memory",
    "Triton Error [CUDA]: out of memory",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "std::bad_alloc",
    "Cannot allocate memory",  # strerror(ENOMEM): of a mapping that failed, in a library's text
)
CODE_BYTES = 4 << 30
"""Address space for importing and compiling, on top of the budget.

transformers takes 0.5 GiB, torch's compiler 0.2 GiB and g++ 1 GiB.
"""


class Budget:
    """The memory budget of a worker, counted from what it uses when this is made.

    CPU: the soft limit of the address space, so that an allocation beyond it fails as torch's own
    out-of-memory error. Make it only after the thread pools have started, since their stacks count
    too. CUDA: a fraction of the device; an address-space limit would break CUDA's reservations.
    """

    def __init__(self, budget_bytes: int, device: torch.device) -> None:
        self.device = device
        self.hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        on_gpu = device.type == "cuda"
        if on_gpu:
            release(device)  # segments that are merely cached are free for cases
        used = torch.cuda.memory_reserved(device) if on_gpu else address_space_bytes()
        self.limit = used + budget_bytes
        self.extra_bytes = 0
        self.enforce()

    def enforce(self, extra_bytes: int = 0) -> None:
        """From here on allocations beyond the budget, and so much more, fail."""
        self.extra_bytes = extra_bytes
        self._set(self.limit + extra_bytes)

    def lift(self) -> None:
        """No limit, for our own work: the profiler's buffers, inputs that are made again."""
        if self.device.type == "cuda":
            torch.cuda.set_per_process_memory_fraction(1.0, self.device)
        else:
            resource.setrlimit(resource.RLIMIT_AS, (self.hard, self.hard))

    @contextmanager
    def for_code(self) -> Iterator[None]:
        """Give more room while code is imported or compiled."""
        with self._apart(self.limit + CODE_BYTES):
            yield

    @contextmanager
    def for_our_work(self) -> Iterator[None]:
        """No limit, for what is no case's: the exact result."""
        with self._apart(None):
            yield

    @contextmanager
    def _apart(self, limit: int | None) -> Iterator[None]:
        """The address space that stays taken belongs to the process from then on, not to a case."""
        if self.device.type == "cuda":  # the budget is the device's memory; code is on the host
            if limit is None:
                self.lift()
            yield
            self.enforce(self.extra_bytes)
            return
        before = address_space_bytes()
        self.lift() if limit is None else self._set(limit)
        try:
            yield
            release(self.device)
            self.limit += max(0, address_space_bytes() - before)
        finally:
            self.enforce(self.extra_bytes)

    def _set(self, limit: int) -> None:
        if self.device.type == "cuda":
            total = torch.cuda.get_device_properties(self.device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), self.device)
        else:
            soft = limit if self.hard == resource.RLIM_INFINITY else min(limit, self.hard)
            resource.setrlimit(resource.RLIMIT_AS, (soft, self.hard))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: torch's CUDA error, an allocator's, the kernel's, or Python's own."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == ENOMEM:
        return True
    kinds = RuntimeError | OSError | ImportError
    return isinstance(error, kinds) and any(sign in str(error) for sign in OOM_SIGNS)


def out_of_memory_reason(error: BaseException, budget_bytes: int) -> str:
    """How much was asked for and did not fit; else the error's own first line."""
    import humanize

    found = re.search(
        r"(?:allocate|mmap) (\d+) bytes|[Tt]ried to allocate ([\d.]+ [KMGT]iB)", str(error)
    )
    budget = humanize.naturalsize(budget_bytes, binary=True)
    if found is None:
        text = str(error).strip().split("\n")[0] or type(error).__name__
        return f"{text[:300]} (the budget is {budget})"
    size = found[2] or humanize.naturalsize(int(found[1]), binary=True)
    return f"{size} more did not fit into the budget of {budget}"
