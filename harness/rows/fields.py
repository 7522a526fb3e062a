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
    """`latency` (a planned case), `wall` or `study`"""
    case: str
    """stable id, as `fused-b1-n4096-d512-h8-bf16-forward-core`"""


class OfBackend(Part):
    """Which backend."""

    backend: str
    """name and variant (`sdpa:flash`), or `attribute@module` of a user's own"""
    python: str | None = None
    """earlier versions: the interpreter that measured the case"""
    parameters: dict[str, PlainValue] | None = None
    """those in the backend's name: `{"rank": 64}` of `linformer[rank=64]`"""


class Copied(Part):
    """Which copy of the plan, in earlier versions."""

    replica: Int | None = None
    """earlier versions: the number of the copy, from 1"""


class Placed(Part):
    """Where."""

    device: str
    """`cpu` or `cuda`"""
    host: str | None = None
    device_uuid: str | None = None
    device_name: str | None = None
    """network name; UUID of the GPU; name of the GPU or processor"""


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
    """what the backend claims; `other` computes something else"""
    input_order: Literal["heads", "model"] | None = None
    """scope `core`: memory order, head by head, or token by token as in Hugging Face"""


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
    """latency samples, [process][block][call]; on CUDA by events, L2 cold"""
    beside: str | None = None
    """the baseline timed in the same worker, of a backend from outside"""
    beside_ms: Samples | None = None
    """its samples there, nested as `block_ms`"""
    wall_block_ms: Samples | None = None
    """CUDA: host clock around call and synchronize, at most 10 calls per block"""
    hot_block_ms: Samples | None = None
    """CUDA: as `block_ms`, L2 not flushed"""
    graph_block_ms: Samples | None = None
    """CUDA: the call replayed as a CUDA graph"""
    graph_reason: str | None = None
    """CUDA: why there is no graph; "" if there is one"""
    graph_failed: bool | None = None
    """CUDA: whether capturing the graph was tried and failed"""
    late_calls: Int | None = None
    """CUDA: calls that began before they were launched whole: may include launch gaps"""
    launch_ms: Number | None = None
    """CUDA: the shortest time that the host takes to launch the call"""
    unseen_work: bool | None = None
    """CUDA: the wall clock saw much more than the events"""
    shortest_call_ms: Number | None = None
    """the least that any call takes here; a shorter latency is an `error`"""
    kv_copies: Int | None = None
    """CPU: copies of keys and values that took turns, to be read from memory"""
    conditions: Each[Each[Readings]] | None = None
    """the machine during each block, [process][block]: [objects](#conditions-of-a-block)"""
    processes: Int | None = None
    """worker processes that contributed samples"""
    stop: str | None = None
    """why sampling ended: `ci` (precise enough), `budget` (time), `blocks` (the plan's most)"""
    half_width_ratio: Number | None = None
    pair_half_width_ratio: Number | None = None
    """half the interval of the latency, and of its widest ratio, in logarithms: 0.03 is 3 %"""
    contended_blocks: Int | None = None
    throttled_blocks: Int | None = None
    """blocks that waited for a core; slowed by a quota, heat, power or a low clock; all kept"""
    warmup_stationary: bool | None = None
    """call times were stationary after each warm-up; null: too few calls to tell"""


class Weighed(Part):
    """Memory, counted and predicted."""

    input_bytes: Count | None = Field(None, title="inputs")
    """inputs and weights, and the output's gradient if gradients are computed"""
    peak_bytes: Count | None = Field(None, title="peak")
    """bytes above these at the highest point of a call, output included"""
    output_bytes: Count | None = Field(None, title="output")
    """the part of `peak_bytes` that is the result: output, or gradients"""
    saved_bytes: Count | None = Field(None, title="kept for backward")
    """what the forward pass keeps for the backward pass, output included"""
    peak_source: str | None = None
    """how it was counted; `at least`: without oneDNN's buffers"""
    workspace_bytes: Count | None = Field(None, title="kept between calls")
    """torch's memory that is kept between calls, beside `peak_bytes`"""
    outside_bytes: Count | None = Field(None, title="outside torch")
    """memory outside torch's allocator, by pages; on a CPU null below 4 MiB"""
    memory_missing: Reasons | None = None
    """why a number of bytes is null: name and reason"""
    resident_peak_bytes: Int | None = None
    """CPU: `peak_bytes` as the kernel sees it (VmHWM), in a separate call"""
    allocated_peak_bytes: Int | None = None
    reserved_peak_bytes: Int | None = None
    """CUDA: `peak_bytes` as rounded by the allocator; segments that it took from the device"""
    device_used_bytes: Int | None = None
    """CUDA: in use on the device after that call, by all processes"""
    predicted_peak_bytes: Count | None = Field(None, title="predicted peak")
    """`peak_bytes`, computed before anything runs"""
    predicted_source: str | None = None
    """`formula`; earlier versions also `meta`"""
    predicted_reason: str
    """why there is no prediction; "" if there is one"""


