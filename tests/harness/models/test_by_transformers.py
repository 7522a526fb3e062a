"""Layers by transformers' own resolution: the same as by our reader, where both know a model."""

import json
from dataclasses import replace
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import config_file, plain
from attnbench.harness.models.layers import Model

transformers = pytest.importorskip("transformers")
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

from attnbench.harness.models import by_transformers  # noqa: E402

TYPES = sorted({*plain.DECODERS, *plain.FAMILIES, *plain.WITH_TEXT} & set(CONFIG_MAPPING))


def both(data: dict[str, Any]) -> tuple[Model, Model]:
    ours = plain.model(data, "mine", "mine.json")
    return ours, replace(by_transformers.model(data, "mine", "mine.json"), read_by=ours.read_by)


def defaults(kind: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(CONFIG_MAPPING[kind]().to_dict(), default=str))
    return data


@pytest.mark.parametrize("name", config_file.shipped())
def test_shipped_models_have_the_same_layers_with_and_without_it(name: str) -> None:
    ours, theirs = both(config_file.read(config_file.shipped()[name]))
    assert ours == theirs


@pytest.mark.parametrize("kind", TYPES)
def test_its_own_default_configurations_have_the_same_layers_for_both(kind: str) -> None:
    ours, theirs = both(defaults(kind))
    assert ours == theirs


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 3},
        {"model_type": "mistral", "sliding_window": None},
        {"model_type": "gemma4_text", "num_kv_shared_layers": 4, "num_hidden_layers": 12},
        {"model_type": "gemma4_text", "attention_k_eq_v": True, "num_global_key_value_heads": 1},
        {"model_type": "gemma3_text", "sliding_window_pattern": 3, "layer_types": None},
        {"model_type": "qwen3_next", "full_attention_interval": 3, "layer_types": None},
        {"model_type": "gemma2", "attn_logit_softcapping": None},
        {"model_type": "llama", "per_layer_config": {"1": {"num_key_value_heads": 4}}},
    ],
    ids=lambda change: "-".join(map(str, change)),
)
def test_what_gates_windows_heads_and_caches_is_understood_alike(change: dict[str, Any]) -> None:
    data = defaults(change["model_type"])
    data.pop("per_layer_config", None)
    if "num_hidden_layers" in change or change["model_type"] == "qwen3":
        data.pop("layer_types", None)
    ours, theirs = both({**data, **change})
    assert ours == theirs


def test_models_that_only_it_knows_are_resolved() -> None:
    found = by_transformers.model(defaults("llama4"), "llama4", "config.json")
    assert {layer.reach: count for layer, count in found.attention()} == {"chunked": 36, "full": 12}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("falcon", "'multi_query'"),  # its key and value heads have another name
        ("t5", "wanted a decoder"),
        ("mamba", "wanted a decoder"),
        ("roberta", "wanted a decoder"),
    ],
)
def test_models_whose_attention_it_would_have_to_guess_are_refused(kind: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        by_transformers.model(defaults(kind), kind, "config.json")


def test_a_configuration_that_transformers_refuses_is_one_line() -> None:
    with pytest.raises(BadInput) as caught:
        by_transformers.model(
            {"model_type": "llama", "num_hidden_layers": "many"}, "mine", "mine.json"
        )
    (line,) = caught.value.problems
    assert line.startswith("mine.json: llama: ")
