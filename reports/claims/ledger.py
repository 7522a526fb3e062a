"""The claims: which quantity decides each, and the range of it that counts as holding.

docs/theory.md says why.
"""

from collections.abc import Sequence
from functools import partial
from math import inf, nextafter

from ..data.row_groups import Row, by
from ..data.run_meta import Meta, device_name
from ..growth_fit import EXPONENT_MARGIN
from . import of_rows, of_studies
from .claim import LINEAR, STRIDED, Claim, Measured, Quantity
from .of_rows import EQUAL

STATEMENTS = {
    "C1": "The score matrix takes B h N² e bytes: 10⁸ elements per head at N = 10 000.",
    "C2": "A layer's time is O(N² d) for long sequences, O(N d²) below, and turns where FLOPs do.",
    "C3b": "h heads of width d/h need the memory of one head of width d.",
    "C3c": "h heads of width d/h take the time of one head of width d.",
    "C4": "One projection for all heads gives what h projections give, and is faster.",
    "C5": "Without 1/sqrt(d_k) the variance of the scores is d_k, with it 1.",
    "C6": "View and transpose join the heads without copying.",
    "C7": "Rows of the weights sum to 1, and outputs lie between the values.",
    "C8": "Without positions, permuting the inputs permutes the outputs.",
    "C9": "Scaling all inputs by a constant leaves the weights as they are.",
    "C10": "For long sequences the quadratic part dominates the projections.",
    "C11": "Local and random patterns, Linformer and Performer are linear in N, strides N^1.5.",
    "C12": "A recurrent layer costs O(N d²).",
    "C14": "Removing heads saves cost in proportion.",
    "C15": "More heads mean more parameters.",
    "C17": "The quadratic part, N² d, is linear in d.",
    "C18": "The projections, N d², are quadratic in d.",
    "C20": "Cost grows in proportion to the batch: a larger one saves nothing per token.",
}
NEEDS = {
    "C5": "score_scale",
    "C6": "head_copies",
    **dict.fromkeys(("C7", "C8", "C9"), "layer_properties"),
    "C11": "claims_sparse and claims_linear",
    "C14": "claims_pruning",
    "C15": "parameter_count",
    **dict.fromkeys(("C12", "C17", "C18", "C20"), "claims_growth"),
}
"""The study, or the scenario if it is not claims_layer."""
METHODS = {**dict.fromkeys(LINEAR, 1.0), STRIDED: 1.5}
ONE = (1.0, 1.0)
MORE = (nextafter(1, inf), inf)
HALF = (nextafter(0.5, 1), inf)


def near(exponent: float) -> tuple[float, float]:
    return exponent - EXPONENT_MARGIN, exponent + EXPONENT_MARGIN


def holds(claim: str, name: str) -> Quantity:
    told = f"share in which {name.replace('_', ' ')}"
    return Quantity(claim, told, ONE, partial(of_studies.holding, name))


QUANTITIES = (
    Quantity("C1", "bytes per N² of fused over 2 B h e", ONE, of_rows.score_matrices),
    Quantity("C2", "N at which N² takes over, over that of FLOPs", (0.5, 2), of_rows.crossing),
    Quantity("C3b", "bytes over those of one head", (0, EQUAL[1]), of_rows.bytes_of_heads),
    Quantity("C3c", "time over that of one head", EQUAL, of_rows.time_of_heads),
    Quantity("C4", "equal results", ONE, of_rows.equal_projections),
    Quantity("C4", "time of the loop over that of fused", MORE, of_rows.loop_over_fused),
    Quantity("C5", "without 1/sqrt(d_k), over d_k", EQUAL, partial(of_studies.variance, 0)),
    Quantity("C5", "with 1/sqrt(d_k)", EQUAL, partial(of_studies.variance, 1)),
    Quantity("C6", "copied bytes", (0, 0), of_studies.joined_bytes),
    holds("C7", "rows_sum_to_one"),
    holds("C7", "outputs_between_values"),
    holds("C8", "order_permutes_outputs"),
    holds("C9", "scaling_inputs_keeps_weights"),
    Quantity("C10", "core over layer", HALF, of_rows.core_share),
    *(
        Quantity("C11", f"exponent of {one}", near(power), partial(of_rows.method, one))
        for one, power in METHODS.items()
    ),
    Quantity("C12", "growth with N", near(1), partial(of_rows.recurrent, "seq_len")),
    Quantity("C12", "growth with d", near(2), partial(of_rows.recurrent, "d_model")),
    Quantity("C14", "time over the share", EQUAL, partial(of_rows.times, of_rows.pruned)),
    Quantity("C14", "bytes over the share", EQUAL, partial(of_rows.needed, of_rows.pruned)),
    Quantity("C15", "parameters over those with fewer heads", MORE, of_studies.parameters),
    Quantity("C17", "exponent of FLOPs", near(1), partial(of_rows.width_flops, "core")),
    Quantity("C17", "exponent of time", near(1), partial(of_rows.width_times, "core")),
    Quantity("C18", "exponent of FLOPs", near(2), partial(of_rows.width_flops, "layer")),
    Quantity("C18", "exponent of time", near(2), partial(of_rows.width_times, "layer")),
    Quantity("C20", "time over the share", EQUAL, partial(of_rows.times, of_rows.batches)),
    Quantity("C20", "bytes over the share", EQUAL, partial(of_rows.needed, of_rows.batches)),
)


def claims_on(runs: Sequence[Measured]) -> list[Claim]:
    """Every claim once, on runs of one device."""
    each = by(QUANTITIES, lambda one: one.claim)
    return [
        Claim(name, statement, NEEDS.get(name, "claims_layer"), each[name], runs)
        for name, statement in STATEMENTS.items()
    ]


def measured(rows: Sequence[Row], meta: Meta) -> dict[str, list[Measured]]:
    """The runs of each kind of device, by what titles say of it; a lone one is ""."""
    found: dict[str, list[Measured]] = {}
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        found.setdefault(device_name(run), []).append(Measured(every=mine, run=run))
    return {f" on {one}" if len(found) > 1 else "": some for one, some in found.items()}
