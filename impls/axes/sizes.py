"""Sizes: of the batch, of its sequences, of the model and of its heads."""

from math import nan

from ..problem_fields import ProblemFields
from .axis import Axis


def _check(p: ProblemFields) -> None:
    if not (p.d_k and p.d_v) and p.d_model % p.heads:
        raise ValueError(
            f"d_model ({p.d_model}) is not a multiple of heads ({p.heads}); choose other sizes, or"
            " give d_k and d_v"
        )
    if p.heads % (p.kv_heads or p.heads):
        raise ValueError(f"heads ({p.heads}) must be a multiple of kv_heads ({p.kv_heads})")


BATCH = Axis(
    "Sequences per batch (default: 1).",
    alias="B",
    option="Batch sizes, such as 1,8 (default: 1).",
    given=1,
    part=lambda p: f"b{p.batch}",
    symbol="B",
)
SEQ_LEN = Axis(
    "Length of the query sequence in tokens; 1k = 1024, 1m = 1024 * 1024.",
    alias="N",
    option="Sequence lengths, such as 512,1k,8k (1k = 1024).",
    symbol="N",
)
KV_SEQ_LEN = Axis(
    "Length of the key and value sequence, if it differs from seq_len.",
    option="Key and value lengths, if they differ from the query's.",
    symbol="N_kv",
    usual=lambda of: of["seq_len"],
    usual_text="N",
    filled=lambda p: p.kv_seq_len or p.seq_len,
)
D_MODEL = Axis(
    "Width of the model: the last dimension of the layer's input.",
    option="Model widths.",
    part=lambda p: f"d{p.d_model}",
    symbol="d_model",
)
HEADS = Axis(
    "Number of query heads.",
    alias="h",
    option="Numbers of query heads.",
    part=lambda p: f"h{p.heads}",
    symbol="h",
    check=_check,
)
KV_HEADS = Axis(
    "Number of key and value heads, if it differs from heads (grouped-query attention); heads"
    " must be a multiple of it.",
    option="Numbers of key and value heads, if they differ from --heads.",
    part=lambda p: f"hkv{p.kv_heads}" if p.kv_heads != p.heads else "",
    symbol="h_kv",
    usual=lambda of: of["heads"],
    usual_text="h",
    filled=lambda p: p.kv_heads or p.heads,
)
D_K = Axis(
    "Width of one head's queries and keys (default: d_model / heads).",
    part=lambda p: f"dk{p.d_k}" if p.d_k * p.heads != p.d_model else "",
    symbol="d_k",
    usual=lambda of: of["d_model"] / of["heads"] if of["d_model"] and of["heads"] else nan,
    usual_text="d_model/h",
    filled=lambda p: p.d_k or p.d_model // p.heads,
)
D_V = Axis(
    "Width of one head's values (default: d_model / heads).",
    part=lambda p: f"dv{p.d_v}" if p.d_v * p.heads != p.d_model else "",
    symbol="d_v",
    usual=D_K.usual,
    usual_text="d_model/h",
    in_rows="sizes, with defaults filled in",
    filled=lambda p: p.d_v or p.d_model // p.heads,
)
