"""reports/claims/studies.py: verdicts are those of the study."""

from typing import Any

import pytest

from tests.reports.fake_claims import (
    verdict,
)


def fact(statement: str, *, holds: bool) -> dict[str, Any]:
    return {
        "study": "attention_facts",
        "statement": statement,
        "holds": holds,
        "holding_ratio": float(holds),
        "worst_error_ratio": 0.1,
        "case_count": 40,
    }


@pytest.mark.parametrize(
    ("claim", "findings", "wanted"),
    [
        ("Q12a", [fact("outputs_in_hull_of_values", holds=True)], "supported"),
        ("Q12b", [fact("outputs_in_hull_of_inputs", holds=False)], "refuted"),
        ("Q12b", [fact("outputs_in_hull_of_values", holds=True)], "not run"),
        ("Q13", [fact("other_weights_fall", holds=True)], "supported"),
        (
            "Q17",
            [
                fact("fill_equals_infinity", holds=True),
                fact("fill_equals_infinity_without_keys", holds=False),
            ],
            "depends",
        ),
        ("Q17", [{**fact("fill_equals_infinity", holds=True), "holds": "yes"}], "not run"),
    ],
)
def test_statements_are_those_of_the_study(claim: str, findings: list[Any], wanted: str) -> None:
    assert verdict(claim, findings) == wanted
