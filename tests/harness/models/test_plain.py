"""Layers from a configuration alone."""

import json
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import config_file, plain
from attnbench.harness.models.layers import AttentionLayer, Model, OtherLayer

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


def test_global_layers_of_gemma_4_have_other_heads_than_local_ones() -> None:
    model = read(
        model_type="gemma4_text",
        num_hidden_layers=6,
        head_dim=16,
        global_head_dim=32,
        num_global_key_value_heads=1,
        attention_k_eq_v=True,
    )
    (local, many), (whole, one) = model.attention()
    assert (many, one) == (5, 1)
    assert (local.d_k, local.kv_heads, local.reach) == (16, 2, "sliding")
    assert (whole.d_k, whole.kv_heads, whole.reach) == (32, 1, "full")


def test_layers_of_gemma_3n_that_share_a_cache_store_none() -> None:
    kinds = ["sliding_attention", "full_attention"] * 3
    model = read(
        model_type="gemma3n_text", num_hidden_layers=6, layer_types=kinds, num_kv_shared_layers=2
    )
    stored = {(layer.reach, layer.stores_cache): count for layer, count in model.attention()}
    assert stored == {
        ("sliding", True): 2,
        ("full", True): 2,
        ("sliding", False): 1,
        ("full", False): 1,
    }


def test_deepseek_has_latent_attention_whatever_its_head_dim_says() -> None:
    model = read(model_type="deepseek_v3", head_dim=64, kv_lora_rank=512, qk_rope_head_dim=64)
    assert model.layers == ((OtherLayer(what="multi-head latent attention"), 2),)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model_type": "unheard"}, "model_type: 'unheard'; wanted one of bert"),
        ({"model_type": None}, "model_type: not given"),
        ({"hidden_size": None}, "hidden_size: not given; wanted a whole number"),
        ({"num_hidden_layers": -2}, "num_hidden_layers: -2"),
        ({"num_attention_heads": True}, "num_attention_heads: true"),
        ({"num_attention_heads": 5}, "5 heads for 64 columns"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 for 4 heads; wanted a divisor"),
        ({"head_dim": "wide"}, "head_dim: 'wide'"),
        ({"layer_types": ["full_attention"]}, "layer_types: 1 entries; wanted one for each of 2"),
        ({"layer_types": ["a", "b"]}, "layer_types: 'a'; wanted full_attention"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window: not given"),
        ({"attn_something": 3}, "'attn_something': not known"),
        ({"per_layer_config": {"7": {}}}, "per_layer_config: '7'; wanted the index"),
        ({"model_type": "gemma3"}, "text_config: not given; wanted an object"),
        ({**GPT2, "add_cross_attention": True}, "add_cross_attention: true"),
        ({"model_type": "gemma3n_text", "num_kv_shared_layers": 2}, "2 of 2 layers; wanted few"),
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


@pytest.mark.parametrize("name", config_file.shipped())
def test_shipped_models_are_understood_and_name_their_source(name: str) -> None:
    path = config_file.shipped()[name]
    model = plain.model(config_file.read(path), name, str(path))
    assert sum(count for _, count in model.attention()) > 0
    assert not model.others()
    assert json.loads(path.read_text(encoding="utf-8"))[config_file.SOURCE]
