"""The documents of comparisons, of two runs and of many, as documents.py has the others."""

from typing import Any, Literal

from typing_extensions import TypedDict

Maybe = float | None

# ---- `attnbench compare --format json` -----------------------------------------------------------


class Side(TypedDict):
    run: str
    path: str
    device: str
    environment: str | None


class MeanRatio(TypedDict):
    ratio: Maybe
    low: Maybe
    high: Maybe
    cases: int


class MeanRatios(TypedDict):
    all: MeanRatio | None
    backends: dict[str, MeanRatio | None]


class ComparedNoise(TypedDict):
    started_utc: str
    paired_noise_ratio: float
    run_noise_ratio: float
    between_runs_ratio: Maybe
    starts: int


class ProcessNoise(TypedDict):
    ratio: float
    source: Literal["selfcheck", "rows", "assumed"]


class FactDifference(TypedDict):
    fact: str
    base: Any
    new: Any


class IdleMetric(TypedDict):
    metric: str
    cases: int
    reasons: dict[str, int]


class Regression(TypedDict):
    case: str
    metric: str
    verdict: str


class GateOutcome(TypedDict):
    margins: dict[str, Maybe]
    fail_on_undecided: bool
    passed: bool
    outcome: Literal["passed", "failed", "nothing decided"]
    idle: list[IdleMetric]
    regressions: list[Regression]
    undecided: int


class DecodeRate(TypedDict):
    bytes_per_s: Maybe
    low_bytes_per_s: Maybe
    high_bytes_per_s: Maybe
    bandwidth_ratio: Maybe
    low_bandwidth_ratio: Maybe
    high_bandwidth_ratio: Maybe
    measured_bytes_per_s: Maybe
    fits_in_cache: bool | None
    note: str


class ComparedCase(TypedDict):
    """Open: it also has the problem's fields."""

    case: str
    base_case: str | None
    backend: str
    exactness: str | None
    metric: Literal["latency", "peak_bytes", "energy_per_call", "status"]
    unit: str | None
    verdict: str
    reasons: list[str]
    ratio: Maybe
    low: Maybe
    high: Maybe
    margin_ratio: Maybe
    base: Maybe
    new: Maybe
    paired: bool
    p_value: Maybe
    base_status: str | None
    new_status: str | None
    base_reason: str | None
    new_reason: str | None
    base_decode: DecodeRate | None
    new_decode: DecodeRate | None


class Fact(TypedDict):
    """An answer as a flat object; `place` has the backend and the axes that vary."""

    answer: str
    place: dict[str, Any]
    quantity: str
    value: Maybe
    low: Maybe
    high: Maybe
    mark: str | None
    reason: str


class Compared(TypedDict):
    schema: int
    base: Side
    new: Side
    baseline: str | None
    turns: int | None
    geometric_mean: MeanRatios
    noise_floor: ComparedNoise | None
    process_noise: ProcessNoise
    environment_differences: list[FactDifference]
    gate: GateOutcome | None
    notes: list[str]
    cases: list[ComparedCase]
    facts: list[Fact]


class Gated(TypedDict):
    """What `attnbench.gate` returns. `reason`: why nothing was compared; else ""."""

    verdict: Literal["passed", "failed", "undecided", "none"]
    reason: str
    output: str
    compare: Compared | None


# ---- `attnbench trend --json` --------------------------------------------------------------------


class TrendRun(TypedDict):
    run: str
    path: str
    started_utc: str | None
    commit: str | None


class TrendRatio(TypedDict):
    ratio: float
    low: Maybe
    high: Maybe


class TrendChange(TypedDict):
    at: int
    verdict: Literal["faster", "slower", "not decided"]
    ratio: float
    low: Maybe
    high: Maybe


class TrendCase(TypedDict):
    """Open: it also has the problem's fields."""

    case: str
    backend: str
    times: list[TrendRatio | None]
    changes: list[TrendChange]
    peak_bytes: list[int | None]
    more_bytes: dict[str, int]
    disturbed: list[bool]


class Trend(TypedDict):
    schema: int
    device: str
    runs: list[TrendRun]
    base: int
    against: str | None
    notes: list[str]
    cases: list[TrendCase]
