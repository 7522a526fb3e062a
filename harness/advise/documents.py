"""What `attnbench advise --json` prints, as types."""

from typing import Literal

from typing_extensions import TypedDict

Phase = Literal["prefill", "chunk", "decode", "verify", "training"]


class Bounds(TypedDict):
    value: float
    low: float | None
    high: float | None


class AgainstFastest(TypedDict):
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    reasons: list[str]
    paired: bool


class LayerTime(TypedDict):
    layer: str
    count: int
    status: str
    reason: str | None
    call_ms: Bounds | None
    fitted: str | None
    peak_bytes: int | None
    kernel: str | None
    bytes_per_s: Bounds | None
    bandwidth_ratio: Bounds | None
    run: str | None
    case: str | None


class Choice(TypedDict):
    attn_implementation: str
    backend: str
    total_ms: Bounds | None
    fitted: str | None
    why_not: str | None
    against_fastest: AgainstFastest | None
    layers: list[LayerTime]


class Decision(TypedDict):
    phase: Phase
    context: int
    attn_implementation: str | None
    choices: list[Choice]


class MemoryNeed(TypedDict):
    phase: Phase
    implementation: str | None
    context: int
    weight_bytes: int | None
    cache_bytes: int
    paged_cache_bytes: int
    state_bytes: int | None
    kept_bytes: int | None
    attention_bytes: int | None
    total_bytes: int | None
    at_most: bool
    source: str | None


class Sequences(TypedDict):
    context: int
    fit: int | None
    fit_paged: int | None


class LongestContext(TypedDict):
    phase: Phase
    attn_implementation: str
    context: int | None
    at_least: bool
    limit: str | None
    found_by: Literal["bytes", "wall", "time"] | None
    checked: str | None
    total_ms: Bounds | None
    source: str | None


class PolicyRange(TypedDict):
    phase: Phase
    from_tokens: int
    to_tokens: int
    attn_implementation: str
    confirmed: bool
    measured_tokens: list[int]
    fitted_tokens: list[int]
    not_measured: list[str]


class Policy(TypedDict):
    ranges: list[PolicyRange]
    python: list[str]
    vllm: str | None
    not_measured: str


class PassShare(TypedDict):
    phase: Phase
    context: int
    attn_implementation: str
    attention_ratio: Bounds | None
    eager_pass_ratio: Bounds | None


class NotMeasured(TypedDict):
    layer: str
    count: int
    why: str


class Missing(TypedDict):
    phase: Phase
    context: int
    implementation: str


class PublishedShape(TypedDict):
    batch: int
    seq_len: int
    kv_seq_len: int
    heads: int
    kv_heads: int
    d_k: int
    dtype: str
    causal: bool


class PublishedByOthers(TypedDict):
    phase: Phase
    layer: str
    device: str
    table: str
    url: str
    row: int
    method: str
    ms: float
    gb_per_s: float | None
    tflops: float | None
    shape: PublishedShape
    not_as_asked: str | None


class Advised(TypedDict):
    schema: int
    answer: str
    sentences: list[str]
    model: str
    model_type: str
    device: str
    device_name: str
    dtype: str
    batch: int
    tp: int
    most_context: int | None
    memory_bytes: int | None
    weight_bytes: int | None
    devices_for_weights: int | None
    weights_source: str | None
    dtype_guess: str | None
    kv_dtype: str | None
    max_seconds: dict[Phase, float]
    decisions: list[Decision]
    memory: list[MemoryNeed]
    sequences: list[Sequences]
    longest: list[LongestContext]
    policy: Policy
    shares: list[PassShare]
    traps: list[str]
    not_measured: list[NotMeasured]
    other_layers: dict[str, int]
    states: dict[str, int | None]
    cautions: list[str]
    missing: list[Missing]
    commands: list[str]
    measure: str | None
    runs: list[str]
    not_included: str
    published_by_others: list[PublishedByOthers] | None
