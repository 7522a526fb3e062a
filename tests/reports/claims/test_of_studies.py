"""reports/claims/studies.py: verdicts from findings, whatever they contain."""

from typing import Any

import pytest

from attnbench.reports.claims.verdict import Evidence
from attnbench.reports.subjects.generation import VALUES
from tests.reports.fake_claims import COPIES, MERGED, bounded, parts, verdict
from tests.reports.subjects.test_generation import finding

Found = dict[str, Any]
LOUD, CALM = {"contended_blocks": 5, "blocks": 8}, {"contended_blocks": 4, "blocks": 8}


def variance(
    d_k: int, *, scaled: bool, ratio: float, reach: float = 0.02, of: str = "sdpa"
) -> Found:
    bounds = bounded("score_variance", ratio * (1 if scaled else d_k), reach)
    return {"study": "score_scale", "d_k": d_k, "scaled": scaled, "of": of, **bounds}


def gradient(d_k: int, by_score: float, by_query: float, *, scaled: bool) -> Found:
    of = bounded("softmax_gradient", by_score) | bounded("query_gradient_norm", by_query)
    return {"study": "score_scale", "d_k": d_k, "scaled": scaled, **of}


def initial(rule: str, output: float, gradient: float, seq_len: int = 16) -> Found:
    of = bounded("output_variance", output) | bounded("gradient_variance", gradient)
    return {"study": "initialisation", "rule": rule, "seq_len": seq_len, **of}


def held(name: str, *, holds: bool = True, backend: str = "sdpa") -> Found:
    found = {"property": name, "holds": holds, "worst_error_ratio": 1e-15, "backend": backend}
    return {"study": "layer_properties", **found}


def fact(statement: str, *, holds: Any = True, **more: Any) -> Found:
    found = {"statement": statement, "holds": holds, "holding_ratio": float(holds is True)}
    shown = {"study": "attention_facts", "worst_error_ratio": 0.1, "case_count": 40}
    return found | shown | more


def counted(backend: str, *flops: int | None) -> list[Found]:
    of = {"study": "head_flops", "backend": backend, "d_model": 64, "seq_len": 64}
    return [{**of, "heads": 2**i, "flops": count} for i, count in enumerate(flops)]


def parameters(rule: str, *counts: int) -> list[Found]:
    return [
        {"study": "parameter_count", "d_k_rule": rule, "heads": 2**i, "parameter_count": count}
        for i, count in enumerate(counts)
    ]


def share(seq_len: int, ratio: float, **more: Any) -> Found:
    """Known to 1 %."""
    ends = {"share_low_ratio": 0.99 * ratio, "share_high_ratio": 1.01 * ratio}
    of = {"study": "output_share", "backend": "fused", "seq_len": seq_len, "share_ratio": ratio}
    return of | ends | more


def product(ratio: float, **more: Any) -> Found:
    bounds = {"time_low_ratio": 0.98 * ratio, "time_high_ratio": 1.02 * ratio, "time_ratio": ratio}
    return {"study": "joined_projections", "batch": 1, "seq_len": 16, "d_model": 256} | (
        bounds | more
    )


def in_processes(*ratios: float, **more: Any) -> list[Found]:
    return [product(ratio, process=i, **more) for i, ratio in enumerate(ratios, 1)]


def over(tokens: int, ratio: float, reach: float = 1.01, **more: Any) -> Found:
    """Time of all tokens without a cache over that with one."""
    name = "full_over_cached_total"
    bounds = {f"{name}_low_ratio": ratio / reach, f"{name}_high_ratio": ratio * reach}
    found = finding("fused", tokens, **{f"{name}_ratio": ratio, **bounds, **more})
    return {"study": "generation", **found}


def threads(loop: float, at_once: float, **more: Any) -> list[Found]:
    """What both gain by two threads."""
    gains = {"naive": loop, "fused": at_once}
    of = {"study": "threads", "seq_len": 512, "d_model": 256, "threads": 2, **more}
    return [
        {
            **of,
            "backend": name,
            **{f"gain_{end}ratio": gain for end in ("", "low_", "high_")},
            **{f"behind_{end}ratio": at_once / gain for end in ("", "low_", "high_")},
        }
        for name, gain in gains.items()
    ]


