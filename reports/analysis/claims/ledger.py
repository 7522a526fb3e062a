"""The claims ledger: textbook statements on multi-head attention, with tests and verdicts.

C: what attention costs; Q: what heads and attention do (quality_statements.py). docs/theory.md
describes each test. A verdict comes from an interval, or from exact bytes or FLOPs.
A claim that the run does not test is `not run`, with what it needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from ...data.exactness import is_exact
from ...data.row_groups import Row, by_environment
from ...data.run_meta import Meta, device_name
from . import counts, pruning, studies, times
from .claim_verdict import ClaimVerdict, Part, agreed
from .quality_statements import QUALITY
from .statement import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One line of the ledger.

    `parts`: its verdicts by backend; `unanswered`: why its study has no findings.
    """

    id: str
    statement: str
    tested: str
    verdict: ClaimVerdict
    parts: tuple[Part, ...]
    to_run: str
    unanswered: str


_LAYERS = "scope: [layer], five lengths or more"
_HEADS = "heads: [1, 2, 8, ...] with contrast: [heads]"
_BOTH_SCOPES = "scope: [core, layer], N up to several times 2 d_model"

STATEMENTS: dict[str, Statement] = {
    "C1": Statement(
        statement=(
            "The score matrix takes B h N² e bytes; at N = 10 000 it has 10⁸ elements per head."
        ),
        tested=(
            "N² coefficient of the exact peak of fused, solved in integers: 2 B h e, for scores and"
            " weights"
        ),
        to_run="fused, forward, not causal, four lengths or more",
        test=lambda rows, _: counts.score_matrix(rows),
    ),
    "C2": Statement(
        statement=(
            "A layer's time is O(N² d) for long sequences and O(N d²) below, and changes where its"
            " FLOPs do."
        ),
        tested=(
            "a + b N + c N² fitted to the layer's time: intervals of b and c above 0; crossover"
            " b/c within 2 times that of the FLOPs"
        ),
        to_run=_LAYERS,
        test=lambda rows, _: times.two_regimes(rows),
    ),
    "C3a": Statement(
        statement="h heads of width d/h need the FLOPs of one head of width d.",
        tested="exact count over h",
        to_run=_HEADS,
        test=lambda rows, _: counts.flops_of_heads(rows),
    ),
    "C3b": Statement(
        statement="... and the memory of one head.",
        tested=(
            "N² coefficient of the exact peak with h heads against one; with too few lengths, the"
            " peaks within 5 %"
        ),
        to_run=f"{_HEADS}, four lengths or more",
        test=lambda rows, _: counts.memory_of_heads(rows),
    ),
    "C3c": Statement(
        statement="... and the time of one head.",
        tested=(
            "equivalence test within 5 % (two one-sided tests on paired ratios), for every h and"
            " problem"
        ),
        to_run=_HEADS,
        test=lambda rows, _: times.time_of_heads(rows),
    ),
    "C4": Statement(
        statement="One projection for all heads gives what h projections give, and is faster.",
        tested=(
            "both pass the check against float64; paired ratio of naive to fused in scope layer"
            " above 1"
        ),
        to_run="naive and fused, scope: [layer], more than one head",
        test=times.one_projection,
    ),
    "C5": Statement(
        statement="Without 1/sqrt(d_k) the variance of the scores is d_k, with it 1.",
        tested="interval of the variance over the expected one within 5 %, for every d_k",
        to_run="studies: [score_scale]",
        test=lambda _, findings: studies.score_scale(findings),
        study="score_scale",
    ),
    "C6": Statement(
        statement="View and transpose join the heads without copying.",
        tested="exact bytes that joining takes, h > 1",
        to_run="studies: [head_copies]",
        test=lambda _, findings: studies.head_copies(findings),
        study="head_copies",
    ),
    "C7": Statement(
        statement="Rows of the weights sum to 1, and outputs lie between the values.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: studies.properties(
            findings, "rows_sum_to_one", "outputs_between_values"
        ),
        study="layer_properties",
    ),
    "C8": Statement(
        statement="Without positions, permuting the inputs permutes the outputs.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: studies.properties(findings, "order_permutes_outputs"),
        study="layer_properties",
    ),
    "C9": Statement(
        statement="Scaling all inputs by a constant leaves the weights as they are.",
        tested="random cases in float64",
        to_run="studies: [layer_properties]",
        test=lambda _, findings: studies.properties(findings, "scaling_inputs_keeps_weights"),
        study="layer_properties",
    ),
    "C10": Statement(
        statement="For long sequences the quadratic part dominates the projections.",
        tested=(
            "core over layer, the same problem in both scopes: above one half at the longest N,"
            " past the crossover of the FLOPs"
        ),
        to_run=_BOTH_SCOPES,
        test=lambda rows, _: times.core_share(rows),
    ),
    "C11": Statement(
        statement=(
            "Local and random patterns, Linformer and Performer are linear in N; strides of sqrt(N)"
            " give N^1.5."
        ),
        tested="exponent of time at the longest N within 0.1; no N² in the exact bytes",
        to_run=(
            "backends sparse_local, sparse_random, sparse_strided, linformer or performer, five"
            " lengths or more"
        ),
        test=lambda rows, _: times.linear_growth(rows),
        of_inexact=True,
    ),
    "C12": Statement(
        statement="A recurrent layer costs O(N d²) and cannot use the parallelism.",
        tested=(
            "exponent of time at the longest N within 0.1 of 1; fewer active SMs than attention"
        ),
        to_run=(
            "backend rnn, five lengths or more, measure: [latency, utilization], on a GPU with"
            " performance counters"
        ),
        test=lambda rows, _: times.recurrent(rows),
        of_inexact=True,
    ),
    "C13": Statement(
        statement="The fused layer uses the GPU better than the loop over heads.",
        tested="intervals of the share of active SMs do not overlap (performance counters only)",
        to_run=(
            "naive and fused, measure: [latency, utilization], on a GPU with performance counters"
        ),
        test=lambda rows, _: times.better_used(rows),
    ),
    "C14": Statement(
        statement=(
            "Removing heads saves cost in proportion. (What it does to quality: Q3 for single"
            " heads, Q19 for half of them.)"
        ),
        tested="time and bytes of a layer with k of h heads left, over k/h, within 5 %",
        to_run="scope: [layer], d_k and d_v fixed, several heads with contrast: [heads]",
        test=lambda rows, _: pruning.head_pruning(rows),
    ),
    "C15": Statement(
        statement="More heads mean more parameters.",
        tested=(
            "parameters counted over h, for heads that share d_model and for heads of a fixed width"
        ),
        to_run="studies: [parameter_count]",
        test=lambda _, findings: studies.parameter_count(findings),
        study="parameter_count",
    ),
    "C16": Statement(
        statement="Joining the heads and the output projection become a bottleneck.",
        tested=(
            "share of a layer's time outside its core, which holds both, at the longest N: below"
            " one half refutes it"
        ),
        to_run=f"{_BOTH_SCOPES}; or a study output_share",
        test=lambda rows, findings: studies.output_share(findings) or times.outside_share(rows),
    ),
    **QUALITY,
}


