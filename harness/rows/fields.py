"""The fields of rows.jsonl, in parts that kinds of rows share; which parts each kind has.

Below a field stands what docs/format.md says of it; without a text it shares that of the next one.
A field that may be null may also be absent, as in rows of earlier versions.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from pydantic import Field, create_model

from ...impls.problem import AXES
from .values import (
    Count,
    Each,
    Int,
    Number,
    Object,
    Part,
    PlainValue,
    Readings,
    Reasons,
    Samples,
    StatusWord,
    Window,
)


class Named(Part):
    """What every row begins with."""

    schema_version: Int = Field(alias="schema")
    """format version"""
    kind: str
    """`latency`: a planned case, measured or with the reason why not"""
    case: str
    """stable id, for example `fused-b1-n4096-d512-h8-bf16-forward-core`; parts with their default
    value are left out"""


class OfBackend(Part):
    """Which backend."""

    backend: str
    """name, with the variant after a colon: `sdpa:flash`; `attribute@module` for a user's own"""
    python: str | None = None
    """in earlier versions, which measured cases in several interpreters: the name of the one that
    measured the case, in which `case` ends. Else null"""
    parameters: dict[str, PlainValue] | None = None
    """the parameters that the backend's name gives, as `{"rank": 64}` of `linformer[rank=64]`;
    columns `parameter_rank` when loaded. Null without any"""


class Copied(Part):
    """Which copy of the plan, in earlier versions."""

    replica: Int | None = None
    """in earlier versions, which measured each case on several devices: the number of the copy,
    from 1; `case` of the second ends in `replica2`. Else null"""


class Placed(Part):
    """Where."""

    device: str
    """`cpu` or `cuda`"""
    host: str | None = None
    device_uuid: str | None = None
    device_name: str | None = None
    """the machine that measured the case, by its network name; the GPU's UUID, null on a CPU; the
    name of the GPU, or of the processor"""


P = TypeVar("P", bound=Part)


def with_axes(*left_out: str) -> Callable[[type[P]], type[P]]:
    """A class decorator: adds the axes of a problem, as impls/axes/ says them."""

    def add(part: type[P]) -> type[P]:
        fields: dict[str, Any] = {}
        for name, axis in AXES.items():
            if name not in left_out:
                kind = {int: Int, bool: bool, float: Number}.get(axis.type, str)
                default = ... if axis.earliest is None else axis.earliest
                fields[name] = (kind, Field(default, description=axis.in_rows or None))
        return create_model(part.__name__, __base__=part, __module__=part.__module__, **fields)

    return add


@with_axes()
class Shape(Part):
    """The problem."""


@with_axes("seq_len", "kv_seq_len")
class ShapeOfWall(Part):
    """The problem at any length."""


class Claimed(Part):
    """What the backend says of itself."""

    exactness: Literal["exact", "approximate", "other"] | None = None
    """what the backend claims: `exact` attention, `approximate`, or `other` (it computes something
    else). Null if the case ended before the backend was read, and in rows of the first version,
    whose backends are exact"""
    input_order: Literal["heads", "model"] | None = None
    """how q, k and v of scope `core` lie in memory: `heads`, head by head, or `model`, as a model
    of Hugging Face has them: queries and the output's gradient token by token, keys and values too
    unless a decoder reads them from its cache. Null in other scopes, if the case ended before the
    backend was read, and in earlier versions, where it was `heads`"""


class Outcome(Part):
    """How it ended."""

    status: StatusWord
    """`ok`, `oom`, `predicted_oom`, `unsupported`, `unavailable`, `incorrect`, `timeout`,
    `crashed`, `error`, `interrupted`"""
    reason: str
    """why, as text; "" if and only if `status` is `ok`"""


