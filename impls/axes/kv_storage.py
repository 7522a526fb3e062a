"""How a problem's keys and values are stored: which combinations exist, and their bytes.

As they are; quantized, with a scale per token and head; in pages of a pool, which a table finds; as
one latent vector per token, from which every head makes its keys and values (multi-head latent
attention: DeepSeek-V2, arXiv:2405.04434, section 2.1); or those of the first tokens once for all
sequences, which begin alike. Imports no torch; the tensors are made in shared/kv_tensors.py.
"""

from typing import Any, Literal

from ..problem_fields import ProblemFields
from .axis import Axis

CODE_BYTES = 1  # of a quantized number, int8 or fp8
SCALE_BYTES = 4  # fp32, one for the key and one for the value of a token and head
TABLE_BYTES = 4  # int32, the number of a page
BLOCK_KEYS = 512  # that a backend reads back at a time, if not all
PLAIN: Literal["same"] = "same"  # kv_dtype of keys and values in the problem's dtype
AS_USUAL: dict[str, Any] = {"latent": 0, "rope": 0, "page": 0, "kv_dtype": PLAIN, "prefix": 0}
"""Keys and values as they are, those of each sequence."""


def _check(p: ProblemFields) -> None:
    """What nobody stores so, of all five axes."""
    if p.rope and not p.latent:
        raise ValueError(
            f"rope ({p.rope}) is the part of a latent cache that all heads share; set latent too,"
            " or leave rope out"
        )
    if p.latent and p.rope >= (p.d_k or p.d_model // p.heads):
        raise ValueError(f"rope ({p.rope}) is part of d_k, which must be larger; set d_k")
    if p.latent and p.kv_heads not in (0, p.heads):
        raise ValueError(
            f"kv_heads ({p.kv_heads}) with latent ({p.latent}): every head makes its own keys from"
            " the latent; leave kv_heads out"
        )
    if p.latent and (p.page or p.kv_dtype != PLAIN):
        raise ValueError(
            "latent with page or kv_dtype: a latent cache is stored as it is here; leave them out"
        )
    said = [
        f"{name} ({value})" for name in ("latent", "page", "prefix") if (value := getattr(p, name))
    ]
    said += [f"kv_dtype {p.kv_dtype}"] if p.kv_dtype != PLAIN else []
    if said and p.scope != "core":
        raise ValueError(f"{said[0]} is about stored keys and values; set scope to core")
    if (p.page or p.kv_dtype != PLAIN) and p.passes != "forward":
        raise ValueError(
            f"passes {p.passes} with keys and values in a cache, which nobody trains; set passes to"
            " forward"
        )
    if p.prefix:
        _check_prefix(p)


def _check_prefix(p: ProblemFields) -> None:
    """Every query comes after the prefix, and sees all of it."""
    what, keys = f"prefix ({p.prefix})", p.kv_seq_len or p.seq_len
    if p.latent or p.page or p.kv_dtype != PLAIN or p.lengths or p.mask != "none":
        raise ValueError(
            f"{what} with latent, page, kv_dtype, lengths or a mask: a shared prefix is of plain"
            " keys that every query sees; leave them out"
        )
    if p.causal and (p.causal_align != "bottom_right" or keys < p.prefix + p.seq_len):
        raise ValueError(
            f"{what} with causal: queries come after what all sequences share; set causal_align to"
            f" bottom_right and kv_seq_len to {p.prefix + p.seq_len} or more"
        )
    if p.prefix >= keys:
        raise ValueError(f"{what} leaves no keys of its own to a sequence of {keys}; shorten it")


LATENT = Axis(
    "Numbers per token from which every head makes its keys and values (multi-head latent"
    " attention); 0 if keys and values are stored. Set d_k and d_v too; d_k includes rope.",
    part=lambda p: f"latent{p.latent}" if p.latent else "",
    text=lambda value: f"latent\u00a0{value}" if value else "",
    in_rows="numbers per token of a latent cache; 0 if keys and values are stored",
    opt_in=True,
    check=_check,
)
ROPE = Axis(
    "Numbers per token beside the latent: the part of a key, with its position, that all heads"
    " share.",
    part=lambda p: f"rope{p.rope}" if p.rope else "",
    text=lambda value: f"rope\u00a0{value}" if value else "",
    goes_with="latent",
    in_rows="numbers per token beside the latent, which all heads' keys share",
    opt_in=True,
)
PAGE = Axis(
    "Tokens per page of a pool of keys and values, found by a table; 0 if those of a sequence"
    " lie side by side.",
    part=lambda p: f"page{p.page}" if p.page else "",
    text=lambda value: f"pages of {value} tokens" if value else "",
    in_rows="tokens per page of keys and values; 0 without pages",
    opt_in=True,
)
KV_DTYPE = Axis(
    "How keys and values are stored: same as dtype, or int8 or fp8 (e4m3) with a scale for each"
    " token and head.",
    part=lambda p: f"kv_{p.kv_dtype}" if p.kv_dtype != PLAIN else "",
    usual=lambda of: PLAIN,
    text=lambda value: "" if value == PLAIN else f"keys and values in {value}",
    in_rows="`same`, `int8`, `fp8`: how keys and values are stored",
    opt_in=True,
)
PREFIX = Axis(
    "Tokens of kv_seq_len with which all sequences of the batch begin (a system prompt), whose"
    " keys and values are stored once; 0 if every sequence has its own.",
    option="First tokens of --kv-seq-len that the batch shares and stores once.",
    part=lambda p: f"prefix{p.prefix}" if p.prefix else "",
    text=lambda value: f"shared prefix of {value} tokens" if value else "",
    in_rows="first tokens of the keys and values that all sequences share, stored once; 0 for none",
    opt_in=True,
)


def pages_per_sequence(p: ProblemFields) -> int:
    """0 without pages."""
    return -(-p.kv_seq_len // p.page) if p.page else 0


def keys_of_block(p: ProblemFields) -> int:
    """BLOCK_KEYS in whole pages."""
    return -(-BLOCK_KEYS // p.page) * p.page if p.page else BLOCK_KEYS


def token_bytes(p: ProblemFields) -> int:
    """Bytes of one token's keys and values in one layer, all heads together, scales included."""
    if p.latent:
        return (p.latent + p.rope) * p.item_bytes
    numbers = p.kv_heads * (p.d_k + p.d_v)
    if p.kv_dtype != PLAIN:
        return numbers * CODE_BYTES + 2 * p.kv_heads * SCALE_BYTES
    return numbers * p.item_bytes


def latent_weights(p: ProblemFields) -> int:
    """Elements of the projections from the latent to keys and values; 0 without a latent."""
    return p.heads * (p.d_k - p.rope + p.d_v) * p.latent


def stored_bytes(p: ProblemFields) -> int:
    """All keys and values of the batch, with what is needed to read them: scales, tables and
    projections. The unused end of a sequence's last page counts.
    """
    pages = pages_per_sequence(p)
    tokens = p.batch * (pages * p.page if pages else p.kv_seq_len) - _shared_tokens(p)
    more = p.batch * pages * TABLE_BYTES + latent_weights(p) * p.item_bytes
    return tokens * token_bytes(p) + more


def read_bytes(p: ProblemFields, keys: int) -> int:
    """What must be read of `stored_bytes` for so many keys and values of the batch, of which a
    shared prefix is counted in every sequence.
    """
    entries = -(-keys // p.page) if p.page else 0
    return (
        (keys - _shared_tokens(p)) * token_bytes(p)
        + entries * TABLE_BYTES
        + latent_weights(p) * p.item_bytes
    )


def _shared_tokens(p: ProblemFields) -> int:
    """How many fewer tokens are stored than the sequences have."""
    return (p.batch - 1) * p.prefix
