"""reports/claims/of_rows.py: verdicts follow the truth of made-up rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import Made, made, problem
from tests.reports.fake_claims import LENGTHS, layer, ledger_of, pruned, timed, work

Rows = Sequence[Made]
FUSED, ALL = ("fused",), ("naive", "fused", "sdpa")


def score_matrices(lengths: tuple[int, ...] = LENGTHS, more: int = 0, **shape: Any) -> Rows:
    """Peak bytes of `fused`: two matrices of 4 bytes for 8 heads, and `more` bytes per pair."""
    cases = [problem(n, 8, **shape) for n in lengths]
    return [timed("fused", 1.0, of, peak_bytes=(64 + more) * of["seq_len"] ** 2) for of in cases]


def over_heads(*lengths: int, backends: tuple[str, ...] = FUSED, **shape: Any) -> Rows:
    return [
        timed(one, 1.0, problem(n, h, **shape)) for n in lengths for h in (1, 8) for one in backends
    ]


def both(n: int, heads: int, core_ms: float, layer_ms: float) -> Rows:
    """A problem in both scopes."""
    shapes = ((core_ms, problem(n, heads)), (layer_ms, layer(n, heads)))
    return [timed("fused", ms, of, work_flops=work(of)) for ms, of in shapes]


def split(lengths: tuple[int, ...], projections_ms: float) -> Rows:
    """Core and layer: 2e-6 ms per pair, and projections per token."""
    cores = [(n, 2e-6 * n * n) for n in lengths]
    return [one for n, ms in cores for one in both(n, 8, ms, ms + projections_ms * n)]


def halves() -> Rows:
    """The core takes exactly half of the layer."""
    shapes = (problem(8192, 8), 5.0), (layer(8192), 10.0)
    return [
        timed("fused", 1.0, of, work_flops=work(of), block_ms=[[[ms]]] * 3) for of, ms in shapes
    ]


def two_backends(loop_ms: float, seq_len: int = 256, **changes: Any) -> Rows:
    of = layer(seq_len)
    return [timed("naive", loop_ms, of, **changes), timed("fused", 1.0, of)]


def growing(backend: str, per_token: float, per_pair: float, crossing: float = 0.0) -> Rows:
    """Layers whose FLOPs cross at 1024."""
    times = [(n, per_token * n + per_pair * n * (crossing + n)) for n in LENGTHS]
    return [timed(backend, ms, layer(n), work_flops=work(layer(n))) for n, ms in times]


def windowed() -> Rows:
    """By the FLOPs of a window N² never takes over, whatever a backend computes."""
    shapes = [(n, problem(n, 8, scope="layer", mask="local", window=64)) for n in LENGTHS]
    return [timed("fused", 2e-6 * n * (1024 + n), of, work_flops=4096 * n) for n, of in shapes]


def counted(
    backend: str, active: float, of: dict[str, Any], ms: float = 1.0, tier: str = "gpm"
) -> Made:
    """With three windows of performance counters."""
    window = {"way": "eager", "process": 0, "window_s": 2.0, "calls": 10, "energy_j": 1.0}
    windows = [window | {"sm_active_ratio": active + shift} for shift in (-0.01, 0.0, 0.01)]
    return timed(backend, ms, of, windows=windows, utilization_tier=tier)


def recurrent(*, square: bool) -> Rows:
    ours = [counted("rnn", 0.1, layer(n), 1e-6 * n * n if square else 1e-2 * n) for n in LENGTHS]
    return [*ours, *(counted("fused", 0.9, layer(n)) for n in LENGTHS)]


def over_width(
    backend: str, power: float, n: int = 64, scope: str = "core", also: float = 0.0, **given: Any
) -> Rows:
    """Times as this power of d_model, and `also` times d_model; FLOPs as those of heads that share
    it, if not given.
    """
    times = {d: 1e-4 * (d**power + also * d) for d in WIDTHS}
    shapes = {d: problem(n, 1, d_model=d, scope=scope) for d in WIDTHS}
    return [
        timed(backend, times[d], of, **({"work_flops": work(of)} | given))
        for d, of in shapes.items()
    ]


def batches(n: int, times: float, bytes_: float = 4.0, **changes: Any) -> Rows:
    """One sequence and four, which take so many times the time and bytes."""
    shapes = [problem(n, 8, batch=batch) for batch in (1, 4)]
    costs = ((1.0, 1000.0), (times, 1000 * bytes_))
    return [
        timed("fused", ms, of, peak_bytes=int(size), **changes)
        for of, (ms, size) in zip(shapes, costs, strict=True)
    ]


LOUD = {"contended_blocks": 8}
UNFINISHED = made("fused", layer(16384), None, work_flops=None)
WIDTHS = (64, 128, 256, 512, 1024)
MASKED = score_matrices(more=1, batch=2, mask="local", window=64)
WHOLE, HALF = pruned(8, 8.0, 800), pruned(4, 4.0, 400)
LINEAR = {n: {"peak_bytes": 4096 * n} for n in LENGTHS}
STRIDES = [
    timed("sparse_strided", 1e-5 * n**1.5, problem(n), peak_bytes=int(n**1.5)) for n in LENGTHS
]
SPARSE = [timed("sparse_local", 1e-3 * n, problem(n), **LINEAR[n]) for n in LENGTHS]
SPARSE += [timed("linformer", 1e-3 * n, problem(n), peak_bytes=4096 * n + n * n) for n in LENGTHS]
SPARSE += [timed("performer", 1.0 + 1e-5 * n, problem(n), **LINEAR[n]) for n in LENGTHS]
SPARSE += [timed("sparse_random", 1e-6 * n * n, problem(n), **LINEAR[n]) for n in LENGTHS]


def linear(*backends: str) -> Rows:
    return [timed(one, 1e-3 * n, problem(n), **LINEAR[n]) for one in backends for n in LENGTHS]


METHODS = ("sparse_local", "sparse_random", "linformer", "performer")
JUDGED: list[tuple[str, Rows, str]] = [
    ("C1", score_matrices(), "supported"),
    ("C1", score_matrices(more=1), "refuted"),
    ("C1", score_matrices(LENGTHS[:3]), "not decided"),
    ("C1", MASKED, "not run"),
    ("C1", [*score_matrices(), *MASKED], "supported"),
    ("C2", growing("fused", 2e-3, 2e-6), "supported"),
    ("C2", [*growing("fused", 2e-3, 2e-6), UNFINISHED], "supported"),
    ("C2", growing("sdpa", 2e-3, 0.0), "refuted"),
    ("C2", growing("fused", 0.0, 2e-6, 200), "refuted"),
    ("C2", growing("fused", 0.0, 2e-6, 512), "not decided"),
    ("C2", growing("fused", 0.0, 2e-6, 1600), "supported"),
    ("C2", growing("fused", 0.0, 2e-6, 6000), "refuted"),
    ("C2", growing("fused", 0.0, 2e-6), "refuted"),  # N² from the first on
    ("C2", growing("fused", 0.0, 2e-6)[2:], "not decided"),  # no N below a quarter of 1024
    ("C2", windowed(), "not run"),
    ("C3b", over_heads(*LENGTHS, backends=("naive",)), "supported"),
    ("C3b", over_heads(*LENGTHS), "refuted"),
    ("C3b", over_heads(*LENGTHS, d_k=64, d_v=64), "not run"),
    ("C3c", over_heads(256, 512), "supported"),
    ("C3c", [timed("fused", 1.0 * h, problem(512, h)) for h in (1, 8)], "refuted"),
    ("C3c", over_heads(*LENGTHS, d_k=64, d_v=64), "not run"),
    ("C3c", over_heads(512, d_v=64), "not run"),
    ("C3c", [timed("fused", 1.0 * h, problem(512, h), **LOUD) for h in (1, 8)], "not decided"),
    ("C4", two_backends(1.5), "supported"),
    ("C4", two_backends(0.8), "refuted"),
    ("C4", two_backends(1.0), "refuted"),  # the same is not faster
    ("C4", two_backends(1.5, error_ratio=None), "not decided"),
    ("C4", two_backends(1.5, **LOUD), "not decided"),
    ("C10", [*both(8192, 8, 9.0, 10.0), *both(8192, 1, 3.0, 10.0)], "depends"),
    ("C10", [*both(8192, 8, 9.0, 10.0), *both(4096, 8, 3.0, 10.0)], "supported"),  # at the longest
    ("C10", halves(), "refuted"),  # half is not more than half
    ("C10", split((4096, 8192), 2e-3), "supported"),
    ("C10", split((128, 512), 2e-3), "not run"),
    ("C10", split((4096, 8192), 8e-2), "refuted"),
    ("C11", [*linear(*METHODS), *STRIDES], "supported"),
    ("C11", [*linear(*METHODS)], "not decided"),  # strides are missing
    ("C11", [*linear(*METHODS, "sparse_strided")], "refuted"),
    ("C11", [timed("linformer", 1e-6 * n * n, problem(n)) for n in LENGTHS], "refuted"),
    ("C12", [timed("rnn", 1e-2 * n, layer(n)) for n in LENGTHS], "not decided"),
    ("C12", recurrent(square=False), "not decided"),  # growth with d lacks
    ("C12", [*recurrent(square=False), *over_width("rnn", 2.0, scope="layer")], "supported"),
    ("C12", [*recurrent(square=False), *over_width("rnn", 3.0, scope="layer")], "refuted"),
    ("C12", [*recurrent(square=True), *over_width("rnn", 2.0, scope="layer")], "refuted"),
    ("C14", [WHOLE, HALF, pruned(1, 1.0, 100)], "supported"),
    ("C14", [WHOLE, pruned(4, 6.0, 700), pruned(1, 5.0, 600)], "refuted"),
    ("C14", [WHOLE, pruned(4, 4.0, 700)], "refuted"),
    ("C14", [WHOLE, pruned(4, 4.0, 400, workspace_bytes=400)], "refuted"),  # kept bytes count
    ("C14", [WHOLE, HALF, pruned(4, 4.0, 400, seq_len=1024)], "supported"),
    ("C14", [WHOLE, pruned(4, 4.0, None)], "not decided"),
    ("C14", [WHOLE], "not run"),
    ("C14", [timed("fused", 1.0 * h, problem(512, h, scope="layer")) for h in (8, 4)], "not run"),
    ("C17", over_width("fused", 1.0), "supported"),
    ("C17", over_width("fused", 1.5), "refuted"),
    ("C17", over_width("fused", 0.5), "refuted"),
    ("C17", over_width("fused", 0.0, also=0.002), "not decided"),  # the softmax hides it
    ("C17", over_width("fused", 1.0, work_flops=4096), "refuted"),  # heads of a given width
    ("C17", over_width("fused", 1.0, scope="layer"), "not run"),
    ("C18", over_width("fused", 2.0, scope="layer"), "supported"),
    ("C18", over_width("fused", 2.0, scope="layer", also=20.0), "supported"),  # 1.98 at 1024
    ("C18", over_width("fused", 2.0, scope="layer", also=500.0), "not decided"),
    *(("C18", over_width("fused", x, scope="layer"), "refuted") for x in (1.0, 1.7, 2.3)),
    ("C18", over_width("fused", 2.0, scope="layer", work_flops=None), "not decided"),
    ("C18", over_width("fused", 2.0, scope="layer", work_flops=4096), "refuted"),
    ("C18", over_width("fused", 2.0, n=1024, scope="layer"), "not run"),  # no projections alone
    ("C20", batches(64, 4.0), "supported"),
    ("C20", batches(64, 1.5), "refuted"),  # a larger batch saves time, and no bytes
    ("C20", [*batches(64, 1.5), *batches(512, 4.0)], "depends"),
    ("C20", batches(64, 4.0, 5.0), "refuted"),
    ("C20", batches(64, 1.5, **LOUD), "not decided"),
    ("C20", batches(64, 4.0)[:1], "not run"),
]


@pytest.mark.parametrize(("name", "made", "wanted"), JUDGED)
def test_rows_decide_their_claims(tmp_path: Path, name: str, made: Rows, wanted: str) -> None:
    assert ledger_of(tmp_path, *made)[name].verdict == wanted


STEPS = [
    timed("naive", 1e-3 * n * (9 if n > 1000 else 1), layer(n), work_flops=work(layer(n)))
    for n in LENGTHS
]
PARTS: list[tuple[str, Rows, dict[str, str]]] = [
    (
        "C3b",
        over_heads(*LENGTHS, backends=ALL),
        {"naive": "supported", "fused": "refuted", "sdpa": "supported"},
    ),
    (  # too few lengths: by the peaks
        "C3b",
        over_heads(4096, backends=("fused", "sdpa")),
        {"fused": "refuted", "sdpa": "supported"},
    ),
    (
        "C3c",
        [
            timed(b, 1e-5 * n * (1 if h == 1 else ratio), problem(n, h))
            for n in (256, 512)
            for h in (1, 8)
            for b, ratio in (("naive", 1.3), ("fused", 1.0), ("sdpa", 1.05))
        ],
        {"naive": "refuted", "fused": "supported", "sdpa": "not decided"},
    ),
    ("C2", [*growing("fused", 2e-3, 2e-6), *STEPS], {"fused": "supported", "naive": "not decided"}),
    (
        "C11",
        [*SPARSE, *STRIDES],
        {
            **dict.fromkeys(("sparse_local", "sparse_strided"), "supported"),
            **dict.fromkeys(("linformer", "sparse_random"), "refuted"),
            "performer": "not decided",
        },
    ),
    (
        "C11",
        [timed("linformer", 1e-6 * n * n, problem(n), **LOUD) for n in LENGTHS],
        {"linformer": "not decided"},
    ),
]


@pytest.mark.parametrize(("name", "made", "wanted"), PARTS)
def test_each_backend_has_its_verdict(
    tmp_path: Path, name: str, made: Rows, wanted: dict[str, str]
) -> None:
    claim = ledger_of(tmp_path, *made)[name]
    assert {of.partition(",")[0]: verdict for of, verdict, _ in claim.parts} == wanted


WIDE = [timed("fused", 1.0, problem(n, 8, batch=2, dtype="bf16")) for n in LENGTHS]


@pytest.mark.parametrize(
    ("name", "made", "wanted"),
    [
        ("C1", WIDE, "64 bytes per N², where 2 B h e is 64"),
        ("C2", growing("fused", 2e-3, 2e-6), "by FLOPs 1024"),  # 2 d
        ("C10", split((4096, 8192), 2e-3), "core over layer at N = 8k: 0.90"),
        ("C4", [*two_backends(1.5), *two_backends(0.8, seq_len=512)], "N = 512: 0.8"),
        ("C18", over_width("fused", 1.7, scope="layer"), "d_model^1.70 (1.69 to 1.71) in time"),
    ],
)
def test_numbers_are_those_that_decide(tmp_path: Path, name: str, made: Rows, wanted: str) -> None:
    *_, (_, _, text) = ledger_of(tmp_path, *made)[name].parts
    assert wanted in text.replace("\u00a0", " ")


def test_the_interval_that_is_shown_is_the_one_that_decides(tmp_path: Path) -> None:
    for _, found in ledger_of(tmp_path, *over_heads(256, 512))["C3c"].found:
        low, high = map(float, found.text.partition("(")[2].partition(")")[0].split(" to "))
        assert 1 / 1.05 < low < high < 1.05
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)