def ledger(rows: Sequence[Row], run: Mapping[str, Any]) -> list[Claim]:
    """Every claim once, for the rows of one run and the findings of its studies."""
    found = run.get("studies")
    findings = found if isinstance(found, list) else []
    exact = [row for row in rows if is_exact(row)]
    claims = []
    for name, of in STATEMENTS.items():
        parts = tuple(of.test(list(rows) if of.of_inexact else exact, findings))
        claims.append(
            Claim(
                id=name,
                statement=of.statement,
                tested=of.tested,
                verdict=agreed(part.verdict for part in parts),
                parts=parts,
                to_run=of.to_run,
                unanswered="" if parts or not of.study else studies.unanswered(run, of.study),
            )
        )
    return claims


def ledgers(rows: Sequence[Row], meta: Meta) -> dict[str, list[Claim]]:
    """The ledger of each kind of device and each environment, over all runs there.

    By what it is about, for titles: ` in torch-2.11 on AMD EPYC (cpu)`; of a lone one, "".
    """
    found: dict[tuple[str, str | None], list[list[Claim]]] = {}
    for name, run in meta.items():
        studied = next((one["name"] for one in run.get("environments") or []), None)
        for python, mine in by_environment(row for row in rows if row["run"] == name).items():
            # None: the only environment, or no case has a row
            of = run if python in (None, studied) else {**run, "studies": [], "unanswered": []}
            found.setdefault((device_name(run), python), []).append(ledger(mine, of))
    several = len({device for device, _ in found}) > 1
    return {
        (f" in {python}" if python else "") + (f" on {device}" if several else ""): merged(some)
        for (device, python), some in found.items()
    }


def merged(ledgers: Sequence[Sequence[Claim]]) -> list[Claim]:
    """The ledgers of several runs as one, with the parts of all runs."""
    claims = []
    for same in zip(*ledgers, strict=True):
        parts = tuple(part for claim in same for part in claim.parts)
        reasons = dict.fromkeys(claim.unanswered for claim in same if claim.unanswered)
        claims.append(
            replace(
                same[0],
                parts=parts,
                verdict=agreed(part.verdict for part in parts),
                unanswered="" if parts else "; ".join(reasons),
            )
        )
    return claims


def tally(claims: Sequence[Claim]) -> str:
    """`18 statements: 4 supported, 2 refuted, 1 depends, 2 inconclusive, 9 not run`."""
    order: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
    counts = [(verdict, sum(claim.verdict == verdict for claim in claims)) for verdict in order]
    texts = (f"{count} {verdict}" for verdict, count in counts if count)
    return f"{len(claims)} statements: {', '.join(texts)}"
