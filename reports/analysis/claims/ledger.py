"""The claims ledger: what textbooks say of multi-head attention, each statement with its test and a
verdict (docs/theory.md).

A verdict comes from an interval, or from exact bytes or FLOPs. Whatever a run does not hold is `not
run`, with what would have to be run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...data.exactness import is_exact
from ...data.row_groups import Row
from . import (
    counts as claims_bytes,
    pruning as claims_pruning,
    studies as claims_studies,
    times as claims_times,
)
from .claim_verdict import Part, Verdict, agreed


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One line of the ledger. `parts` are its verdicts one by one, none where it was not run;
    `open_because` says why there are none.
    """

    id: str
    statement: str
    tested: str
    verdict: Verdict
    parts: tuple[Part, ...]
    to_run: str
    open_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    statement: str
    tested: str
    to_run: str
    test: Callable[[list[Row], Sequence[Any]], list[Part]]
    study: str = ""


OF_OTHERS = ("C11", "C12")
"""The claims on what is not exact. To all others it is no witness: they speak of attention."""
_LAYERS = "scope: [layer], four lengths or more"
_HEADS = "heads: [1, 2, 8, ...] with contrast: [heads]"
_BOTH_SCOPES = "scope: [core, layer], N up to several times 2 d_model"

STATEMENTS: dict[str, _Statement] = {
    "C1": _Statement(
        statement=(
            "The score matrix takes B h N² e bytes; at N = 10 000 it has 10⁸ elements per head."
        ),
        tested=(
            "N² coefficient of the exact peak of fused, solved in integers: 2 B h e, for scores and"
            " weights"
        ),
        to_run="fused, forward, not causal, four lengths or more",
        test=lambda rows, _: claims_bytes.score_matrix(rows),
    ),
    "C2": _Statement(
        statement="A layer's time is O(N² d) for long sequences and O(N d²) below.",
        tested=(
            "a + b N + c N² fitted to the layer's time: both b and c above 0 beyond doubt;"
            " crossover b/c beside that of the FLOPs"
        ),
        to_run=_LAYERS,
        test=lambda rows, _: claims_times.two_regimes(rows),
    ),
    "C3a": _Statement(
        statement="h heads of width d/h need the FLOPs of one head of width d.",
        tested="exact count over h",
        to_run=_HEADS,
        test=lambda rows, _: claims_bytes.flops_of_heads(rows),
    ),
    "C3b": _Statement(
        statement="... and the memory of one head.",
        tested=(
            "N² coefficient of the exact peak with h heads against one; where lengths are too few,"
            " the peaks within 5 %"
        ),
        to_run=f"{_HEADS}, four lengths or more",
        test=lambda rows, _: claims_bytes.memory_of_heads(rows),
    ),
    "C3c": _Statement(
        statement="... and the time of one head.",
        tested=(
            "equivalence test within 5 % (two one-sided tests on paired ratios), for every h and"
            " problem"
        ),
        to_run=_HEADS,
        test=lambda rows, _: claims_times.time_of_heads(rows),
    ),
    "C4": _Statement(
        statement="One projection for all heads gives what h projections give, and is faster.",
        tested=(
            "both pass the gate against float64; paired ratio of naive to fused in scope layer"
            " above 1"
        ),
        to_run="naive and fused, scope: [layer], more than one head",
        test=claims_times.one_projection,
    ),
    "C5": _Statement(
        statement="Without 1/sqrt(d_k) the variance of the scores is d_k, with it 1.",
        tested="interval of the variance over the expected one within 5 %, for every d_k",
        to_run="studies: [score_scale]",
        test=lambda _, findings: claims_studies.score_scale(findings),
        study="score_scale",
    ),
    "C6": _Statement(
        statement="View and transpose join the heads without copying.",
        tested="exact bytes that joining takes, h > 1",
        to_run="studies: [head_copies]",
        test=lambda _, findings: claims_studies.head_copies(findings),
        study="head_copies",
    ),
    "C7": _Statement(
        statement="Rows of the weights sum to 1, and outputs lie between the values.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: claims_studies.properties(
            findings, "rows_sum_to_one", "outputs_between_values"
        ),
        study="layer_properties",
    ),
    "C8": _Statement(
        statement="Without positions, permuting the inputs permutes the outputs.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: claims_studies.properties(findings, "order_permutes_outputs"),
        study="layer_properties",
    ),
    "C9": _Statement(
        statement="Scaling all inputs by a constant leaves the weights as they are.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: claims_studies.properties(
            findings, "scaling_inputs_keeps_weights"
        ),
        study="layer_properties",
    ),
    "C10": _Statement(
        statement="For long sequences the quadratic part dominates the projections.",
        tested=(
            "core over layer, the same problem in both scopes: above one half at the longest N,"
            " past the crossover of the FLOPs"
        ),
        to_run=_BOTH_SCOPES,
        test=lambda rows, _: claims_times.core_share(rows),
    ),
    "C11": _Statement(
        statement=(
            "Local and random patterns, Linformer and Performer are linear in N; strides of sqrt(N)"
            " give N^1.5."
        ),
        tested="exponent of time at the longest N within 0.1; no N² in the exact bytes",
        to_run=(
            "backends sparse_local, sparse_random, sparse_strided, linformer or performer, four"
            " lengths or more"
        ),
        test=lambda rows, _: claims_times.linear_growth(rows),
    ),
    "C12": _Statement(
        statement="A recurrent layer costs O(N d²) and cannot use the parallelism.",
        tested=(
            "exponent of time at the longest N within 0.1 of 1; SMs active below those of attention"
        ),
        to_run=(
            "backend rnn, four lengths or more, measure: [latency, utilization], on a GPU with"
            " performance counters"
        ),
        test=lambda rows, _: claims_times.recurrent(rows),
    ),
    "C13": _Statement(
        statement="The fused layer uses the GPU better than the loop over heads.",
        tested="intervals of the share of active SMs lie apart (performance counters only)",
        to_run=(
            "naive and fused, measure: [latency, utilization], on a GPU with performance counters"
        ),
        test=lambda rows, _: claims_times.better_used(rows),
    ),
    "C14": _Statement(
        statement=(
            "Removing heads saves cost in proportion. (That quality barely suffers needs training,"
            " and is not tested here.)"
        ),
        tested="time and bytes of a layer with k of h heads left, over k/h, within 5 %",
        to_run="scope: [layer], d_k and d_v fixed, several heads with contrast: [heads]",
        test=lambda rows, _: claims_pruning.head_pruning(rows),
    ),
    "C15": _Statement(
        statement="More heads mean more parameters.",
        tested=(
            "parameters counted over h, for heads that share d_model and for heads of a fixed width"
        ),
        to_run="studies: [parameter_count]",
        test=lambda _, findings: claims_studies.parameter_count(findings),
        study="parameter_count",
    ),
    "C16": _Statement(
        statement="Joining the heads and the output projection become a bottleneck.",
        tested=(
            "share of a layer's time outside its core, which holds both, at the longest N: below"
            " one half refutes it"
        ),
        to_run=f"{_BOTH_SCOPES}; or a study output_share",
        test=lambda rows, findings: (
            claims_studies.output_share(findings) or claims_times.outside_share(rows)
        ),
    ),
}


