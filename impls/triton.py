"""Our own tiled kernels in Triton, forward and backward: no score matrix, nothing copied, nothing
added in an order that changes.

The kernels stand in _triton_kernels.py, the operators that torch sees in _triton_op.py; triton is
imported only by `prepare`. fp32 is multiplied in full precision unless
torch.set_float32_matmul_precision allows TF32, as for every other backend.
"""

import torch
from torch import Tensor

from ._triton.configs import SMALLEST_BLOCK, WIDEST, Config
from .backend import Call, Inputs, Weights
from .layer import Attend, as_call, split_heads
from .masks.rules import padded_length
from .peak_formulas.sizes import Sizes
from .problem import Problem

NEEDS = ("triton",)
MASKS = ("padding",)
OLDEST = (8, 0)  # compute capability: earlier ones have neither bf16 nor asynchronous copies
MOST_PROGRAMS = 2**31 - 1  # of a launch, along the one axis of the grid that is used
MOST_TOKENS = 2**30  # positions are counted in 32 bits, offsets in memory in 64
LSE_BYTES = 4  # the log-sum-exp is fp32 whatever the dtype, and so is delta


def unavailable(device: torch.device) -> str | None:
    """Triton's interpreter runs the kernels on any machine, as the tests do; but how long that
    takes says nothing about a kernel.
    """
    if device.type != "cuda" or torch.version.hip:
        return f"needs a CUDA device; this is {'ROCm' if device.type == 'cuda' else device.type}"
    capability = torch.cuda.get_device_capability(device)
    if capability < OLDEST:
        return (
            "needs a GPU of compute capability 8.0 or newer; this one has"
            f" {capability[0]}.{capability[1]}"
        )
    return None


def why_not(problem: Problem, device: torch.device) -> str | None:
    p = problem
    width, tokens = max(p.d_k, p.d_v), max(p.seq_len, p.kv_seq_len)
    if width > WIDEST:
        return f"heads are {width} wide; the kernels hold up to {WIDEST}"
    if tokens > MOST_TOKENS:
        return f"sequences are {tokens} long; the kernels count up to {MOST_TOKENS}"
    programs = p.batch * p.heads * -(-tokens // SMALLEST_BLOCK)
    if programs > MOST_PROGRAMS:
        return f"may need {programs} programs in one launch; CUDA starts up to {MOST_PROGRAMS}"
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    """The call uses the configurations in _triton_tuned.json or the fastest of _triton_configs.py;
    its attribute `facts` says which.
    """
    from ._triton.tune import tuned

    with torch.no_grad():
        q, k, v = inputs if weights is None else split_heads(problem, inputs, weights)
        tuning = tuned(problem, q[:, :, problem.empty_rows :], k, v, tf32=allows_tf32())
    del q, k, v
    call = as_call(
        problem,
        inputs,
        weights,
        attend(problem, tuning.configs, key_mask(problem, inputs.query.device)),
    )
    call.facts = tuning.facts()  # type: ignore[attr-defined] # a function of our own, which takes attributes
    return call


def key_mask(problem: Problem, device: torch.device) -> Tensor | None:
    """Which keys are there, [batch, kv_seq_len]: given beforehand, as a padded batch comes with its
    lengths.
    """
    if problem.mask != "padding":
        return None
    lengths = [padded_length(problem, entry) for entry in range(problem.batch)]
    return (
        torch.arange(problem.kv_seq_len, device=device)
        < torch.tensor(lengths, device=device)[:, None]
    )


def attend(
    problem: Problem, configs: tuple[Config, Config, Config], keep: Tensor | None = None
) -> Attend:
    """`configs` are those of the kernels forward, grad_q and grad_kv; `keep` [batch, kv_seq_len]
    says which keys are there, None all.
    """
    from ._triton.op import attention

    scale, causal, tf32 = problem.scale, problem.causal, allows_tf32()
    offset = max(problem.causal_offset, 0)  # the queries that see no key are cut off before
    forward, grad_q, grad_kv = (config.numbers() for config in configs)
    return lambda q, k, v: attention(
        q, k, v, keep, scale, causal, offset, tf32, forward, grad_q, grad_kv
    )[0]


def allows_tf32() -> bool:
    return torch.get_float32_matmul_precision() != "highest"


def peak_bytes(problem: Problem, device: torch.device, threads: int) -> int | None:
    """Forward: output and log-sum-exp. With gradients: delta and the gradients beside them. Nothing
    grows with the square of N.
    """
    if device.type != "cuda":
        return None
    p, z = problem, Sizes(problem)
    rows_bytes = LSE_BYTES * p.batch * p.heads * z.rows
    if p.backward:
        known = p.scope == "core" and not p.empty_rows
        return z.o + 2 * rows_bytes + z.q + z.k + z.v if known else None
    core = max(z.o + rows_bytes, z.padded)
    if p.scope == "core":
        return core
    return max(
        z.projected + core, z.after_core if z.padded else z.o + z.y
    )  # the output lies merged already, which padding undoes