class Counted(Part):
    """The work of exact attention."""

    work_flops: Count | None = Field(None, title="work")
    """FLOPs of the matrix products of exact attention, whatever the backend does"""
    work_exps: Count | None = None
    """exponentials of its softmax, and tanh of a softcap"""
    minimal_bytes: Count | None = Field(None, title="minimal traffic")
    """bytes that any backend must move: inputs that the mask leaves, and results"""
    padding_ratio: Number | None = None
    """ragged batch: the share of padding, if padded to the longest"""


class Checked(Part):
    """Against the exact result."""

    error_l2_ratio: Number | None = None
    """norm of the error over that of the exact result (float64), at worst"""
    output_cosine: Number | None = None
    """`approximate` backends: cosine between their output and the exact one"""
    error_ratio: Number | None = Field(None, title="error ratio")
    """the error over that of the textbook formula in the same dtype"""
    error_limit_ratio: Number | None = None
    """the highest `error_ratio` that passes; null: any"""
    repeats_exactly: bool | None = None
    processes_repeat_exactly: bool | None = None
    """two calls with equal inputs gave equal bits in each process, and in all of them"""
    judged: Each[Object] | None = None
    """timed results that were judged apart: seeds and `error_ratio`"""


class Prepared(Part):
    """What ran, and its set-up."""

    kernel_requested: str | None = None
    """the kernel that the user pinned: `flash`, of any generation; `flash3`, of FA3 alone"""
    kernel: str | None = None
    """the kernel that ran, observed inside the call"""
    kernel_generation: str | None = None
    """CUDA: which `flash` ran: torch's own `FA2`, or an activated `FA3`, `FA4`"""
    session: str | None = None
    """rows of one session shared interleaved blocks: their ratios are paired"""
    mask_build_ms: Number | None = Field(None, title="its mask")
    """building the mask alone; part of the latency if each call builds it"""
    mask_build_peak_bytes: Count | None = Field(None, title="mask's peak")
    """the most bytes alive while it is built, itself included"""
    prepare_peak_bytes: Count | None = Field(None, title="set-up's peak")
    """the most bytes of torch's allocator alive during the set-up"""
    prepare_ms: Number | None = None
    """the backend's set-up, tuning included; never part of a latency"""
    compile_ms: Number | None = Field(None, title="compiling")
    """how long compilers took in it and before; null: nothing was compiled"""
    first_call_ms: Number | None = None
    """the first call, with late compilation"""


class Watched(Part):
    """Utilization."""

    utilization_tier: str | None = None
    """`gpm` (counters), `busy` (any kernel), `derived` (FLOPs) or `host` (CPU)"""
    windows: Each[Window] | None = None
    """the device while the case runs in a steady loop: [objects](#windows)"""
    tables: Object | None = None
    """what probes with calls of their own found"""
    missing: Reasons | None = None
    """why a value of these is null: name and reason"""
    configuration: Object | None = None
    """what the backend chose in its set-up; of `triton`: [Tuning](#tuning)"""


class Ended(Part):
    """What every row ends with."""

    attempt: Int
    """1, 2, ...; the last attempt counts"""
    started_utc: str | None = None
    """ISO 8601"""
    spent_s: Number | None = None
    """time spent on the case, all phases"""
    log_tail: str | None = None
    """the end of what the worker printed, or a traceback"""


class Studied(Part):
    """Something beside the cases."""

    study: str
    """its name"""
    part: Object | None = None
    """which part of a study that has several: `{"task": "recall", "heads": 8}`"""
    findings: Each[Object]
    """flat objects of numbers, text and lists; empty unless `status` is `ok`"""


class Searched(Part):
    """The longest N of a backend."""

    kv_seq_len: Int | None = None
    """the length of keys and values if it is fixed; null if it follows N"""
    status: StatusWord
    """`ok`: some N fits. `oom`: not even N = 1 fits. Else the result of the first trial"""
    seq_len_low: Int | None = None
    seq_len_high: Int | None = None
    """the longest N that fitted, no failure below; the shortest that failed, no fit above"""
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
