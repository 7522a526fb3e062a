"""reports/subjects/generation.py: steps with and without a cache, whatever the findings contain."""

from pathlib import Path
from typing import Any

from attnbench.reports.data.row_groups import Group
from attnbench.reports.subjects import generation
from attnbench.reports.subjects._over import panel
from attnbench.reports.subjects.generation import VALUES
from tests.made_runs import with_study
from tests.reports.rendering import figures_of, sentences, subject_of


def finding(backend: str, tokens: int, **more: Any) -> dict[str, Any]:
    """A step takes 2 ms with a cache and tokens / 8 without."""
    steps = {"cached": 2.0, "full": tokens / 8}
    found: dict[str, Any] = {
        "backend": backend,
        "tokens": tokens,
        "d_model": 32,
        "heads": 2,
        "kv_heads": 2,
        "dtype": "fp32",
        "error_ratio": 0.9,
        "complaint": "",
        "cache_bytes": 256 * tokens,
        "cached_step_flops": 1000 + tokens,
        "cached_total_flops": tokens**2,
        "full_step_flops": tokens**2,
        "full_total_flops": tokens**3,
    }
    for way, ms in steps.items():
        for part, by in (("", 1.0), ("low_", 0.9), ("high_", 1.1)):
            found[f"{way}_step_{part}ms"] = ms * by
            found[f"{way}_total_{part}ms"] = ms * tokens * by
            found[f"{way}_total_{part}exponent"] = (1.0 if way == "cached" else 2.0) * by
    for what in ("step", "total"):
        for part, by in (("", 1.0), ("low_", 0.8), ("high_", 1.2)):
            found[f"full_over_cached_{what}_{part}ratio"] = tokens / 16 * by
    return found | more


def test_a_backend_that_failed_the_gate_has_its_reason_and_no_line(tmp_path: Path) -> None:
    untimed = dict.fromkeys(VALUES)
    wrong = finding("sdpa", 64, complaint="cached steps are not the full causal pass", **untimed)
    run = with_study(tmp_path, "generation", [finding("fused", 64), wrong])
    blocks = list(subject_of(generation, run).blocks)
    assert [one.backend for one in figures_of(blocks)[0].panels[0].series] == ["fused"]
    assert "sdpa was not timed: cached steps are not the full causal pass." in sentences(blocks)


def test_a_value_without_bounds_is_drawn_without_an_interval() -> None:
    rows = [{"backend": "fused", "seq_len": n, "error": 0.1} for n in (64, 128)]
    (series,) = panel(Group(label="", problem={}, rows=rows), column="error").series
    assert (series.y, series.low, series.high, series.cases) == ((0.1, 0.1), (), (), ())