FIRST, BOTH = held("rows_sum_to_one"), held("outputs_between_values")
ORDER, SCALED = "order_permutes_outputs", "scaling_inputs_keeps_weights"
EITHER = (False, True)
NARROW = [gradient(8, 2.0, 2.0, scaled=False), gradient(8, 3.0, 3.0, scaled=True)]
WIDE = gradient(512, 0.3, 0.3, scaled=False)
XAVIER = [initial("xavier", 0.2, 0.3), initial("xavier", 0.2, 0.3, 256)]
OTHERS = [initial("normal_1", 1e5, 1e6), initial("normal_0.01", 1e-5, 1e-5)]
SHARED, FIXED = "d_model / heads", "fixed"
FILLS = ("fill_equals_infinity", "fill_equals_infinity_without_keys")
TRUTH = [variance(d, scaled=s, ratio=1.0) for d in (8, 512) for s in EITHER]
NO_TIMES = dict.fromkeys(VALUES)
MORE_FLOPS = {"full_total_flops": 1}
JUDGED: list[tuple[str, list[Found], str]] = [
    ("C3a", counted("naive", 100, 100, 100), "supported"),
    ("C3a", counted("naive", 100, 100, 101), "refuted"),
    ("C3a", counted("naive", 100, 100) + counted("fused", 100, 200), "depends"),
    ("C3a", counted("triton", None, None), "not run"),
    ("C5", TRUTH, "supported"),
    ("C5", [variance(64, scaled=s, ratio=0.25) for s in EITHER], "refuted"),
    (
        "C5",
        [*TRUTH, *(variance(8, scaled=s, ratio=0.25, of="nn.Linear") for s in EITHER)],
        "depends",
    ),
    ("C5", TRUTH[:1], "not decided"),  # a half is missing
    ("C5", [variance(8, scaled=s, ratio=1.0, reach=0.2) for s in EITHER], "not decided"),
    ("C5", [variance(8, scaled=s, ratio=1.0, of="") for s in EITHER], "not run"),  # as drawn
    ("C6", COPIES, "refuted"),
    ("C6", MERGED, "supported"),
    ("C6", COPIES + MERGED, "depends"),
    ("C6", COPIES[:1], "not run"),
    ("C7", [FIRST, BOTH], "supported"),
    ("C7", [FIRST], "not decided"),
    ("C7", [FIRST, BOTH | {"holds": False}], "refuted"),
    ("C7", [FIRST, BOTH, held("rows_sum_to_one", holds=False, backend="naive")], "depends"),
    ("C8", [held(ORDER)], "supported"),
    ("C8", [held(ORDER, holds=False)], "refuted"),
    ("C9", [held(SCALED, holds=False)], "refuted"),
    ("C9", [held(SCALED)], "supported"),
    ("C15", parameters(SHARED, 100, 100, 100), "refuted"),
    ("C15", parameters(FIXED, 100, 200, 400), "supported"),
    ("C15", parameters(SHARED, 100, 100) + parameters(FIXED, 100, 200), "depends"),
    ("C16", [share(128, 0.2), share(1024, 0.08)], "refuted"),
    ("C16", [share(128, 0.05), share(1024, 0.2)], "supported"),
    ("C16", [share(128, 0.2), share(1024, 0.19)], "not decided"),  # of one process
    ("C16", [share(128, 0.2)], "not run"),
    ("C21", threads(1.0, 1.9), "supported"),
    ("C21", threads(1.9, 1.9), "not decided"),  # as far as processes differ
    ("C21", [one for i in range(5) for one in threads(1.9, 1.9, process=i)], "refuted"),
    ("C21", threads(3.0, 1.5), "refuted"),
    ("C21", threads(0.3, 0.6), "refuted"),  # nobody gains, so there is nothing to lose
    ("C21", threads(1.0, 1.9, **LOUD), "not decided"),
    ("C21", threads(1.0, 1.9)[:1], "not run"),
    ("C12", [one | {"backend": "rnn"} for one in threads(3.0, 1.5)[:1]], "not run"),
    ("Q8", [*NARROW, WIDE, gradient(512, 3.0, 3.0, scaled=True)], "supported"),
    ("Q8", [*NARROW, WIDE, gradient(512, 1.0, 1.0, scaled=True)], "refuted"),  # it falls
    ("Q8", NARROW, "not run"),
    ("Q8", [*NARROW, WIDE, gradient(512, 3.0, 0.1, scaled=True)], "depends"),  # by the query
    ("Q12a", [fact("outputs_in_hull_of_values")], "supported"),
    ("Q12a", [fact("outputs_in_hull_of_values", holds=False)], "refuted"),
    ("Q12b", [fact("outputs_in_hull_of_inputs", holds=False)], "refuted"),
    ("Q12b", [fact("outputs_in_hull_of_inputs")], "supported"),
    ("Q12b", [fact("outputs_in_hull_of_values")], "not run"),
    ("Q13", [fact("other_weights_fall", backend="sdpa")], "supported"),
    ("Q13", [fact("other_weights_fall", backend="sdpa", holds=False)], "refuted"),
    ("Q14", [*XAVIER, *OTHERS], "supported"),
    ("Q14", [XAVIER[0], initial("xavier", 0.01, 0.03, 256), *OTHERS], "depends"),  # over N
    ("Q14", [*(initial("xavier", 0.001, 0.001, n) for n in (16, 256)), *OTHERS], "refuted"),
    ("Q14", [XAVIER[0], *OTHERS], "not decided"),  # of one N
    ("Q14", [*XAVIER, initial("normal_1", 1.0, 1.0), OTHERS[1]], "refuted"),
    ("Q14", [*XAVIER, OTHERS[0]], "not decided"),  # a rule is missing
    ("Q15", [product(2.0)], "supported"),
    ("Q15", [product(0.5)], "refuted"),
    ("Q15", [product(1.1)], "not decided"),  # what processes may differ explains it
    ("Q15", in_processes(1.10, 1.11, 1.09, 1.10, 1.12), "supported"),  # they do not
    ("Q15", in_processes(0.90, 0.91, 0.89, 0.90, 0.92), "refuted"),
    ("Q15", in_processes(0.99, 1.01, 0.98, 1.00, 1.01), "refuted"),  # shown to be the same
    ("Q15", in_processes(1.10, 1.11, 0.99, 1.10, 1.12), "not decided"),
    ("Q15", in_processes(1.10, 1.11, 1.09, 1.10, 1.12, **LOUD), "not decided"),
    ("Q15", [product(2.0, **CALM)], "supported"),
    ("Q15", [product(2.0, **LOUD)], "not decided"),
    ("Q15", [product(5.0, **LOUD)], "supported"),
    ("Q16", [over(256, 0.5), over(512, 3.0)], "supported"),
    ("Q16", [over(256, 3.0), over(512, 0.5)], "refuted"),
    ("Q16", [over(512, 3.0, **MORE_FLOPS)], "refuted"),
    ("Q16", [over(512, 3.0, **NO_TIMES)], "not decided"),  # FLOPs alone
    ("Q16", [over(512, 1.1, process=i) for i in range(5)], "supported"),
    ("Q17", [fact(one) for one in FILLS], "supported"),
    ("Q17", [fact(FILLS[0]), fact(FILLS[1], holds=False)], "depends"),
    (
        "Q17",
        [fact(one, holds=False, dtype="fp16", complaint="overflow") for one in FILLS],
        "refuted",
    ),
    ("Q17", [fact(FILLS[0], holds="yes")], "not run"),
]


