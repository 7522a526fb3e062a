"""Layers by transformers' own resolution: the same as by our reader, where both know a model."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import config_file, parameters, plain
from attnbench.harness.models.layers import AttentionLayer, Model
from attnbench.harness.models.questions import cache_bytes
from attnbench.harness.models.resolve import model_of

transformers = pytest.importorskip("transformers")
import torch  # noqa: E402
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

from attnbench.harness.models import by_transformers  # noqa: E402

TYPES = sorted(parameters.FAMILIES)


def both(data: dict[str, Any]) -> tuple[Model, Model]:
    return plain.model(data, "mine", "mine.json"), by_transformers.model(data, "mine", "mine.json")


def defaults(kind: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(CONFIG_MAPPING[kind]().to_dict(), default=str))
    return data


@pytest.mark.parametrize("name", config_file.shipped())
def test_shipped_models_have_the_same_layers_with_and_without_it(name: str) -> None:
    path = config_file.shipped()[name]
    theirs = by_transformers.model(config_file.read(path), name, "config.json")
    ours = model_of(name)
    assert ours.layers == theirs.layers
    assert (ours.max_context, ours.left_out, ours.cautions) == (
        theirs.max_context,
        theirs.left_out,
        (),
    )
    assert ours.weights.parameters == pytest.approx(theirs.weights.parameters, rel=0.01)


CONFIGS = Path(__file__).parents[2] / "data" / "configs"
PUBLISHED = {
    # bytes of keys and values for a token in bf16
    "deepseek-v3": 70_272,  # arXiv:2505.09343, table 1
    "kimi-k2": 61 * 576 * 2,  # the latent of DeepSeek-V3 in as many layers
    "gpt-oss-20b": 24 * 2 * 8 * 64 * 2,
    "llama-4-scout": 48 * 2 * 8 * 128 * 2,
    "falcon-7b": 32 * 2 * 64 * 2,  # one head of keys and values
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files_are_taken_as_they_are(name: str) -> None:
    """They were refused for auto_map, or DeepSeek's was said to be no softmax attention."""
    data = config_file.read(CONFIGS / f"{name}.json")
    found = by_transformers.model(data, name, "config.json")
    assert not [*found.others()]
    assert cache_bytes(found, context=64, batch=1, bits=16) == 64 * PUBLISHED[name]
    assert bool(found.left_out) == (name == "llama-4-scout")


@pytest.mark.parametrize("kind", TYPES)
def test_its_own_default_configurations_have_the_same_layers_for_both(kind: str) -> None:
    ours, theirs = both(defaults(kind))
    assert ours == theirs


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 3},
        {"model_type": "mistral", "sliding_window": None},
        {"model_type": "gemma3_text", "sliding_window_pattern": 3, "layer_types": None},
    ],
    ids=lambda change: "-".join(map(str, change)),
)
def test_what_gates_windows_is_understood_alike(change: dict[str, Any]) -> None:
    data = defaults(change["model_type"])
    if change["model_type"] == "qwen3":
        data.pop("layer_types", None)
    ours, theirs = both({**data, **change})
    assert ours == theirs


def scores(layer: AttentionLayer) -> tuple[Any, ...]:
    return tuple(filter(None, (layer.latent, layer.softcap, layer.sinks, *layer.also)))


def of(kind: str, **changes: Any) -> list[tuple[Any, ...]]:
    """How many layers attend so: reach, heads for keys, width, whether they keep a cache, more."""
    data = {name: it for name, it in defaults(kind).items() if name != "per_layer_config"}
    found = by_transformers.model({**data, **changes}, kind, "config.json")
    return [
        (count, one.reach, one.kv_heads, one.d_k, one.stores_cache, *scores(one))
        for one, count in found.attention()
    ] + [(count, one.what) for one, count in found.others()]


@pytest.mark.parametrize(
    ("kind", "changes", "layers"),
    [
        ("deepseek_v3", {}, [(61, "full", 128, 192, True, 576)]),
        ("gpt_oss", {"layer_types": ["full_attention"] * 36}, [(36, "full", 8, 64, True, True)]),
        ("gemma2", {"attn_logit_softcapping": None, "layer_types": ["full_attention"] * 26},
         [(26, "full", 4, 256, True)]),
        ("gemma2", {}, [(13, "sliding", 4, 256, True, 50.0), (13, "full", 4, 256, True, 50.0)]),
        ("llama", {"per_layer_config": {"1": {"num_key_value_heads": 4}}},
         [(31, "full", 32, 128, True), (1, "full", 4, 128, True)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_windows_heads_and_caches_are_those_that_it_resolves(
    kind: str, changes: dict[str, Any], layers: list[tuple[Any, ...]]
) -> None:
    assert of(kind, **changes) == layers


@pytest.mark.parametrize(
    ("changes", "kv_heads"),
    [({}, 1), ({"multi_query": False}, 71), ({"new_decoder_architecture": True}, 71)],
)
def test_falcon_has_its_own_names_for_key_and_value_heads(
    changes: dict[str, Any], kv_heads: int
) -> None:
    assert of("falcon", **changes) == [(32, "full", kv_heads, 64, True)]


def test_models_that_only_it_knows_are_resolved() -> None:
    found = by_transformers.model(defaults("llama4"), "llama4", "config.json")
    assert {layer.reach: count for layer, count in found.attention()} == {"chunked": 36, "full": 12}


def test_models_that_are_none_of_language_are_refused() -> None:
    with pytest.raises(BadInput, match="wanted a model of language"):
        by_transformers.model(defaults("wav2vec2"), "wav2vec2", "config.json")


def test_a_configuration_that_transformers_refuses_is_one_line() -> None:
    with pytest.raises(BadInput) as caught:
        by_transformers.model(
            {"model_type": "llama", "num_hidden_layers": "many"}, "mine", "mine.json"
        )
    (line,) = caught.value.problems
    assert line.startswith("mine.json: llama: ")


@pytest.mark.parametrize("tokens", [16, 1])
def test_hugging_faces_attention_gets_the_caches_own_keys_and_values(tokens: int) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 9}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = transformers.LlamaConfig(**sizes, **heads, attn_implementation="sdpa")
    decoder = transformers.LlamaForCausalLM(config).eval()
    cache, sdpa = transformers.DynamicCache(config=config), ALL_ATTENTION_FUNCTIONS["sdpa"]
    shared: list[bool] = []

    def seen(layer, q, k, v, mask, **named):
        kept = cache.layers[layer.layer_idx]
        pairs = ((k, kept.keys), (v, kept.values))
        shared.append(all(one.data_ptr() == other.data_ptr() for one, other in pairs))
        return sdpa(layer, q, k, v, mask, **named)

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        decoder(torch.zeros(1, 8, dtype=torch.int64), past_key_values=cache)
        patch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "sdpa", seen)
        decoder(torch.zeros(1, tokens, dtype=torch.int64), past_key_values=cache)
    assert shared == [True, True]