class Sampled(Part):
    """Latency, and what disturbed it."""

    phase: str
    """the phase in which the case ended: `refuse`, `prepare`, `compile` (before it, or for a
    backend that compiles in it), `gate`, `memory`, `latency`, `utilization`, `kernels`; "" if ok or
    never started"""
    block_ms: Samples | None = None
    """latency samples, [process][block][call]. CPU: host clock. CUDA: events around one call on a
    stream filled beforehand, L2 cold"""
    beside: str | None = None
    """the baseline that was timed beside the case, in the same worker: a backend from outside has
    one of its own. Null for cases that share the run's workers, and in earlier versions"""
    beside_ms: Samples | None = None
    """its latency samples there, in the blocks of `block_ms` and nested as those; null without
    `beside`"""
    wall_block_ms: Samples | None = None
    """CUDA: host clock around call and synchronize, same nesting, at most 10 calls per block, L2 as
    the call leaves it; null on a CPU, where it would repeat `block_ms`"""
    hot_block_ms: Samples | None = None
    """CUDA: as `block_ms` without flushing L2; same nesting, at most 10 calls per block; null on a
    CPU"""
    graph_block_ms: Samples | None = None
    """CUDA: the call replayed as a CUDA graph, events inside the graph, L2 cold; same nesting, at
    most 10 calls per block; null on a CPU and without a graph"""
    graph_reason: str | None = None
    """CUDA: why there is no graph (a call of more than 10 ms, or one that cannot be captured); ""
    if there is one; null on a CPU and without a warm-up"""
    graph_failed: bool | None = None
    """CUDA: whether capturing the graph was tried and failed; null on a CPU and without a
    warm-up"""
    late_calls: Int | None = None
    """CUDA: calls of `block_ms` and `hot_block_ms` that began on the GPU before the host had
    launched all of them, so that launch gaps may be in their time; null on a CPU"""
    launch_ms: Number | None = None
    """CUDA: how long the host is busy with launching the call, the shortest of some readings; null
    on a CPU"""
    unseen_work: bool | None = None
    """CUDA: whether the wall clock saw much more than the events: `wall_block_ms` - `launch_ms`
    above 1.5 x `block_ms` + 0.2 ms, so that work may have run where no event saw it; null on a
    CPU"""
    shortest_call_ms: Number | None = None
    """what a call takes at least here that does anything, measured before any backend was loaded. A
    shorter latency is an `error`"""
    kv_copies: Int | None = None
    """CPU: so many copies of keys and values took turns in `block_ms`, one in each call, so that
    they came from memory (`plan.caches: cold`): all copies together are twice the last-level caches
    or more. Null if every call read the same ones, which caches may have held, and on a GPU, whose
    L2 is flushed"""
    conditions: Each[Each[Readings]] | None = None
    """what the machine did during each block: objects, [process][block], in the order of
    `block_ms`; see Conditions of a block"""
    processes: Int | None = None
    """worker processes that contributed samples"""
    stop: str | None = None
    """why sampling ended: `ci` (the latency and every reported ratio that could still be measured
    are as precise as requested), `budget` (time spent), `blocks` (the plan's maximum)"""
    half_width_ratio: Number | None = None
    """half the width of the latency's interval when sampling ended, on the log scale: 0.03 is 3 %
    to either side. Computed at 96.5 %, which covers the truth in 95 % of runs (method.md). Null
    with one block"""
    pair_half_width_ratio: Number | None = None
    """the same for the widest reported ratio of the case: to the baseline (else the first backend),
    to the first value of a `contrast` axis, to the first environment; null without such a ratio"""
    contended_blocks: Int | None = None
    """blocks in which threads waited for a core or the hypervisor took time, together for more than
    5 % of the block's time; kept, not dropped; null if unknown"""
    throttled_blocks: Int | None = None
    """blocks in which a CPU quota held the process back, heat or the power supply slowed the GPU
    down, or its mean clock was below 75 % of the median; kept, not dropped; null if unknown"""
    warmup_stationary: bool | None = None
    """whether call times were stationary at the end of every warm-up of every process: false if one
    was not; null if one had too few calls to tell, or there was no warm-up"""


