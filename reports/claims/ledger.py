"""The claims: what textbooks state, the quantity that decides it, and the range that holds.

docs/internals/theory.md says why, with the sources.
"""

from collections.abc import Sequence
from functools import partial
from math import inf

from ..data.exactness import RECURRENT
from ..data.row_groups import axis_title
from ..growth_fit import EXPONENT_MARGIN
from ..words import SAME_RATIO
from .claim import LEAST, MOST, Claim, Criterion, crossings, exponents, ratios, score_matrices

EQUAL = (1 / (1 + SAME_RATIO), 1 + SAME_RATIO)
NO_MORE = (0.0, EQUAL[1])
MORE = (EQUAL[1], inf)
EXACTLY = (1.0, 1.0)

TIME, FLOPS = ("latency_ms",), ("work_flops",)
BYTES, NEEDED, INPUTS = ("peak_bytes",), ("needed_bytes",), ("input_bytes",)

DENSE = f"exact and not family.str.startswith('sparse_') and family not in {RECURRENT}"
PLAIN = f"{DENSE} and not causal and mask == 'none' and kv_seq_len == seq_len"
LAYER, CORE = f"{DENSE} and scope == 'layer'", f"{DENSE} and scope == 'core'"
SLICES = f"{DENSE} and heads * d_k == d_model and heads * d_v == d_model"
FORWARD = f"{PLAIN} and scope == 'core' and passes == 'forward'"
FUSED, SEVERAL = f"{FORWARD} and backend == 'fused'", f"{FORWARD} and heads > 1"
TILED = f"{PLAIN} and scope == 'core' and backend in ('sdpa', 'triton')"
LOOP = f"{LAYER} and heads > 1 and backend in ('naive', 'fused')"
LONG = f"{PLAIN} and seq_len >= 8 * d_model"  # four fifths of the FLOPs are in N²
SHORT = f"{LAYER} and 8 * seq_len <= d_model.max()"  # most of them are in the projections
DECODE = f"{CORE} and seq_len == 1"

in_proportion = partial(ratios, share=True)
of_one_head = partial(ratios, axis="heads", base=1, apart=("kv_heads", "d_k", "d_v"))
of_most_heads = partial(in_proportion, axis="heads", base=MOST, apart=("kv_heads",))
of_least_batch = partial(in_proportion, axis="batch", base=LEAST)
of_own_keys = partial(in_proportion, axis="kv_heads", base=MOST)
over_fused = partial(ratios, axis="backend", base="fused")
of_all_heads = partial(score_matrices, of_all_heads=True)
of_single_head = partial(score_matrices, of_all_heads=False)
over_core = partial(ratios, axis="scope", base="core")


def near(exponent: float) -> tuple[float, float]:
    return exponent - EXPONENT_MARGIN, exponent + EXPONENT_MARGIN


def grows(along: str, power: float, where: str, columns: Sequence[str]) -> Criterion:
    answer = partial(exponents, along=along)
    return Criterion(f"exponent of {axis_title(along)}", near(power), where, answer, columns)


CLAIMS = (
    Claim(
        "C1",
        "The score matrix takes B h N² e bytes: 10⁸ elements per head at N = 10 000.",
        Criterion("bytes per N² of fused over 2 B h e", EXACTLY, FUSED, of_all_heads, BYTES),
    ),
    Claim(
        "C2",
        "A layer's time is O(N² d) for long sequences, O(N d²) below, and turns where FLOPs do.",
        Criterion("N at which N² takes over, over that of FLOPs", (0.5, 2), LAYER, crossings, TIME),
    ),
    Claim(
        "C3a",
        "h heads of width d/h need the FLOPs of one head of width d.",
        Criterion("FLOPs over those of one head", EXACTLY, SLICES, of_one_head, FLOPS),
    ),
    Claim(
        "C3b",
        "h heads of width d/h need the memory of one head of width d.",
        Criterion("bytes over those of one head", NO_MORE, SLICES, of_one_head, BYTES),
    ),
    Claim(
        "C3c",
        "h heads of width d/h take the time of one head of width d.",
        Criterion("time over that of one head", EQUAL, SLICES, of_one_head, TIME),
    ),
    Claim(
        "C3d",
        "The scores of h heads need the memory of those of one head.",
        Criterion("bytes per N² over 2 B e", NO_MORE, SEVERAL, of_single_head, BYTES),
    ),
    Claim(
        "C4",
        "One projection for all heads is faster than h projections.",
        Criterion("time of the loop over that of fused", MORE, LOOP, over_fused, TIME),
    ),
    Claim(
        "C10",
        "For long sequences the quadratic part takes more time than the projections.",
        Criterion("time of the layer over that of its core", (0, 2), LONG, over_core, TIME),
    ),
    Claim(
        "C11a",
        "A local window is linear in N.",
        grows("seq_len", 1, "family == 'sparse_local'", TIME + BYTES),
    ),
    Claim(
        "C11b",
        "Random blocks are linear in N.",
        grows("seq_len", 1, "family == 'sparse_random'", TIME + BYTES),
    ),
    Claim(
        "C11c",
        "Strides of sqrt(N) grow with N^1.5.",
        grows("seq_len", 1.5, "family == 'sparse_strided'", TIME + BYTES),
    ),
    Claim(
        "C11d",
        "Linformer is linear in N.",
        grows("seq_len", 1, "family == 'linformer'", TIME + BYTES),
    ),
    Claim(
        "C11e",
        "Performer is linear in N.",
        grows("seq_len", 1, "family == 'performer'", TIME + BYTES),
    ),
    Claim(
        "C12a",
        "The time of a recurrent layer, O(N d²), is linear in N.",
        grows("seq_len", 1, f"family in {RECURRENT}", TIME),
    ),
    Claim(
        "C12b",
        "The time of a recurrent layer, O(N d²), is quadratic in d.",
        grows("d_model", 2, f"family in {RECURRENT}", TIME),
    ),
    Claim(
        "C14",
        "Removing heads saves time and memory in proportion.",
        Criterion("cost over the share of heads left", EQUAL, LAYER, of_most_heads, TIME + NEEDED),
    ),
    Claim(
        "C17",
        "The quadratic part, N² d, is linear in d.",
        grows("d_model", 1, CORE, FLOPS + TIME),
    ),
    Claim(
        "C18",
        "The projections, N d², are quadratic in d.",
        grows("d_model", 2, SHORT, FLOPS + TIME),
    ),
    Claim(
        "C20",
        "Cost grows in proportion to the batch: a larger one saves nothing per token.",
        Criterion("cost over the ratio of sequences", EQUAL, DENSE, of_least_batch, TIME + NEEDED),
    ),
    Claim(
        "C21",
        "Tiled kernels need memory linear in N.",
        grows("seq_len", 1, TILED, BYTES),
    ),
    Claim(
        "C22",
        "The time of a decode step is linear in the cached keys.",
        grows("kv_seq_len", 1, DECODE, TIME),
    ),
    Claim(
        "C23",
        "Heads that share keys make the cache smaller, and decode steps faster, in proportion.",
        Criterion("cost over the share of key heads", EQUAL, DECODE, of_own_keys, INPUTS + TIME),
    ),
)
