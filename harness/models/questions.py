"""What a model's layers ask of attention in each phase, as problems that can be measured, and the
bytes of what they keep.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ...impls.problem import Dtype, Problem
from ..files.errors import BadInput
from .layers import AttentionLayer, Model

Phase = Literal["prefill", "chunk", "decode", "verify", "training"]
PHASES: tuple[Phase, ...] = get_args(Phase)
GENERATING: tuple[Phase, ...] = ("chunk", "decode", "verify")
"""Those in which queries come after tokens that a cache holds: no encoder takes part."""
QUERIES: dict[Phase, int] = {"chunk": 512, "decode": 1, "verify": 5}
"""Tokens that are computed at once, if not given: a chunk (Agrawal et al. 2023, SARATHI,
arXiv:2308.16369), or the last token and four drafted ones (Leviathan et al. 2023, arXiv:2211.17192,
figure 3: best at 3 to 7).
"""
KV_BITS = {"fp8": 8.0, "q8": 8.5, "q4": 4.5}
"""Bits of a number in a quantized cache: fp8 with one scale for a tensor, as in vLLM; q8 and q4
with one in fp16 for 32 numbers (GGML's q8_0 and q4_0).
"""
PAGE_TOKENS = 16  # of a block of vLLM's pool, unless its --block-size says another number
DTYPES: dict[str, Dtype] = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


ALIKE = ("heads", "kv_heads", "d_k", "d_v", "causal", "softcap", "sinks")
"""What layers and problems both have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One layer's attention in one phase, and how many layers ask it.

    `problem` is None if it cannot be measured, and `why` says why.
    """

    layer: AttentionLayer
    phase: Phase
    count: int
    problem: Problem | None
    why: str = ""


def questions(
    model: Model, phase: Phase, *, context: int, batch: int, dtype: Dtype, queries: int = 0
) -> Iterator[Question]:
    """One for each distinct attention of the phase; `context` in tokens.

    Prefill computes all tokens of the context at once, chunk and verify its last `queries` (see
    QUERIES), decode one more after it, training all with gradients. An encoder takes part in
    prefill and training only. Raises BadInput for a context beyond the model's own limit.
    """
    if model.max_context is not None and context > model.max_context:
        raise BadInput(
            f"{model.name}: a context of {context} tokens; wanted at most the model's own"
            f" {model.max_context}"
        )
    generating = phase in GENERATING
    for layer, count in model.attention():
        if generating and layer.stack == "encoder":
            continue
        if layer.also:
            why = f"no backend here has {' and '.join(layer.also)}"
            yield Question(layer=layer, phase=phase, count=count, problem=None, why=why)
            continue
        seq_len = layer.seq_len or min(queries or QUERIES.get(phase, context), context)
        n_kv = layer.kv_seq_len or layer.seq_len or context
        if layer.reach != "full" and generating:  # what its first query sees, and the queries
            n_kv = min(n_kv, layer.window - 1 + seq_len)
        # the one query of a decode step sees all that is kept
        within = layer.reach == "full" or n_kv <= layer.window or seq_len == 1
        sliding = layer.reach == "sliding"  # chunks are counted from the first key that is kept
        problem = Problem(
            batch=batch,
            seq_len=seq_len,
            kv_seq_len=n_kv,
            d_model=model.d_model,
            dtype=dtype,
            causal_align="bottom_right" if layer.causal and generating else "",
            mask="none" if within else "local" if sliding else "chunked",
            window=0 if within else layer.window - sliding,
            passes="forward+backward" if phase == "training" else "forward",
            **{name: getattr(layer, name) for name in ALIKE},
        )
        yield Question(layer=layer, phase=phase, count=count, problem=problem)


def cached_bytes(asked: Question, *, context: int) -> int:
    """Of a question's own keys and values, the bytes that `cache_bytes` counts too.

    At the call k and v are the cache's own tensors, in prefill as in decode; so they are of a layer
    that reads those of an earlier one. Those of a latent are made of it: then fewer than none are,
    since the keys are copies and what they were copied from is there as long as the values.
    """
    one, layer = asked.problem, asked.layer
    if one is None or asked.phase == "training" or layer.stack == "encoder":
        return 0
    if layer.latent:
        numbers = layer.heads * (layer.d_k - layer.rotated) * one.kv_seq_len
        return -one.batch * numbers * one.item_bytes
    return one.batch * layer.kv_numbers(context) * one.item_bytes


def appended_bytes(asked: Question) -> int:
    """What is there beside the cache while the cache takes up this layer's keys and values.

    Hugging Face's DynamicCache appends by copying, keys first: in prefill q, k and v wait beside
    their copies, else the keys, or the values, are there twice. 0 where nothing is appended, or a
    latent, which takes less than the call.
    """
    one, layer = asked.problem, asked.layer
    if one is None or asked.phase == "training" or not layer.stores_cache or layer.latent:
        return 0
    prefill, widths = asked.phase == "prefill", (layer.d_k, layer.d_v)
    if layer.stack == "cross" and not prefill:
        return 0
    kept = layer.kv_heads * (sum(widths) if prefill else max(widths)) * one.kv_seq_len
    return one.batch * (layer.heads * layer.d_k * one.seq_len + kept) * one.item_bytes


def cache_bytes(model: Model, *, context: int, batch: int, bits: float, paged: bool = False) -> int:
    """Bytes of keys and values that a context leaves, at so many bits a number.

    `paged`: in an engine with one pool of pages for all layers, where windows save nothing and each
    sequence takes whole pages.
    """
    numbers, tokens = 0, -(-context // PAGE_TOKENS) * PAGE_TOKENS if paged else context
    for layer, count in model.attention():
        if layer.stores_cache:
            kept = replace(layer, reach="full") if paged else layer
            numbers += count * kept.kv_numbers(tokens)
    return int(batch * numbers * bits / 8)


def state_bytes(model: Model, *, batch: int, item_bytes: int) -> int | None:
    """Bytes that layers without attention keep of all sequences; None if some are not known."""
    found = [(layer.state_bytes(item_bytes), count) for layer, count in model.others()]
    known = [count * size for size, count in found if size is not None]
    return batch * sum(known) if len(known) == len(found) else None
