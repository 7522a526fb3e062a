"""The claims: what textbooks state, the quantity that decides it, and the range that holds.

docs/theory.md says why, with the sources.
"""

from functools import partial
from math import inf

from ..data.exactness import RECURRENT
from ..growth_fit import EXPONENT_MARGIN
from ..words import SAME_RATIO
from .answers import LEAST, MOST, crossings, exponents, ratios, score_matrices
from .claim import Claim

EQUAL = (1 / (1 + SAME_RATIO), 1 + SAME_RATIO)
NO_MORE = (0.0, EQUAL[1])
MORE = (EQUAL[1], inf)
EXACTLY = (1.0, 1.0)

TIME, BYTES, FLOPS = ("latency_ms",), ("peak_bytes",), ("work_flops",)
DENSE = f"exact and not family.str.startswith('sparse_') and family not in {RECURRENT}"
LAYER, CORE = f"{DENSE} and scope == 'layer'", f"{DENSE} and scope == 'core'"
PLAIN = "not causal and mask == 'none' and kv_seq_len == seq_len"
SLICES = f"{DENSE} and heads * d_k == d_model and heads * d_v == d_model"
RECURRENT_LAYER = f"family in {RECURRENT}"
DECODE = f"{DENSE} and seq_len == 1 and scope == 'core'"

of_one_head = partial(ratios, axis="heads", base=1, apart=("kv_heads", "d_k", "d_v"))
in_proportion = partial(ratios, share=True)
over_n, over_d = exponents, partial(exponents, over="d_model")


def near(exponent: float) -> tuple[float, float]:
    return exponent - EXPONENT_MARGIN, exponent + EXPONENT_MARGIN


def grows(name: str, what: str, power: float, family: str, columns: tuple[str, ...]) -> Claim:
    """A method in place of all N² pairs."""
    statement = f"{what} in N."
    where = f"family == '{family}'"
    return Claim(name, statement, "exponent of N", near(power), where, over_n, columns)


CLAIMS = (
    Claim(
        "C1",
        "The score matrix takes B h N² e bytes: 10⁸ elements per head at N = 10 000.",
        "bytes per N² of fused over 2 B h e",
        EXACTLY,
        f"backend == 'fused' and passes == 'forward' and {PLAIN}",
        score_matrices,
        BYTES,
    ),
    Claim(
        "C2",
        "A layer's time is O(N² d) for long sequences, O(N d²) below, and turns where FLOPs do.",
        "N at which N² takes over, over that of FLOPs",
        (0.5, 2),
        LAYER,
        crossings,
        TIME,
    ),
    Claim(
        "C3a",
        "h heads of width d/h need the FLOPs of one head of width d.",
        "FLOPs over those of one head",
        EXACTLY,
        SLICES,
        of_one_head,
        FLOPS,
    ),
    Claim(
        "C3b",
        "h heads of width d/h need the memory of one head of width d.",
        "bytes over those of one head",
        NO_MORE,
        SLICES,
        of_one_head,
        BYTES,
    ),
    Claim(
        "C3c",
        "h heads of width d/h take the time of one head of width d.",
        "time over that of one head",
        EQUAL,
        SLICES,
        of_one_head,
        TIME,
    ),
    Claim(
        "C4",
        "One projection for all heads is faster than h projections.",
        "time of the loop over that of fused",
        MORE,
        f"{LAYER} and heads > 1 and backend in ('naive', 'fused')",
        partial(ratios, axis="backend", base="fused"),
        TIME,
    ),
    Claim(
        "C10",
        "For long sequences the quadratic part takes more time than the projections.",
        "time of the layer over that of its core",
        (0, 2),
        f"{DENSE} and {PLAIN} and seq_len >= 8 * d_model",  # four fifths of the FLOPs are in N²
        partial(ratios, axis="scope", base="core"),
        TIME,
    ),
    grows("C11a", "A local window is linear", 1, "sparse_local", (*TIME, *BYTES)),
    grows("C11b", "Random blocks are linear", 1, "sparse_random", (*TIME, *BYTES)),
    grows("C11c", "Strides of sqrt(N) grow with N^1.5", 1.5, "sparse_strided", TIME),
    grows("C11d", "Linformer is linear", 1, "linformer", (*TIME, *BYTES)),
    grows("C11e", "Performer is linear", 1, "performer", (*TIME, *BYTES)),
    Claim(
        "C12a",
        "The time of a recurrent layer, O(N d²), is linear in N.",
        "exponent of N",
        near(1),
        RECURRENT_LAYER,
        over_n,
        TIME,
    ),
    Claim(
        "C12b",
        "The time of a recurrent layer, O(N d²), is quadratic in d.",
        "exponent of d",
        near(2),
        RECURRENT_LAYER,
        over_d,
        TIME,
    ),
    Claim(
        "C14",
        "Removing heads saves time and memory in proportion.",
        "cost over the share of heads that is left",
        EQUAL,
        LAYER,
        partial(in_proportion, axis="heads", base=MOST, apart=("kv_heads",)),
        (*TIME, *BYTES),
    ),
    Claim(
        "C17",
        "The quadratic part, N² d, is linear in d.",
        "exponent of d",
        near(1),
        CORE,
        over_d,
        (*FLOPS, *TIME),
    ),
    Claim(
        "C18",
        "The projections, N d², are quadratic in d.",
        "exponent of d",
        near(2),
        f"{LAYER} and 8 * seq_len <= d_model.max()",  # there the core is small
        over_d,
        (*FLOPS, *TIME),
    ),
    Claim(
        "C20",
        "Cost grows in proportion to the batch: a larger one saves nothing per token.",
        "cost over the ratio of sequences",
        EQUAL,
        DENSE,
        partial(in_proportion, axis="batch", base=LEAST),
        (*TIME, *BYTES),
    ),
    Claim(
        "C21",
        "Tiled kernels need memory linear in N.",
        "exponent of N",
        near(1),
        f"{CORE} and {PLAIN} and backend in ('sdpa', 'triton')",
        over_n,
        BYTES,
    ),
    Claim(
        "C22",
        "The time of a decode step is linear in the cached keys.",
        "exponent of N_kv",
        near(1),
        DECODE,
        partial(exponents, over="kv_seq_len"),
        TIME,
    ),
    Claim(
        "C23",
        "Heads that share keys make the cache smaller, and decode steps faster, in proportion.",
        "cost over the share of key and value heads",
        EQUAL,
        DECODE,
        partial(in_proportion, axis="kv_heads", base=MOST),
        ("input_bytes", *TIME),
    ),
)