@pytest.mark.parametrize(("name", "studies", "wanted"), JUDGED)
def test_studies_decide_their_claims(name: str, studies: list[Found], wanted: str) -> None:
    assert verdict(name, studies) == wanted


def test_a_mask_that_torch_cannot_make_is_told_in_its_words() -> None:
    refused = fact(FILLS[0], holds=False, dtype="fp16", complaint="no such number")
    first = next(iter(parts("Q17", [fact(FILLS[0], backend="sdpa"), refused]).values()))
    assert first.of == "fp16, rows that see a key"
    assert first.numbers == "torch raises: no such number"


NAMES = ("score_scale", "head_copies", "layer_properties", "parameter_count", "output_share")


@pytest.mark.parametrize("name", ["C5", "C6", "C7", "C15", "C16", "Q16"])
@pytest.mark.parametrize(
    "studies",
    [
        None,
        "all",
        [None, 3, "x", [], {}],
        [{"study": name} for name in NAMES],
        [{**variance(8, scaled=True, ratio=1.0), "score_variance": "1"}],
        [{**COPIES[1], "heads": None}, {**held("rows_sum_to_one"), "holds": 1}],
        [share(1, 0.1, share_low_ratio=float("nan")), share(2, 0.1, share_high_ratio="x")],
        [{"study": ["score_scale"], "d_k": {}}, {"study": "generation", "tokens": "many"}],
    ],
)
def test_broken_findings_are_skipped(name: str, studies: Any) -> None:
    assert verdict(name, studies) == "not run"


# ---- generation ----------------------------------------------------------------------------------

FLOPS, FUSED = "FLOPs", "time, fused"


def generated(*findings: Found) -> dict[str, Evidence]:
    return parts("Q16", list(findings))


def test_a_cache_saves_flops_and_time_at_the_most_tokens() -> None:
    found = generated(over(256, 0.5), over(512, 3.0))
    assert [found[of].verdict for of in (FLOPS, FUSED)] == ["supported"] * 2
    low, high = 3.0 / 1.01 / 1.3, 3.0 * 1.01 * 1.3
    assert f"512 tokens without a cache take 3.00 times ({low:.2f} to {high:.2f}) the time" in (
        found[FUSED].numbers
    )
    alike = [over(n, 3.0, full_total_flops=4 * n**2) for n in (256, 512)]
    assert generated(*alike)[FLOPS].verdict == "refuted"


NO_INTERVAL = {f"full_over_cached_total_{end}_ratio": None for end in ("low", "high")}


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        (over(512, 0.5), "refuted"),
        (over(512, 1.2), "not decided"),
        (over(512, 3.0, reach=10.0), "not decided"),
        (over(512, 3.0, **NO_INTERVAL), "not decided"),
        (over(512, 3.0, **LOUD), "not decided"),
        (over(512, 3.0, **CALM), "supported"),
        (over(512, 5.0, **LOUD), "supported"),
    ],
)
def test_time_is_decided_by_what_processes_cannot_explain(last: Found, wanted: str) -> None:
    assert generated(over(256, 3.0), last)[FUSED].verdict == wanted


def test_a_backend_that_computes_something_else_with_a_cache_saves_nothing() -> None:
    untimed = {**dict.fromkeys(VALUES), "complaint": "cached steps are not the full causal pass"}
    found = generated(over(512, 3.0), {"study": "generation", **finding("sdpa", 512, **untimed)})
    assert (found[FUSED].verdict, found["sdpa"].verdict) == ("supported", "not decided")
