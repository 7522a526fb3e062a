"""reports/claims/of_studies.py: verdicts from findings, whatever they contain."""

from typing import Any

import pytest

from tests.reports.fake_claims import COPIES, MERGED, bounded, verdict

Found = dict[str, Any]


def variance(
    d_k: int, *, scaled: bool, ratio: float, reach: float = 0.02, of: str = "sdpa"
) -> Found:
    bounds = bounded("score_variance", ratio * (1 if scaled else d_k), reach)
    return {"study": "score_scale", "d_k": d_k, "scaled": scaled, "of": of, **bounds}


def held(name: str, *, holds: bool = True, backend: str = "sdpa") -> Found:
    found = {"property": name, "holds": holds, "worst_error_ratio": 1e-15, "backend": backend}
    return {"study": "layer_properties", **found}


def parameters(rule: str, *counts: int) -> list[Found]:
    return [
        {"study": "parameter_count", "d_k_rule": rule, "heads": 2**i, "parameter_count": count}
        for i, count in enumerate(counts)
    ]


FIRST, BOTH = held("rows_sum_to_one"), held("outputs_between_values")
ORDER, SCALED = "order_permutes_outputs", "scaling_inputs_keeps_weights"
EITHER = (False, True)
SHARED, FIXED = "d_model / heads", "fixed"
TRUTH = [variance(d, scaled=s, ratio=1.0) for d in (8, 512) for s in EITHER]
JUDGED: list[tuple[str, list[Found], str]] = [
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
]


@pytest.mark.parametrize(("name", "studies", "wanted"), JUDGED)
def test_studies_decide_their_claims(name: str, studies: list[Found], wanted: str) -> None:
    assert verdict(name, studies) == wanted


NAMES = ("score_scale", "head_copies", "layer_properties", "parameter_count")


@pytest.mark.parametrize("name", ["C5", "C6", "C7", "C15"])
@pytest.mark.parametrize(
    "studies",
    [
        None,
        "all",
        [None, 3, "x", [], {}],
        [{"study": name} for name in NAMES],
        [{**variance(8, scaled=True, ratio=1.0), "score_variance": "1"}],
        [{**COPIES[1], "heads": None}, {**held("rows_sum_to_one"), "holds": 1}],
        [{"study": ["score_scale"], "d_k": {}}, {"study": "generation", "tokens": "many"}],
    ],
)
def test_broken_findings_are_skipped(name: str, studies: Any) -> None:
    assert verdict(name, studies) == "not run"
