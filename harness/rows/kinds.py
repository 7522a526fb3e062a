"""The kinds of rows: of what parts each consists, and what studies and walls alone have."""

from .fields import (
    Checked,
    Claimed,
    Copied,
    Counted,
    Ended,
    Named,
    OfBackend,
    Outcome,
    Placed,
    Prepared,
    Sampled,
    Shape,
    ShapeOfWall,
    Watched,
    Weighed,
)
from .values import Each, Int, Number, Object, Part, StatusWord, Trial


class Studied(Part):
    """Something beside the cases."""

    kind: str
    """`study`"""
    case: str
    """stable id, `study-` and the name of the study"""
    study: str
    """its name"""
    part: Object | None = None
    """which part of a study that has several, such as `{"task": "recall", "heads": 8}`; else
    null"""
    findings: Each[Object]
    """what was found: flat objects of numbers, text and lists, numbers with their unit in the name;
    empty unless `status` is `ok`. Those of studies that time something have `blocks` and
    `contended_blocks` as a row of a case has them, and `process`: each of their parts has a process
    of its own; absent in earlier versions"""


class Searched(Part):
    """The longest N of a backend."""

    kind: str
    """`wall`"""
    case: str
    """stable id, for example `wall-fused-b1-d512-h8-fp32-forward-core`"""
    kv_seq_len: Int | None = None
    """the length of keys and values if it is fixed; null if it follows N"""
    status: StatusWord
    """`ok`: some N fits. `oom`: not even N = 1 fits. `interrupted`, or the result of the first
    trial: `unsupported`, `unavailable`, `timeout`, `crashed`, `error`"""
    seq_len_low: Int | None = None
    """the longest N that fitted, with no failure at or below it"""
    seq_len_high: Int | None = None
    """the shortest N that failed, with no fit at or above it; null if nothing failed before the
    search ended"""
    predicted_seq_len: Int | None = None
    """the longest N whose inputs and predicted peak are within the budget, before anything runs; 0
    if not even N = 1 is"""
    predicted_source: str | None = None
    """`formula`, as for `predicted_peak_bytes`; `nearest`: the formula of another dtype or backend,
    so at least this N fits, and `predicted_reason` says whose it is"""
    limited_by: str | None = None
    """what ended the search: `memory`; `time`: a longer trial would exceed `limits.timeout_s` or
    `limits.wall_budget_s`, or did; `length`: 2^31 tokens; `backend`: it fails, crashes or refuses
    from `seq_len_high` on. Null if `status` is not `ok`"""
    memory_bytes: Int
    """the budget: inputs, weights, output's gradient and peak together"""
    probes: Each[Trial]
    """every trial in order, as `{seq_len, status, reason, spent_s}`: `ok` if it fitted, `oom` if
    not"""
    spent_s: Number | None = None
    """time that the search took, starting workers included"""
    log_tail: str | None = None
    """if the first trial crashed, timed out or failed: the end of what the worker printed, or the
    traceback"""
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
