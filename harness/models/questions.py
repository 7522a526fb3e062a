"""What a model's layers ask of attention in each phase: problems that can be measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from ...impls.problem import ITEM_BYTES, Dtype, Problem
from ..files.errors import BadInput
from .layers import AttentionLayer, Model

Phase = Literal["prefill", "decode", "training"]
PHASES: tuple[Phase, ...] = get_args(Phase)
DTYPES: dict[str, Dtype] = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


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
    model: Model, phase: Phase, *, context: int, batch: int, dtype: Dtype
) -> Iterator[Question]:
    """One for each distinct attention of the phase; `context` in tokens.

    Prefill computes all tokens of the context at once, decode one more after it, training all with
    gradients. An encoder takes part in prefill and training only. Raises BadInput for a context
    beyond the model's own limit.
    """
    if model.max_context is not None and context > model.max_context:
        raise BadInput(
            f"{model.name}: a context of {context} tokens; wanted at most the model's own"
            f" {model.max_context}"
        )
    for layer, count in model.attention():
        if phase == "decode" and layer.stack == "encoder":
            continue
        problem, why = _problem(model, layer, phase, context, batch, dtype)
        yield Question(layer=layer, phase=phase, count=count, problem=problem, why=why)


def _problem(
    model: Model, layer: AttentionLayer, phase: Phase, context: int, batch: int, dtype: Dtype
) -> tuple[Problem | None, str]:
    if layer.also:
        return None, f"no backend here has {' and '.join(layer.also)}"
    n = layer.seq_len or context
    n_kv = layer.kv_seq_len or n
    within = layer.reach == "full" or n <= layer.window
    if layer.reach == "chunked" and not within:
        return None, f"no backend here attends in chunks of {layer.window} tokens"
    causal, seq_len = layer.causal, n
    if phase == "decode":
        seq_len = 1
        n_kv = min(n_kv, layer.window) if layer.reach == "sliding" else n_kv
        within = True  # the one query sees all that is kept
    problem = Problem(
        batch=batch,
        seq_len=seq_len,
        kv_seq_len=n_kv,
        d_model=model.d_model,
        heads=layer.heads,
        kv_heads=layer.kv_heads,
        d_k=layer.d_k,
        d_v=layer.d_v,
        dtype=dtype,
        causal=causal,
        causal_align="bottom_right" if causal and phase == "decode" else "",
        mask="none" if within else "local",
        window=0 if within else layer.window - 1,
        passes="forward+backward" if phase == "training" else "forward",
    )
    return problem, ""


def cached_bytes(asked: Question, *, context: int) -> int:
    """Of a question's own keys and values, the bytes that `cache_bytes` counts too.

    At the call k and v are the cache's own tensors, in prefill as in decode; so they are of a layer
    that reads those of an earlier one.
    """
    one, layer = asked.problem, asked.layer
    if one is None or asked.phase == "training" or layer.stack == "encoder":
        return 0
    tokens = layer.kv_seq_len or context
    tokens = min(tokens, layer.window) if layer.reach == "sliding" else tokens
    return one.batch * layer.kv_heads * (layer.d_k + layer.d_v) * tokens * one.item_bytes


def appended_bytes(asked: Question) -> int:
    """What is there beside the cache while the cache takes up this layer's keys and values.

    Hugging Face's DynamicCache appends by copying, keys first: in prefill q, k and v wait beside
    their copies, in decode the keys, or the values, are there twice. 0 where nothing is appended.
    """
    one, layer = asked.problem, asked.layer
    if one is None or asked.phase == "training" or not layer.stores_cache:
        return 0
    q = layer.heads * layer.d_k * one.seq_len
    if asked.phase == "prefill":
        numbers = q + layer.kv_heads * (layer.d_k + layer.d_v) * one.kv_seq_len
    elif layer.stack == "cross":
        return 0
    else:
        numbers = q + layer.kv_heads * max(layer.d_k, layer.d_v) * one.kv_seq_len
    return one.batch * numbers * one.item_bytes


def cache_bytes(model: Model, *, context: int, batch: int, dtype: Dtype) -> int:
    """Bytes of keys and values that a context leaves: batch * kv_heads * (d_k + d_v) * tokens.

    Tokens are min(context, window) in layers with a window, as Hugging Face's DynamicCache keeps
    them, up to one token that it has in hand.
    """
    return _bytes(model, batch, dtype, lambda layer: layer.cached_tokens(context))


def paged_cache_bytes(model: Model, *, context: int, batch: int, dtype: Dtype) -> int:
    """The same in an engine with one pool of pages for all layers: windows save nothing there."""

    def tokens(layer: AttentionLayer) -> int:
        return (layer.kv_seq_len or context) if layer.stores_cache else 0

    return _bytes(model, batch, dtype, tokens)


def _bytes(model: Model, batch: int, dtype: Dtype, tokens: Callable[[AttentionLayer], int]) -> int:
    return sum(
        count * batch * layer.kv_heads * (layer.d_k + layer.d_v) * tokens(layer) * ITEM_BYTES[dtype]
        for layer, count in model.attention()
    )
