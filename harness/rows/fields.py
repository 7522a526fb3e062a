"""The fields of rows.jsonl, in parts that kinds of rows share; of what parts each kind consists.

Below a field stands its line of docs/format.md; without one it shares that of the next field.
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
    Trial,
    Window,
)


class Named(Part):
    """What every row begins with."""

    schema_version: Int = Field(alias="schema")
    """format version"""
    kind: str
    """`latency`: a planned case, measured or with the reason why not"""
    case: str
    """stable id, as `fused-b1-n4096-d512-h8-bf16-forward-core`; without parts of default value"""


class OfBackend(Part):
    """Which backend."""

    backend: str
    """name and variant (`sdpa:flash`), or `attribute@module` of a user's own"""
    python: str | None = None
    """earlier versions: the interpreter that measured the case, in which `case` ends"""
    parameters: dict[str, PlainValue] | None = None
    """those in the backend's name: `{"rank": 64}` of `linformer[rank=64]`"""


class Copied(Part):
    """Which copy of the plan, in earlier versions."""

    replica: Int | None = None
    """earlier versions: the number of the copy, from 1; `case` of the second ends in `replica2`"""


class Placed(Part):
    """Where."""

    device: str
    """`cpu` or `cuda`"""
    host: str | None = None
    device_uuid: str | None = None
    device_name: str | None = None
    """the machine's network name; the GPU's UUID; the name of the GPU, or of the processor"""


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
    """what the backend claims: `other` computes something else; null if it was not read"""
    input_order: Literal["heads", "model"] | None = None
    """scope `core`: q, k, v in memory head by head, or token by token as Hugging Face has them"""


class Outcome(Part):
    """How it ended."""

    status: StatusWord
    """see [Statuses](#statuses)"""
    reason: str
    """why, in words; "" if and only if `status` is `ok`"""


class Sampled(Part):
    """Latency, and what disturbed it."""

    phase: str
    """where it ended: refuse, prepare, compile, gate, memory, latency, utilization or kernels"""
    block_ms: Samples | None = None
    """latency samples, [process][block][call]. CUDA: by events, queue filled before, L2 cold"""
    beside: str | None = None
    """the baseline timed in the same worker: a backend from outside has a worker of its own"""
    beside_ms: Samples | None = None
    """its samples there, nested as `block_ms`"""
    wall_block_ms: Samples | None = None
    """CUDA: host clock around call and synchronize, at most 10 calls per block, L2 not flushed"""
    hot_block_ms: Samples | None = None
    """CUDA: as `block_ms` without flushing L2, at most 10 calls per block"""
    graph_block_ms: Samples | None = None
    """CUDA: the call replayed as a CUDA graph, L2 cold, at most 10 calls per block"""
    graph_reason: str | None = None
    """CUDA: why there is no graph; "" if there is one"""
    graph_failed: bool | None = None
    """CUDA: whether capturing the graph was tried and failed"""
    late_calls: Int | None = None
    """CUDA: calls that began before the host had launched all of them: may include launch gaps"""
    launch_ms: Number | None = None
    """CUDA: the shortest time that the host takes to launch the call"""
    unseen_work: bool | None = None
    """CUDA: `wall_block_ms` - `launch_ms` is above 1.5 x `block_ms` + 0.2 ms: work no event saw"""
    shortest_call_ms: Number | None = None
    """the least that any call takes here; a shorter latency is an `error`"""
    kv_copies: Int | None = None
    """CPU: copies of keys and values that took turns, so that each call reads them from memory"""
    conditions: Each[Each[Readings]] | None = None
    """the machine during each block, [process][block]: [objects](#conditions-of-a-block)"""
    processes: Int | None = None
    """worker processes that contributed samples"""
    stop: str | None = None
    """why sampling ended: `ci` (precise enough), `budget` (time), `blocks` (the plan's most)"""
    half_width_ratio: Number | None = None
    """half the width of the latency's interval, on the log scale: 0.03 is 3 % each way"""
    pair_half_width_ratio: Number | None = None
    """the same of the widest reported ratio of the case; null without one"""
    contended_blocks: Int | None = None
    """blocks that lost more than 5 % of their time waiting for a core; kept, not dropped"""
    throttled_blocks: Int | None = None
    """blocks slowed by a CPU quota, heat, power, or a clock below 75 % of the median; kept"""
    warmup_stationary: bool | None = None
    """whether call times were stationary after each warm-up; null with too few calls to tell"""


