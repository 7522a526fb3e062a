"""reports/claims/studies.py: verdicts from findings, whatever they contain."""

from pathlib import Path
from typing import Any

import pytest

from tests.reports.fake_claims import COPIES, MERGED, ledger_of


def variance(d_k: int, *, scaled: bool, ratio: float, reach: float = 0.02) -> dict[str, Any]:
    value = ratio * (1 if scaled else d_k)
    bounds = {"score_variance_low": value * (1 - reach), "score_variance_high": value * (1 + reach)}
    return {"study": "score_scale", "d_k": d_k, "scaled": scaled, "score_variance": value, **bounds}


def held(name: str, *, holds: bool) -> dict[str, Any]:
    return {
        "study": "layer_properties",
        "property": name,
        "holds": holds,
        "worst_error_ratio": 1e-15,
    }


def parameters(rule: str, *counts: int) -> list[dict[str, Any]]:
    return [
        {"study": "parameter_count", "d_k_rule": rule, "heads": 2**i, "parameter_count": count}
        for i, count in enumerate(counts)
    ]


SHARE = {
    "study": "output_share",
    "backend": "fused",
    "seq_len": 4096,
    "share_ratio": 0.1,
    "share_low_ratio": 0.08,
    "share_high_ratio": 0.12,
}


STUDIES: list[tuple[str, list[Any], str]] = [
    (
        "C5",
        [variance(d, scaled=s, ratio=1.0) for d in (8, 512) for s in (False, True)],
        "supported",
    ),
    ("C5", [variance(8, scaled=False, ratio=1.0), variance(8, scaled=True, ratio=2.0)], "depends"),
    ("C5", [variance(8, scaled=True, ratio=1.0, reach=0.2)], "inconclusive"),
    ("C6", COPIES, "refuted"),
    ("C6", MERGED, "supported"),
    ("C6", COPIES + MERGED, "depends"),
    ("C6", COPIES[:1], "not run"),
    (
        "C7",
        [held("rows_sum_to_one", holds=True), held("outputs_between_values", holds=True)],
        "supported",
    ),
    ("C7", [held("rows_sum_to_one", holds=True)], "inconclusive"),
    (
        "C7",
        [held("rows_sum_to_one", holds=True), held("outputs_between_values", holds=False)],
        "refuted",
    ),
    ("C8", [held("order_permutes_outputs", holds=True)], "supported"),
    ("C9", [held("scaling_inputs_keeps_weights", holds=False)], "refuted"),
    ("C15", parameters("d_model / heads", 100, 100, 100), "refuted"),
    ("C15", parameters("fixed", 100, 200, 400), "supported"),
    ("C15", parameters("d_model / heads", 100, 100) + parameters("fixed", 100, 200), "depends"),
    ("C16", [SHARE], "refuted"),
    (
        "C16",
        [SHARE | {"share_ratio": 0.75, "share_low_ratio": 0.7, "share_high_ratio": 0.8}],
        "supported",
    ),
    (  # a study has one process: another one may be 30 % off
        "C16",
        [SHARE | {"share_ratio": 0.6, "share_low_ratio": 0.58, "share_high_ratio": 0.62}],
        "inconclusive",
    ),
    ("C16", [SHARE | {"contended_blocks": 5, "blocks": 8}], "inconclusive"),
    ("C16", [SHARE | {"contended_blocks": 4, "blocks": 8}], "refuted"),
]


@pytest.mark.parametrize(("name", "studies", "verdict"), STUDIES)
def test_studies_decide_their_claims(
    tmp_path: Path, name: str, studies: list[Any], verdict: str
) -> None:
    assert ledger_of(tmp_path, studies=studies)[name].verdict == verdict


@pytest.mark.parametrize(
    "studies",
    [
        None,
        "all",
        [None, 3, "x", [], {}],
        [
            {"study": name}
            for name in (
                "score_scale",
                "head_copies",
                "layer_properties",
                "parameter_count",
                "output_share",
            )
        ],
        [
            {**variance(8, scaled=True, ratio=1.0), "score_variance": "1"},
            {**COPIES[1], "heads": None},
            {**held("x", holds=True), "holds": 1},
        ],
        [
            {**SHARE, "share_low_ratio": float("nan"), "share_high_ratio": "x"},
            {"study": ["score_scale"], "d_k": {}},
        ],
    ],
)
def test_broken_findings_are_skipped(tmp_path: Path, studies: Any) -> None:
    assert {claim.verdict for claim in ledger_of(tmp_path, studies=studies).values()} == {"not run"}