class Weighed(Part):
    """Memory, counted and predicted."""

    input_bytes: Count | None = Field(None, title="inputs")
    """inputs and weights, and the output's gradient if gradients are computed"""
    peak_bytes: Count | None = Field(None, title="peak")
    """extra bytes above these at the highest point of a call, output included"""
    output_bytes: Count | None = Field(None, title="output")
    """the part of `peak_bytes` that the call leaves alive while its result is held: the output, or
    the gradients. The rest are temporaries (`temporary_bytes` when loaded)"""
    saved_bytes: Count | None = Field(None, title="kept for backward")
    """with gradients: what the forward pass leaves alive for the backward pass, its output
    included, beyond inputs and weights. Null without gradients"""
    peak_source: str | None = None
    """how `peak_bytes` was counted: `allocator events`, `cuda requested bytes`, or `resident pages`
    for a call on a CPU whose result is not in torch's memory. In half precision and in backward
    passes on a CPU it says `at least`: oneDNN's buffers are not counted"""
    workspace_bytes: Count | None = Field(None, title="kept between calls")
    """memory of torch's allocator that `prepare` and earlier calls keep between calls, beyond
    inputs, weights and a mask that counts as an input. In addition to `peak_bytes`"""
    outside_bytes: Count | None = Field(None, title="outside torch")
    """memory outside torch's allocator (numpy, malloc, a library's own) that is kept between calls,
    or that a call takes in addition to `peak_bytes`. CPU: what malloc has in use and the kernel's
    count of pages, so off by some MiB, and null below 4 MiB. CUDA: device memory between calls,
    other processes included. `needed_bytes` when loaded is peak and workspace, and this if it can
    be seen (method.md)"""
    memory_missing: Reasons | None = None
    """why `peak_bytes`, `workspace_bytes` or `outside_bytes` is null: name and reason"""
    resident_peak_bytes: Int | None = None
    """CPU: `peak_bytes` as the kernel sees it, VmHWM above what was resident before; from a
    separate call. Null if a call takes more than 1 s, if the kernel cannot reset VmHWM, if the heap
    holds free blocks of earlier cases, and with the default allocator"""
    allocated_peak_bytes: Int | None = None
    """CUDA: `peak_bytes` as rounded by the allocator"""
    reserved_peak_bytes: Int | None = None
    """CUDA: segments that the allocator took from the device for the call, starting from an empty
    cache; from a separate call"""
    device_used_bytes: Int | None = None
    """CUDA: everything in use on the device at the end of that call, contexts and other processes
    included (NVML v2); null without pynvml"""
    predicted_peak_bytes: Count | None = Field(None, title="predicted peak")
    """`peak_bytes` before anything runs; present also if the case ran out of memory"""
    predicted_source: str | None = None
    """its source: the backend's `formula`; in earlier versions also `meta`, its code run on tensors
    without memory"""
    predicted_reason: str
    """why there is no prediction; "" if there is one"""


class Counted(Part):
    """The work of exact attention."""

    work_flops: Count | None = Field(None, title="work")
    """floating-point operations of the matrix products that exact attention needs on this problem,
    whatever the backend does; null if more than 2^63 - 1, as for every number of the plan"""
    work_exps: Count | None = None
    """exponentials of the softmax of exact attention, and tanh of a softcap; 0 for the backward
    pass alone"""
    minimal_bytes: Count | None = Field(None, title="minimal traffic")
    """bytes that any backend must read or write once: inputs that the mask does not exclude, and
    results"""
    padding_ratio: Number | None = None
    """of a ragged batch: the share of its tokens that would be padding if every sequence were
    padded to the longest; null without `lengths`, and in earlier versions"""


class Checked(Part):
    """Against the exact result."""

    error_l2_ratio: Number | None = None
    """norm of the backend's error over the norm of the exact result (float64), the worst of output
    and gradients; null if `exactness` is `other`"""
    output_cosine: Number | None = None
    """`approximate` backends: cosine of the angle between their output and the exact one, over all
    rows that are checked; 1 is equal but for a factor, near 0 carries no information on it"""
    error_ratio: Number | None = Field(None, title="error ratio")
    """that error over the error of the textbook formula in the same dtype. Up to 2 passes, and what
    summing the keys in sequence in fp32 explains; for `approximate` backends it has no limit"""
    error_limit_ratio: Number | None = None
    """up to which `error_ratio` passes; null for backends that have no limit"""
    repeats_exactly: bool | None = None
    """whether two calls with equal inputs, before a process times the case, gave equal bits, at up
    to 65 536 elements of the output or of each gradient, whichever is timed; false if one did not.
    Null without two such calls, and in the first versions"""
    processes_repeat_exactly: bool | None = None
    """whether the first of these calls, whose inputs are equal in every process, gave the same bits
    in all processes. Null with one process, and in the first versions"""
    judged: Each[Object] | None = None
    """the results of timed calls that were judged apart, at least one in each process: the number
    of the `process`, `values_seed`, of the inputs' numbers, `places_seed`, from which the places
    were drawn that were compared, and `error_ratio` there. Null if none was; earlier versions had
    `check` and `rows_seed`"""


