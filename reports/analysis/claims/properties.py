"""Properties of attention, tried on random cases in float64: C7 to C9, Q12, Q13 and Q17.

They read two studies: layer_properties (C7 to C9) and attention_facts (Q12, Q13, Q17).
"""

from collections.abc import Sequence
from typing import Any

from ....harness.rows.findings import AttentionFact, LayerProperty, findings_of
from ...formatting import beyond_text, number_text, percent_text
from .claim_verdict import ClaimVerdict, Part, jointly
from .statement import Statement


def properties(findings: Sequence[Any], *names: str) -> list[Part]:
    """C7, C8, C9: all named properties hold in every case that was tried."""
    found = {one.property: one for one in findings_of(LayerProperty, findings)}
    tried = [name for name in names if name in found]
    if not tried:
        return []
    verdicts: list[ClaimVerdict] = ["supported" if found[n].holds else "refuted" for n in tried]
    verdicts += ["not run"] * (len(names) - len(tried))
    texts = []
    for name in tried:
        error = number_text(found[name].worst_error_ratio) or "unknown"
        texts.append(f"{name.replace('_', ' ')}: off by at most {error}")
    return [Part(of="random cases", verdict=jointly(verdicts), numbers="; ".join(texts))]


def holds(findings: Sequence[Any], names: dict[str, str]) -> list[Part]:
    """Q12, Q13, Q17: each statement that the study tried, by the name that the part has."""
    parts = []
    for one in findings_of(AttentionFact, findings):
        of = names.get(one.statement)
        if of is None:
            continue
        share, cases = one.holding_ratio, one.case_count
        error = number_text(one.worst_error_ratio) or "unknown"
        parts.append(
            Part(
                of=of,
                verdict="supported" if one.holds else "refuted",
                numbers=(
                    f"in {percent_text(share)}{beyond_text(share)} of {cases} random cases, off"
                    f" by at most {error}"
                ),
            )
        )
    return parts


CLAIMS: dict[str, Statement] = {
    "C7": Statement(
        statement="Rows of the weights sum to 1, and outputs lie between the values.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: properties(findings, "rows_sum_to_one", "outputs_between_values"),
        study="layer_properties",
    ),
    "C8": Statement(
        statement="Without positions, permuting the inputs permutes the outputs.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: properties(findings, "order_permutes_outputs"),
        study="layer_properties",
    ),
    "C9": Statement(
        statement="Scaling all inputs by a constant leaves the weights as they are.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: properties(findings, "scaling_inputs_keeps_weights"),
        study="layer_properties",
    ),
    "Q12a": Statement(
        statement="Outputs lie in the convex hull of the values.",
        tested="linear program per output on random cases in float64, not a box",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: holds(findings, {"outputs_in_hull_of_values": "random cases"}),
        study="attention_facts",
    ),
    "Q12b": Statement(
        statement="... and in that of the inputs.",
        tested="the same linear program, with W_V between inputs and values",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: holds(findings, {"outputs_in_hull_of_inputs": "random cases"}),
        study="attention_facts",
    ),
    "Q13": Statement(
        statement="If one score rises, its weight rises and all others fall.",
        tested="signs of the changes on random cases in float64",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: holds(findings, {"other_weights_fall": "random cases"}),
        study="attention_facts",
    ),
    "Q17": Statement(
        statement="Masking by -1e9 is the same as masking by minus infinity.",
        tested="random cases in float64, with and without rows that see no key",
        to_run="studies: [attention_facts]",
        test=lambda _, findings: holds(
            findings,
            {
                "fill_equals_infinity": "rows that see a key",
                "fill_equals_infinity_without_keys": "rows that see no key",
            },
        ),
        study="attention_facts",
    ),
}
