"""Our tiled kernels in Triton, no score matrix; the portable ones changed: not yet run on a GPU.

The kernels are in _triton/kernels/, the function of torch in _triton/op.py; only `prepare` and
`compile_ahead` import triton. fp32 products use full precision unless
torch.set_float32_matmul_precision allows TF32, as in every other backend.
"""

from typing import TYPE_CHECKING

import torch

from ._triton.configs import SMALLEST_BLOCK, WIDEST, Config, Kernel
from .axes.lengths import sequences
from .backend import Attend, Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.inductor import missing_for_triton

if TYPE_CHECKING:
    from collections.abc import Mapping

NEEDS = ("triton",)
VARIANTS = ("portable", "pointers")  # without the kernel in Gluon; also without tensor descriptors
COMPUTES = ("padding", "local", "chunked", "lengths", "softcap", "sinks", "page")
OLDEST = (8, 0)  # compute capability: earlier ones have neither bf16 nor asynchronous copies
MAX_PROGRAMS = 2**31 - 1  # of a launch, along the one axis of the grid that is used
MAX_TOKENS = 2**30  # positions are counted in 32 bits, offsets in memory in 64


def unavailable(device: torch.device, *, variant: str) -> str | None:
    """Triton's interpreter runs anywhere but does not count: it does not show a kernel's speed."""
    if device.type != "cuda" or torch.version.hip:
        return f"needs a CUDA device; this is {'ROCm' if device.type == 'cuda' else device.type}"
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) < OLDEST:
        return f"needs a GPU of compute capability 8.0 or newer; this one has {major}.{minor}"
    return missing_for_triton()


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    p = problem
    width, tokens = max(p.d_k, p.d_v), max(p.seq_len, p.kv_seq_len)
    if width > WIDEST:
        return f"heads are {width} wide; the kernels hold up to {WIDEST}"
    if tokens > MAX_TOKENS:
        return f"sequences are {tokens} long; the kernels count up to {MAX_TOKENS}"
    if p.lengths and p.page:
        return "packed sequences whose keys lie in pages are not implemented; leave lengths out"
    batch = sequences(p.lengths) if p.lengths else ((p.seq_len, p.kv_seq_len),) * p.batch
    programs = len(batch) * p.heads * -(-max(map(max, batch)) // SMALLEST_BLOCK)
    if programs > MAX_PROGRAMS:
        return f"may need {programs} programs in one launch; CUDA starts up to {MAX_PROGRAMS}"
    return None


def compile_ahead(problem: Problem, device: torch.device, *, variant: str) -> None:
    """Chooses the configurations, in a process of its own if no run on this GPU has chosen them
    yet, and compiles the kernels in them.
    """
    from ._triton.op import example
    from ._triton.tuning import chosen, kind_of

    kind = kind_of(problem, device, variant=variant)
    launched = example(kind, torch.device("meta"))
    with torch.cuda.device(device):
        for kernel, choice in chosen(problem, kind, device).items():
            launched(kernel, choice.config).compile()


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    """The call's attribute `facts` says in which configurations the kernels run, and what choosing
    them cost.
    """
    from ._triton.tuning import chosen, facts, kind_of

    device = inputs.query.device
    kind = kind_of(problem, device, variant=variant)
    choices = chosen(problem, kind, device)
    core = attend(problem, inputs, {kernel: choice.config for kernel, choice in choices.items()})
    return as_call(problem, inputs, weights, core, fills=True, facts=facts(kind, choices))


def attend(problem: Problem, inputs: Inputs, configs: "Mapping[Kernel, Config]") -> Attend:
    """`configs`: of the kernels that the problem needs."""
    from ._triton.launch import Setting
    from ._triton.op import attention

    setting, sinks = Setting.of(problem, inputs, configs), inputs.more.get("sinks")
    return lambda q, k, v: attention(q, k, v, setting, sinks)[0]