class Prepared(Part):
    """What ran, and its set-up."""

    kernel_requested: str | None = None
    """the kernel that the user pinned (`flash`; `flash3` is `flash` of the generation `FA3`); null
    if the choice was open, or the variant is not a kernel"""
    kernel: str | None = None
    """the kernel that ran, observed inside the call; null if no known part of attention was seen,
    as in compiled code that calls no operator for it"""
    kernel_generation: str | None = None
    """CUDA: which implementation answered to the name `flash`, or to that of varlen_attn: `FA2` is
    torch's own, `FA3` and `FA4` have been activated in its place; null for other kernels and on a
    CPU"""
    session: str | None = None
    """rows with equal sessions were measured in the same interleaved blocks, so that their ratios
    are paired; a row with `beside` only with that baseline and with rows of its own backend"""
    mask_build_ms: Number | None = Field(None, title="its mask")
    """one reading of the host clock: building the backend's mask alone, a second time. `naive`,
    `fused`, `sdpa` and `padded` build it in each call, so that it is in their latency and peak too;
    `flex` builds its block mask, and whoever passes a matrix that one, once in the set-up, and it
    is in neither. Null without a mask, without `measure: memory`, and in earlier versions"""
    mask_build_peak_bytes: Count | None = Field(None, title="mask's peak")
    """the most bytes alive while it is built, itself included"""
    prepare_peak_bytes: Count | None = Field(None, title="set-up's peak")
    """the most bytes of torch's allocator alive during the set-up, `prepare_ms`: what building a
    mask, tuning and the first call of compiled code take. What a compiler takes itself is not
    torch's. Null as `workspace_bytes`, and in earlier versions"""
    prepare_ms: Number | None = None
    """one reading of the host clock: the backend's set-up, tuning included, and compiling that is
    no phase of its own; never part of a latency"""
    compile_ms: Number | None = Field(None, title="compiling")
    """how long compilers took in it, and in the phase before it if the backend has one: by torch's
    own count of frames and backward passes, else that of Triton's kernels, of the phase before by
    the host clock. What a cache on disk held was not compiled anew. Null if nothing was compiled,
    and in earlier versions"""
    first_call_ms: Number | None = None
    """the same for the first call after the set-up, with gradients if they are computed; includes
    late compilation and the time to observe which kernel runs"""


class Watched(Part):
    """Utilization."""

    utilization_tier: str | None = None
    """the kind of utilization that the windows have: `gpm` (performance counters), `busy` (any
    kernel at all), `derived` (work over the measured peak), `host` (CPU time); null if none was
    requested"""
    windows: Each[Window] | None = None
    """what the device did while the case ran in a steady loop, one object per window; see
    Windows"""
    tables: Object | None = None
    """what probes with calls of their own found, by name; see Windows"""
    missing: Reasons | None = None
    """why a value of `windows` or `tables` is null: name and reason"""
    configuration: Object | None = None
    """what the backend chose while it was prepared; null if it reports nothing. `triton`: tile
    sizes, warps and stages per kernel, how they were chosen and at what cost, and which forward
    kernel ran (`forward_kernel`: `gluon` or `portable`; `why_not_gluon`); see Tuning. A `note`
    says that rows of queries without keys were filled by attnbench"""


class Ended(Part):
    """What every row ends with."""

    attempt: Int
    """1, 2, ...; the last attempt counts"""
    started_utc: str | None = None
    """ISO 8601"""
    spent_s: Number | None = None
    """time spent on the case, all phases"""
    log_tail: str | None = None
    """after a crash, a timeout or an error: the end of what the worker printed, or the traceback"""
