"""Our tiled kernels in Triton, no score matrix; the portable ones changed: not yet run on a GPU.

The kernels are in _triton/kernels/, the torch operators in _triton/op.py; only `prepare` imports
triton. fp32 products use full precision unless torch.set_float32_matmul_precision allows TF32, as
in every other backend.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._triton.configs import BANDS, SMALLEST_BLOCK, WIDEST, Config
from .axes.lengths import sequences
from .backend import Attend, Call, Inputs, Weights
from .layer import as_call, make_weights, split_heads
from .masks.padding import padded_length
from .problem import Problem
from .shared.inductor import missing_for_triton
from .shared.inputs import make_inputs

if TYPE_CHECKING:
    from ._triton.tune import Tuner

NEEDS = ("triton",)
VARIANTS = ("portable", "pointers")  # without the kernel in Gluon; also without tensor descriptors
MASKS = ("padding", "local", "chunked")
COMPUTES = ("lengths", "softcap", "sinks", "page")
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
    """What `prepare` will launch, into Triton's cache, on all cores."""
    shape = torch.device("meta")
    inputs = make_inputs(problem, shape, seed=0)
    weights = make_weights(problem, shape, seed=0) if problem.scope != "core" else None
    with torch.no_grad():
        tuner, tensors = _tuner(problem, inputs, weights, device, variant)
        tuner.compile_ahead(*tensors)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    """The call uses configurations from _triton/tuned.json, or else the fastest of
    _triton/configs.py; its attribute `facts` says which.
    """
    device = inputs.query.device
    with torch.no_grad():
        tuner, tensors = _tuner(problem, inputs, weights, device, variant)
        tuning = tuner.tuned(*tensors)
    del tensors
    call = as_call(problem, inputs, weights, attend(problem, inputs, tuning.configs), fills=True)
    call.facts = getattr(call, "facts", {}) | tuning.facts  # type: ignore[attr-defined]
    return call


def _tuner(
    problem: Problem, inputs: Inputs, weights: Weights | None, device: torch.device, variant: str
) -> "tuple[Tuner, tuple[Tensor, Tensor, Tensor]]":
    """And the q, k and v that the kernels get."""
    from ._triton.tune import Tuner

    q, k, v = inputs if weights is None else split_heads(problem, inputs, weights)
    tuner = Tuner(problem=problem, device=device, tf32=allows_tf32(), variant=variant)
    return tuner, (q[:, :, problem.empty_rows :], k, v)


def key_mask(problem: Problem, device: torch.device) -> Tensor | None:
    """True for keys that exist, [batch, kv_seq_len]; made before the call, as padding is known."""
    if problem.mask != "padding":
        return None
    lengths = [padded_length(problem, entry) for entry in range(problem.batch)]
    keys = torch.arange(problem.kv_seq_len, device=device)
    return keys < torch.tensor(lengths, device=device)[:, None]


def attend(problem: Problem, inputs: Inputs, configs: tuple[Config, Config, Config]) -> Attend:
    """`configs` are those of the kernels forward, grad_q and grad_kv."""
    from ._triton.launch import Packed
    from ._triton.op import attention

    p, tf32, device = problem, allows_tf32(), inputs.query.device
    mask, band = key_mask(p, device), p.mask if p.mask in BANDS else ""
    offset = max(p.causal_offset, 0)  # queries that see no key never get here
    numbers = [config.numbers() for config in configs]
    packed = Packed.of(p.lengths, device) or (None, None, 0, p.kv_seq_len)
    table = inputs.more.get("page_table")
    more = (inputs.more.get("sinks"), p.softcap, band, p.window, *packed, table)
    return lambda q, k, v: attention(
        q, k, v, mask, p.scale, p.causal, offset, tf32, *numbers, *more
    )[0]


def allows_tf32() -> bool:
    return torch.get_float32_matmul_precision() != "highest"