class Weighed(Part):
    """Memory, counted and predicted."""

    input_bytes: Count | None = Field(None, title="inputs")
    """inputs and weights, and the output's gradient if gradients are computed"""
    peak_bytes: Count | None = Field(None, title="peak")
    """extra bytes above these at the highest point of a call, output included"""
    output_bytes: Count | None = Field(None, title="output")
    """the part of `peak_bytes` that lives as long as the result: the output, or the gradients"""
    saved_bytes: Count | None = Field(None, title="kept for backward")
    """with gradients: what the forward pass keeps for the backward pass, its output included"""
    peak_source: str | None = None
    """`allocator events`, `cuda requested bytes`, `resident pages`; `at least` without oneDNN's"""
    workspace_bytes: Count | None = Field(None, title="kept between calls")
    """torch's memory that `prepare` and earlier calls keep between calls; beside `peak_bytes`"""
    outside_bytes: Count | None = Field(None, title="outside torch")
    """memory outside torch's allocator, by pages; CPU: null below 4 MiB; CUDA: all processes'"""
    memory_missing: Reasons | None = None
    """why `peak_bytes`, `workspace_bytes` or `outside_bytes` is null: name and reason"""
    resident_peak_bytes: Int | None = None
    """CPU: `peak_bytes` as the kernel sees it (VmHWM), from a separate call of at most 1 s"""
    allocated_peak_bytes: Int | None = None
    """CUDA: `peak_bytes` as rounded by the allocator"""
    reserved_peak_bytes: Int | None = None
    """CUDA: segments taken from the device, starting from an empty cache; from a separate call"""
    device_used_bytes: Int | None = None
    """CUDA: all memory in use on the device after that call (NVML), other processes included"""
    predicted_peak_bytes: Count | None = Field(None, title="predicted peak")
    """`peak_bytes` before anything runs; present also if the case ran out of memory"""
    predicted_source: str | None = None
    """the backend's `formula`; earlier versions also `meta`: its code on tensors without memory"""
    predicted_reason: str
    """why there is no prediction; "" if there is one"""


class Counted(Part):
    """The work of exact attention."""

    work_flops: Count | None = Field(None, title="work")
    """FLOPs of the matrix products that exact attention needs, whatever the backend does"""
    work_exps: Count | None = None
    """exponentials of its softmax, and tanh of a softcap; 0 for the backward pass alone"""
    minimal_bytes: Count | None = Field(None, title="minimal traffic")
    """bytes that any backend reads or writes once: inputs that the mask leaves, and results"""
    padding_ratio: Number | None = None
    """ragged batch: the share of padding if every sequence were padded to the longest"""


class Checked(Part):
    """Against the exact result."""

    error_l2_ratio: Number | None = None
    """norm of the error over that of the exact result (float64); the worst of all results"""
    output_cosine: Number | None = None
    """`approximate` backends: cosine between their output and the exact one, over checked rows"""
    error_ratio: Number | None = Field(None, title="error ratio")
    """the error over that of the textbook formula in the same dtype"""
    error_limit_ratio: Number | None = None
    """up to which `error_ratio` passes: 2 and what summing keys in fp32 explains; null: any"""
    repeats_exactly: bool | None = None
    """whether two calls with equal inputs gave equal bits, before each process times the case"""
    processes_repeat_exactly: bool | None = None
    """whether the first of these calls gave the same bits in all processes"""
    judged: Each[Object] | None = None
    """timed results judged apart: `process`, `values_seed`, `places_seed`, `error_ratio`"""


