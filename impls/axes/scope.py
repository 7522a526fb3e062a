"""How much around attention is computed: nothing, the layer's projections, or a block."""

from ..problem_fields import ProblemFields
from .axis import Axis


def _check(p: ProblemFields) -> None:
    if p.scope == "block" and p.kv_seq_len not in (0, p.seq_len):
        raise ValueError(
            f"scope block is self-attention, but kv_seq_len ({p.kv_seq_len}) is not seq_len"
            f" ({p.seq_len}); leave kv_seq_len out, or set scope to layer"
        )


SCOPE = Axis(
    "core starts from q, k and v per head; layer adds the input projections and the output"
    " projection; block is a pre-norm transformer block around the layer.",
    option="core (from q, k, v), layer (with projections) or block (default: core).",
    given="core",
    scenario_wide=True,
    part=lambda p: p.scope,
    in_rows=(
        "`core`: from q, k, v per head; `layer`: with all four projections; `block`: a pre-norm"
        " transformer block around the layer, with a feed-forward layer of width 4 d_model"
    ),
    check=_check,
)
