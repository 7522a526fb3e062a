"""What the multiprocessors of a GPU count: cycles and nanoseconds, read by a kernel of one
instruction each, as nvbench does. Imports Triton; conditions.py asks for it on CUDA alone.
"""

from subprocess import SubprocessError

import torch
import triton
import triton.language as tl
from torch import Tensor

FAILURES = (
    AssertionError,
    AttributeError,
    OSError,
    RuntimeError,
    SubprocessError,
    ValueError,
    triton.TritonError,
)
"""What a launch raises without a driver or a C compiler, or in Triton's interpreter."""
PROGRAMS_PER_SM = 2  # so that nearly each multiprocessor gets one


@triton.jit
def stamp_kernel(cycles, times_ns):
    """Of the multiprocessor that runs this program."""
    sm = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
    cycle = tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
    )
    time_ns = tl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
    )
    tl.store(cycles + sm, cycle)
    tl.store(times_ns + sm, time_ns)


class SmStamps:
    """Stamps of one device. Raises one of FAILURES where the kernel cannot be launched."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.count = torch.cuda.get_device_properties(device).multi_processor_count
        self.take()

    def take(self) -> Tensor:
        """Cycles and nanoseconds by multiprocessor, [2, count]; 0 for one that had no program."""
        found = torch.zeros(2, self.count, dtype=torch.int64, device=self.device)
        stamp_kernel[(PROGRAMS_PER_SM * self.count,)](found[0], found[1], num_warps=1)
        return found.cpu()


def mean_mhz(before: Tensor, after: Tensor) -> float | None:
    """The mean clock between two stamps; None if no multiprocessor has both."""
    cycles, times_ns = (after - before)[:, (before[1] > 0) & (after[1] > before[1])].double()
    return float((1e3 * cycles / times_ns).mean()) if len(cycles) else None
