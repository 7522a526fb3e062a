"""Layers from a configuration alone."""

from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import plain
from attnbench.harness.models.layers import AttentionLayer, Model

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}

GPT2 = {"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1}


def read(**fields: Any) -> Model:
    return plain.model({**LLAMA, **fields}, "mine", "mine.json")


def layer_of(model: Model) -> AttentionLayer:
    ((layer, _),) = model.attention()
    return layer


def test_heads_are_as_wide_as_the_model_divided_by_them_unless_the_width_is_given() -> None:
    assert layer_of(read()).d_k == 16
    assert layer_of(read(head_dim=24)).d_v == 24


def test_every_sixth_layer_of_gemma_3_is_full_and_the_others_have_its_window() -> None:
    text = {**LLAMA, "num_hidden_layers": 12, "model_type": "gemma3_text", "sliding_window": 9}
    (local, many), (_, full) = read(model_type="gemma3", text_config=text).attention()
    assert (local.window, many, full) == (9, 10, 2)


def test_another_name_for_a_value_that_is_known_is_no_reason_to_refuse() -> None:
    model = read(model_type="mistral", sliding_window=9, sliding_window_size=9, parallel_attn=True)
    assert layer_of(model).window == 9


def test_an_encoder_beside_the_decoder_is_named() -> None:
    vision = {"model_type": "siglip_vision_model", "num_hidden_layers": 27}
    text = {**LLAMA, "model_type": "gemma3_text"}
    found = read(model_type="gemma3", text_config=text, vision_config=vision)
    assert found.left_out == ("vision_config (siglip_vision_model, 27 layers)",)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"model_type": "mine", "hidden_size": None, "auto_map": {"AutoConfig": "mine.C"}},
            "auto_map names, is never",
        ),
        ({"hidden_size": None}, "hidden_size: not given; wanted a whole number; install"),
        ({"hidden_size": float("nan")}, "hidden_size: nan; wanted a whole number"),
        ({"num_hidden_layers": -2}, "num_hidden_layers: -2"),
        ({"num_attention_heads": True}, "num_attention_heads: true"),
        ({"num_attention_heads": 6}, "6 heads for 64 columns"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 for 4 heads"),
        ({"head_dim": "wide"}, "head_dim: 'wide'"),
        ({"layer_types": ["full_attention"]}, "layer_types: "),
        ({"layer_types": ["a", "b"]}, "layer_types: "),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window: not given"),
        ({"layer_types": ["full_attention", "dreams"]}, "'dreams' in layer 1: what it keeps"),
        ({"hybrid_override_pattern": "*?"}, "'?' in layer 1: what it keeps"),
        ({"attn_type_list": [1, 7]}, "7 in layer 1: what it keeps"),
        ({"mamba_n_heads": 4}, "mamba_heads is given, and no list"),
        ({**GPT2, "add_cross_attention": True}, "add_cross_attention: true"),
        ({"dtype": "b\x1b"}, "dtype: "),
    ],
)
def test_what_it_does_not_understand_is_refused_in_one_line(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        read(**fields)
    (line,) = caught.value.problems
    assert line.startswith("mine.json: ")
    assert said in line
    assert line.isprintable()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"sliding_window": 7}, "'sliding_window'"),
        ({"model_type": "mistral", "sliding_window": 9, "sliding_window_size": 8}, "_window_size'"),
        ({"attn_something": 3}, "'attn_something'"),
        ({"model_type": "mine", "sliding_window": 7}, "which layers have the window"),
        ({"quantization_config": {"kv_cache_scheme": {"num_bits": 3}}}, "kv_cache_scheme"),
    ],
)
def test_what_it_does_not_understand_is_a_caution_that_names_it(
    fields: dict[str, Any], named: str
) -> None:
    (caution,) = read(**fields).cautions
    assert named in caution


def test_a_field_that_says_nothing_of_attention_is_no_caution() -> None:
    more = {"mrope_section": [1, 2], "vision_hub": 3, "attn_output_gate": True, "attn_pdrop": 0.1}
    assert read(**more).cautions == ()
