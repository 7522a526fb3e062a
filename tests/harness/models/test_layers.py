"""What a model's layers ask in each phase, and the bytes of what they keep."""

from dataclasses import replace

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models.layers import AttentionLayer, Model, OtherLayer, counted
from attnbench.harness.models.questions import (
    KV_BITS,
    appended_bytes,
    cache_bytes,
    cached_bytes,
    questions,
)
from attnbench.impls.problem import Problem

FULL = AttentionLayer(stack="decoder", heads=8, kv_heads=2, d_k=16, d_v=16, causal=True)
LOCAL = replace(FULL, reach="sliding", window=8)


def model(*layers: AttentionLayer | OtherLayer) -> Model:
    return Model(
        name="mine", model_type="mine", d_model=128, max_context=64, dtype="float32",
        layers=counted(layers),
    )  # fmt: skip


def problems(found: Model, phase: str, context: int) -> list[tuple[Problem | None, int]]:
    asked = questions(found, phase, context=context, batch=2, dtype="fp32")  # type: ignore[arg-type]
    return [(question.problem, question.count) for question in asked]


def test_prefill_is_causal_over_all_tokens_and_decode_is_one_query_over_the_cache() -> None:
    ((prefill, count),) = problems(model(FULL, FULL), "prefill", 32)
    assert count == 2
    assert prefill == Problem(
        batch=2, seq_len=32, d_model=128, heads=8, kv_heads=2, d_k=16, d_v=16, causal=True
    )
    ((decode, _),) = problems(model(FULL), "decode", 32)
    assert (decode.seq_len, decode.kv_seq_len, decode.causal_offset) == (1, 32, 31)


def test_a_window_lets_a_query_see_itself_and_the_tokens_before_it() -> None:
    ((prefill, _),) = problems(model(LOCAL), "prefill", 32)
    assert (prefill.mask, prefill.window) == ("local", 7)
    ((decode, _),) = problems(model(LOCAL), "decode", 32)
    assert (decode.mask, decode.kv_seq_len) == ("none", 8)


LATENT = replace(FULL, kv_heads=8, d_k=24, latent=40, rotated=8)


def test_chunks_and_drafts_are_the_last_tokens_of_a_longer_context() -> None:
    for phase, queries in (("chunk", 7), ("verify", 5)):
        asked = questions(
            model(FULL, LOCAL), phase, context=32, batch=2, dtype="fp32",
            queries=0 if queries == 5 else queries,
        )  # fmt: skip
        full, local = (question.problem for question in asked)
        assert (full.seq_len, full.kv_seq_len, full.causal_offset) == (queries, 32, 32 - queries)
        assert (local.kv_seq_len, local.mask, local.window) == (8 - 1 + queries, "local", 7)
    ((short, _),) = problems(model(FULL), "chunk", 32)
    assert (short.seq_len, short.causal_offset) == (32, 0)  # the whole prompt is one chunk


def test_a_latent_is_kept_for_keys_and_values_that_are_made_of_it_at_each_call() -> None:
    (asked,) = questions(model(LATENT), "decode", context=32, batch=2, dtype="fp32")
    assert (asked.problem.kv_heads, asked.problem.d_k, asked.problem.d_v) == (8, 24, 16)
    assert cache_bytes(model(LATENT), context=32, batch=2, bits=32) == 2 * 40 * 32 * 4
    # beside k and v: the product that has the keys' unrotated parts, which the values are cut from
    assert cached_bytes(asked, context=32) == -2 * 8 * 16 * 32 * 4
    assert appended_bytes(asked) == 0
    assert LATENT.divided(8).kv_numbers(1) == 40  # each device has all of it


def test_pages_are_whole_and_quantized_numbers_have_their_scales() -> None:
    one = 2 * 2 * 16  # numbers of a token
    sizes = {"context": 17, "batch": 1}
    assert cache_bytes(model(LOCAL), bits=16, **sizes) == 8 * one * 2
    assert cache_bytes(model(LOCAL), bits=16, paged=True, **sizes) == 32 * one * 2
    assert cache_bytes(model(FULL), bits=KV_BITS["q8"], **sizes) == 17 * one // 32 * 34


def test_what_no_backend_computes_is_said_and_never_substituted() -> None:
    biased = replace(FULL, also=("a bias by distance",))
    (asked,) = questions(model(biased), "prefill", context=32, batch=1, dtype="fp32")
    assert (asked.why, asked.problem) == ("no backend here has a bias by distance", None)


def test_caps_sinks_and_chunks_are_those_of_the_layer() -> None:
    capped, sunk = replace(LOCAL, softcap=50.0), replace(FULL, sinks=True)
    chunked = replace(FULL, reach="chunked", window=8)
    found = [problem for problem, _ in problems(model(capped, sunk, chunked), "prefill", 32)]
    assert [(one.mask, one.window, one.softcap, one.sinks) for one in found] == [
        ("local", 7, 50.0, False),
        ("none", 0, 0.0, True),
        ("chunked", 8, 0.0, False),
    ]
    ((within, _),) = problems(model(chunked), "prefill", 8)
    assert within.mask == "none"
    # of a chunk the cache keeps as much as of a window
    ((decode, _),) = problems(model(chunked), "decode", 32)
    assert (decode.mask, decode.kv_seq_len) == ("none", 8)


def test_encoders_take_no_part_in_decoding() -> None:
    encoder = replace(FULL, stack="encoder", causal=False, stores_cache=False, seq_len=20)
    cross = replace(FULL, stack="cross", causal=False, kv_seq_len=20)
    found = problems(model(encoder, FULL, cross), "decode", 32)
    assert [problem.kv_seq_len for problem, _ in found if problem] == [32, 20]


def test_a_context_beyond_the_models_own_is_refused() -> None:
    with pytest.raises(BadInput, match="65 tokens; wanted at most the model's own 64"):
        problems(model(FULL), "prefill", 65)


def test_heads_are_divided_and_key_heads_repeated_over_devices() -> None:
    (layer, _), *_ = model(FULL).divided(4).layers
    assert (layer.heads, layer.kv_heads) == (2, 1)
    for parts in (3, 16):
        with pytest.raises(BadInput, match=f"tp {parts}: mine"):
            model(FULL).divided(parts)