def ledger(rows: Sequence[Row], run: Mapping[str, Any]) -> list[Claim]:
    """Every claim once, for the rows of one run and for what run.json and its studies say."""
    studies = run.get("studies")
    findings = studies if isinstance(studies, list) else []
    exact = [row for row in rows if is_exact(row)]
    return [
        _claim(name, statement, list(rows) if name in OF_OTHERS else exact, findings, run)
        for name, statement in STATEMENTS.items()
    ]


def _claim(
    name: str, of: _Statement, rows: list[Row], findings: Sequence[Any], run: Mapping[str, Any]
) -> Claim:
    parts = tuple(of.test(rows, findings))
    return Claim(
        id=name,
        statement=of.statement,
        tested=of.tested,
        verdict=agreed(part.verdict for part in parts),
        parts=parts,
        to_run=of.to_run,
        open_because="" if parts or not of.study else claims_studies.unanswered(run, of.study),
    )


def together(ledgers: Sequence[Sequence[Claim]]) -> list[Claim]:
    """The ledgers of several runs as one: what each run found stands side by side, and a claim is
    open only if no run tested it.
    """
    merged = []
    for alike in zip(*ledgers, strict=True):
        parts = tuple(part for claim in alike for part in claim.parts)
        reasons = dict.fromkeys(claim.open_because for claim in alike if claim.open_because)
        verdict = agreed(part.verdict for part in parts)
        merged.append(
            replace(
                alike[0],
                parts=parts,
                verdict=verdict,
                open_because="" if parts else "; ".join(reasons),
            )
        )
    return merged


def tally(claims: Sequence[Claim]) -> str:
    """`18 statements: 4 supported, 2 refuted, 1 depends, 2 inconclusive, 9 not run`."""
    order: tuple[Verdict, ...] = ("supported", "refuted", "depends", "inconclusive", "not run")
    counts = [(verdict, sum(claim.verdict == verdict for claim in claims)) for verdict in order]
    return f"{len(claims)} statements: " + ", ".join(
        f"{count} {verdict}" for verdict, count in counts if count
    )
