"""reports/claims/times.py: verdicts follow the truth of made-up times and counters."""

from pathlib import Path
from typing import Any

from tests.made_runs import problem
from tests.reports.fake_claims import (
    LENGTHS,
    Made,
    layer,
    ledger_of,
    timed,
    work,
)


def window(active: float) -> list[dict[str, Any]]:
    counters = [active + shift for shift in (-0.01, 0.0, 0.01)]
    return [
        {
            "way": "eager",
            "process": 0,
            "window_s": 2.0,
            "calls": 10,
            "sm_active_ratio": ratio,
            "energy_j": 1.0,
        }
        for ratio in counters
    ]


def counted(
    backend: str, active: float, of: dict[str, Any], time_ms: float = 1.0, tier: str = "gpm"
) -> Made:
    return timed(backend, time_ms, of, windows=window(active), utilization_tier=tier)


def test_the_time_of_heads_is_decided_by_equivalence(tmp_path: Path) -> None:
    more = {"naive": 1.3, "fused": 1.0, "sdpa": 1.05}
    made = [
        timed(b, 1e-5 * n * (1 if h == 1 else ratio), problem(n, h))
        for n in (256, 512)
        for h in (1, 8)
        for b, ratio in more.items()
    ]
    claim = ledger_of(tmp_path, *made)["C3c"]
    assert {part.of: part.verdict for part in claim.parts} == {
        "naive": "refuted",
        "fused": "supported",
        "sdpa": "inconclusive",
    }
    assert claim.verdict == "depends"
    equal = next(part for part in claim.parts if part.of == "fused").numbers
    low, high = map(float, equal.rpartition("(")[2].rstrip(")").split(" to "))
    assert 1 / 1.05 < low < high < 1.05  # the interval that the verdict comes from


def test_two_regimes_need_both_terms_beyond_doubt(tmp_path: Path) -> None:
    both = [
        timed("fused", 2e-3 * n + 2e-6 * n * n, layer(n), work_flops=work(layer(n)))
        for n in LENGTHS
    ]
    linear = [timed("sdpa", 2e-3 * n, layer(n), work_flops=work(layer(n))) for n in LENGTHS]
    steps = [
        timed("naive", 1e-3 * n * (9 if n > 1000 else 1), layer(n), work_flops=work(layer(n)))
        for n in LENGTHS
    ]
    claim = ledger_of(tmp_path, *both, *linear, *steps)["C2"]
    assert {part.of: part.verdict for part in claim.parts} == {
        "fused": "supported",
        "sdpa": "refuted",
        "naive": "inconclusive",
    }
    assert "by FLOPs at N = 1024" in claim.parts[0].numbers  # 2 d


def test_two_regimes_must_change_where_the_flops_do(tmp_path: Path) -> None:
    def verdict(crossing: float) -> str:
        """The FLOPs cross at 1024, the times elsewhere."""
        made = [
            timed("fused", 2e-6 * n * (crossing + n), layer(n), work_flops=work(layer(n)))
            for n in LENGTHS
        ]
        return ledger_of(tmp_path / f"{crossing}", *made)["C2"].verdict

    assert [verdict(at) for at in (200, 512, 1024, 1600, 6000)] == [
        "refuted",
        "inconclusive",
        "supported",
        "supported",
        "refuted",
    ]


def test_two_regimes_are_no_matter_of_masks_that_leave_none(tmp_path: Path) -> None:
    """By the FLOPs of a window N² never takes over, whatever a backend computes."""
    shapes = [problem(n, 8, scope="layer", mask="local", window=64) for n in LENGTHS]
    made = [
        timed("fused", 2e-6 * n * (1024 + n), of, work_flops=4096 * n)
        for n, of in zip(LENGTHS, shapes, strict=True)
    ]
    assert ledger_of(tmp_path, *made)["C2"].verdict == "not run"


def test_heads_whose_values_have_a_width_of_their_own_are_another_matter(tmp_path: Path) -> None:
    made = [timed("fused", 1.0, problem(512, h, d_v=64)) for h in (1, 8)]
    assert ledger_of(tmp_path, *made)["C3c"].verdict == "not run"


def test_sparse_and_linear_backends_are_decided_by_exponent_and_bytes(tmp_path: Path) -> None:
    made = [timed("sparse_local", 1e-3 * n, problem(n), peak_bytes=4096 * n) for n in LENGTHS]
    made += [timed("linformer", 1e-3 * n, problem(n), peak_bytes=4096 * n + n * n) for n in LENGTHS]
    made += [timed("performer", 1.0 + 1e-5 * n, problem(n), peak_bytes=4096 * n) for n in LENGTHS]
    made += [timed("sparse_random", 1e-6 * n * n, problem(n), peak_bytes=4096 * n) for n in LENGTHS]
    made += [
        timed("sparse_strided", 1e-5 * n**1.5, problem(n), peak_bytes=int(n**1.5)) for n in LENGTHS
    ]
    claim = ledger_of(tmp_path, *made)["C11"]
    wanted = {"sparse_local": "supported", "linformer": "refuted", "performer": "inconclusive"}
    assert {part.of: part.verdict for part in claim.parts} == wanted | {
        "sparse_random": "refuted",
        "sparse_strided": "supported",
    }
    assert claim.verdict == "depends"


def test_times_that_other_work_disturbed_decide_no_growth(tmp_path: Path) -> None:
    loud = {"contended_blocks": 8}
    made = [timed("linformer", 1e-6 * n * n, problem(n), **loud) for n in LENGTHS]
    made += [timed("fused", 1.0 * h, problem(512, h), **loud) for h in (1, 8)]
    found = ledger_of(tmp_path, *made)
    assert [found[claim].verdict for claim in ("C11", "C3c")] == ["inconclusive"] * 2
    assert "while other work disturbed most blocks" in found["C11"].parts[0].numbers


def test_use_of_the_gpu_is_decided_by_counters_only(tmp_path: Path) -> None:
    def verdict(name: str, loop: float, fused: float, tier: str = "gpm") -> str:
        made = [
            counted("naive", loop, layer(256), tier=tier),
            counted("fused", fused, layer(256), tier=tier),
        ]
        return ledger_of(tmp_path / name, *made)["C13"].verdict

    assert verdict("a", 0.2, 0.8) == "supported"
    assert verdict("b", 0.8, 0.2) == "refuted"
    assert verdict("c", 0.5, 0.51) == "inconclusive"
    assert verdict("d", 0.2, 0.8, tier="busy") == "not run"


def test_a_recurrent_layer_is_open_until_counters_are_there(tmp_path: Path) -> None:
    times = [timed("rnn", 1e-2 * n, layer(n)) for n in LENGTHS]
    assert ledger_of(tmp_path / "a", *times)["C12"].verdict == "inconclusive"
    made = [counted("rnn", 0.1, layer(n), 1e-2 * n) for n in LENGTHS] + [
        counted("fused", 0.9, layer(n)) for n in LENGTHS
    ]
    assert ledger_of(tmp_path / "b", *made)["C12"].verdict == "supported"
    idle = [counted("rnn", 0.1, layer(n), 1e-6 * n * n) for n in LENGTHS] + [
        counted("fused", 0.9, layer(n)) for n in LENGTHS
    ]
    assert ledger_of(tmp_path / "c", *idle)["C12"].verdict == "refuted"