class Prepared(Part):
    """What ran, and its set-up."""

    kernel_requested: str | None = None
    """the kernel that the user pinned: `flash`, of any generation; `flash3`, of FA3 alone"""
    kernel: str | None = None
    """the kernel that ran, observed inside the call; null if no known one was seen"""
    kernel_generation: str | None = None
    """CUDA: which `flash`, or varlen_attn, ran: torch's own `FA2`, or an activated `FA3`, `FA4`"""
    session: str | None = None
    """rows of one session shared interleaved blocks: their ratios are paired"""
    mask_build_ms: Number | None = Field(None, title="its mask")
    """building the mask, alone, one reading: in the latency if each call builds it (sdpa, fused)"""
    mask_build_peak_bytes: Count | None = Field(None, title="mask's peak")
    """the most bytes alive while it is built, itself included"""
    prepare_peak_bytes: Count | None = Field(None, title="set-up's peak")
    """the most bytes of torch's allocator alive during the set-up: mask, tuning, compiled code"""
    prepare_ms: Number | None = None
    """the backend's set-up, tuning included, one reading; never part of a latency"""
    compile_ms: Number | None = Field(None, title="compiling")
    """how long compilers took in it, and before it; null if nothing was compiled"""
    first_call_ms: Number | None = None
    """the first call after the set-up, with late compilation and the look at its kernel"""


class Watched(Part):
    """Utilization."""

    utilization_tier: str | None = None
    """how it is known: `gpm` (counters), `busy` (any kernel), `derived` (FLOPs), `host` (CPU)"""
    windows: Each[Window] | None = None
    """the device while the case runs in a steady loop: [objects](#windows)"""
    tables: Object | None = None
    """what probes with calls of their own found, by name: [Windows](#windows)"""
    missing: Reasons | None = None
    """why a value of `windows` or `tables` is null: name and reason"""
    configuration: Object | None = None
    """what the backend chose while it was prepared; of `triton` see [Tuning](#tuning)"""


class Ended(Part):
    """What every row ends with."""

    attempt: Int
    """1, 2, ...; the last attempt counts"""
    started_utc: str | None = None
    """ISO 8601"""
    spent_s: Number | None = None
    """time spent on the case, all phases"""
    log_tail: str | None = None
    """after a crash, timeout or error: the end of what the worker printed, or the traceback"""


class Studied(Part):
    """Something beside the cases."""

    kind: str
    """`study`"""
    case: str
    """stable id, `study-` and the name of the study"""
    study: str
    """its name"""
    part: Object | None = None
    """which part of a study that has several: `{"task": "recall", "heads": 8}`"""
    findings: Each[Object]
    """flat objects of numbers, text and lists; empty unless `status` is `ok`"""


class Searched(Part):
    """The longest N of a backend."""

    kind: str
    """`wall`"""
    case: str
    """stable id, for example `wall-fused-b1-d512-h8-fp32-forward-core`"""
    kv_seq_len: Int | None = None
    """the length of keys and values if it is fixed; null if it follows N"""
    status: StatusWord
    """`ok`: some N fits. `oom`: not even N = 1 fits. Else the result of the first trial"""
    seq_len_low: Int | None = None
    """the longest N that fitted, with no failure at or below it"""
    seq_len_high: Int | None = None
    """the shortest N that failed, with no fit at or above it; null if nothing failed"""
    predicted_seq_len: Int | None = None
    """the longest N whose inputs and predicted peak fit; 0 if not even N = 1 does"""
    predicted_source: str | None = None
    """`formula`; `nearest`: that of another dtype or backend, so at least this N fits"""
    limited_by: str | None = None
    """what ended the search: `memory`, `time`, `length` (2^31 tokens), `backend` (it fails)"""
    memory_bytes: Int
    """the budget: inputs, weights, output's gradient and peak together"""
    probes: Each[Trial]
    """every trial in order: `{seq_len, status, reason, spent_s}`"""
    spent_s: Number | None = None
    """time that the search took, starting workers included"""
    log_tail: str | None = None
    """as in a row of a case, of the first trial"""
    predicted_reason: str
    """why there is no prediction; "" if there is one"""


PARTS: dict[str, tuple[type[Part], ...]] = {
    "latency": (
        *(Named, OfBackend, Copied, Placed, Shape, Claimed, Outcome),
        *(Sampled, Weighed, Counted, Checked, Prepared, Watched, Ended),
    ),
    "wall": (Named, OfBackend, Placed, ShapeOfWall, Claimed, Outcome, Ended, Searched),
    "study": (Named, Placed, Outcome, Ended, Studied),
}
"""Of each kind of row, in the order of its fields; a later part may say more of a field."""
