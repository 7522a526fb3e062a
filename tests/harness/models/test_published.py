"""Bytes of published kinds of configurations, equal to those computed by hand.

The files of data/configs/small have the fields that are published, with smaller sizes; its README
lists the families. Where transformers is installed they are read with it too.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import config_file, kinds, plain
from attnbench.harness.models.layers import Model
from attnbench.harness.models.questions import cache_bytes, state_bytes

FOLDER = Path(__file__).parents[2] / "data" / "configs" / "small"
N = 8192
BF16 = 2
MAMBA = 32 * 64 * 64 * 4 + (32 * 64 + 2 * 64) * 3 * BF16  # heads, columns, states; its convolution
DELTA = 8 * 128 * 128 * 4 + (2 * 4 * 128 + 8 * 128) * 3 * BF16
LATENT = 256 + 32
# Bytes of keys and values at 8,192 tokens in bf16, and of the state of a sequence.
BY_HAND: dict[str, tuple[int, int | None]] = {
    # those of shared cases
    "hybrid-output-gate": (3 * 2 * 2 * 128 * BF16 * N, 9 * (8 * 64 * 64 * 4 + 1024 * 3 * BF16)),
    "mamba-hybrid": (
        2 * 2 * 2 * 128 * BF16 * N,
        4 * (16 * 64 * 64 * 4 + (1024 + 2 * 2 * 64) * 3 * BF16),
    ),
    "vision-language-dense": (6 * 2 * 4 * 128 * BF16 * N, 0),
    "sparse-indexer": (4 * (LATENT + 64) * BF16 * N, 0),
    "hybrid-granite": (2 * 2 * 4 * 128 * BF16 * N, 6 * MAMBA),
    "attn-type-list": (4 * 2 * 2 * 128 * BF16 * N, 0),
    "period-hybrid": (2 * 2 * 4 * 128 * BF16 * N, 6 * (2048 * 16 * 4 + 2048 * 3 * BF16)),
    "alibi-config": (4 * 2 * 8 * 128 * BF16 * N, 0),
    "state-of-linear-layers": (
        4 * 2 * 1 * 128 * BF16 * N,
        12 * (32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * BF16),
    ),
    "nvfp4-weights": (4 * 2 * 2 * 128 * BF16 * N, 0),
    "dtype-in-text-config": (6 * 2 * 2 * 128 * BF16 * N, 0),
    # others of the same kinds
    "qwen3.5-vl": (2 * 2 * 2 * 256 * BF16 * N, 6 * DELTA),
    "nemotron-3": (
        2 * 2 * 2 * 128 * BF16 * N,
        6 * (32 * 64 * 128 * 4 + (2048 + 2 * 8 * 128) * 3 * BF16),
    ),
    "bamba": (2 * 2 * 2 * 128 * BF16 * N, 6 * (32 * 64 * 128 * 4 + (2048 + 256) * 3 * BF16)),
    "falcon-h1": (6 * 2 * 2 * 64 * BF16 * N, 6 * (24 * 64 * 128 * 4 + (1536 + 256) * 3 * BF16)),
    "zamba2": (2 * 2 * 16 * 128 * BF16 * N, 6 * MAMBA),
    "lfm2": (3 * 2 * 4 * 64 * BF16 * N, 5 * 1024 * 2 * BF16),
    "recurrent-gemma": (2 * 2 * 1 * 128 * BF16 * 2048, 5 * (1024 * 4 + 1024 * 3 * BF16)),
    "minimax-01": (2 * 2 * 2 * 128 * BF16 * N, 6 * 8 * 128 * 128 * 4),
    "kimi-linear": (
        2 * LATENT * BF16 * N,
        6 * (16 * 64 * 64 * 4 + 3 * 16 * 64 * 3 * BF16),
    ),
    "glm-5": ((10 * LATENT + 4 * 128) * BF16 * N, 0),  # layers 0, 1, 5 and 9 have an indexer
    "gemma-3n": (2 * 2 * 128 * BF16 * (4 * 512 + 1 * N), 0),  # the last five reuse
    "gemma-4": (10 * 2 * 4 * 256 * BF16 * 1024 + 2 * 2 * 2 * 512 * BF16 * N, 0),
    "mimo-v2": (3 * 2 * (192 + 128) * BF16 * N + 9 * 4 * (192 + 128) * BF16 * 128, 0),
    "step-3.5": (2 * 2 * 2 * 128 * BF16 * N + 6 * 2 * 4 * 128 * BF16 * 512, 0),
    "modernbert": (0, 0),
    "roberta": (0, 0),
    "bloom": (4 * 2 * 16 * 64 * BF16 * N, 0),
    "falcon-rw": (4 * 2 * 16 * 64 * BF16 * N, 0),
    "ernie-4.5-vl": (6 * 2 * 2 * 128 * BF16 * N, 0),
    "hunyuan-a13b": (4 * 2 * 2 * 128 * BF16 * N, 0),
    "qwen2.5-vl": (4 * 2 * 2 * 128 * BF16 * N, 0),
    "llama-3.2-vision": (4 * 2 * 2 * 128 * BF16 * N, None),  # what images leave is not known
    "nemotron-nas": ((1 * 2 * 2 + 1 * 2 * 1) * 128 * BF16 * N, 0),
    "dbrx": (4 * 2 * 2 * 128 * BF16 * N, 0),
    "exaone-4": (2 * 2 * 128 * BF16 * (6 * 4096 + 2 * N), 0),
    "command-a": (2 * 2 * 128 * BF16 * (6 * 4096 + 2 * N), 0),
    "minimax-m3": ((6 * 2 * 2 * 128 + 4 * 64) * BF16 * N, 0),
    "mamba2": (0, 4 * (32 * 64 * 128 * 4 + (2048 + 2 * 8 * 128) * 3 * BF16)),
}
REFUSED = {"deepseek-v4": "compress_ratios: 4 in layer 2: what it keeps for a token is not known"}
QWEN3_VL_30B = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 151_936,
}
ITS_IMAGES = {
    "depth": 27,
    "hidden_size": 1152,
    "num_heads": 16,
    "intermediate_size": 4304,
    "out_hidden_size": 2048,
    "deepstack_visual_indexes": [8, 16, 24],
}
NOT_ITS_OWN = ("ernie-4.5-vl", "exaone-4", "minimax-01", "nemotron-nas")
"""Whose type transformers lacks, or whose fields it refuses: they are read as they stand."""


def read(name: str) -> Model:
    path = FOLDER / f"{name}.json"
    return plain.model(config_file.read(path), name, str(path))


def by_transformers(name: str) -> Model:
    from attnbench.harness.models import by_transformers

    path = FOLDER / f"{name}.json"
    return by_transformers.model(config_file.read(path), name, str(path))


def sizes(model: Model) -> tuple[int, int | None]:
    kept = cache_bytes(model, context=N, batch=1, bits=8 * BF16)
    return kept, state_bytes(model, batch=1, item_bytes=BF16)


def test_every_file_is_tried_and_listed() -> None:
    files = {path.stem for path in FOLDER.glob("*.json")}
    assert files == BY_HAND.keys() | REFUSED.keys()
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert not [name for name in files if f"| {name} |" not in listed]


@pytest.mark.parametrize("name", BY_HAND)
def test_the_bytes_are_those_by_hand_without_transformers(name: str) -> None:
    found = read(name)
    assert sizes(found) == BY_HAND[name]
    assert found.cautions == ()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(BY_HAND.keys() - set(NOT_ITS_OWN)))
def test_the_bytes_are_those_by_hand_with_transformers(name: str) -> None:
    pytest.importorskip("transformers")
    found = by_transformers(name)
    assert sizes(found) == BY_HAND[name]
    assert found.layers == read(name).layers
    assert found.cautions == ()


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "reader", [read, pytest.param(by_transformers, marks=pytest.mark.long)], ids=["own", "with"]
)
def test_a_refusal_names_the_layer_whose_bytes_cannot_be_known(
    name: str, reader: Callable[[str], Model]
) -> None:
    if reader is by_transformers:
        pytest.importorskip("transformers")  # whose import takes seconds
    with pytest.raises(BadInput, match=REFUSED[name]):
        reader(name)


@pytest.mark.parametrize(
    "name", ["has_relative_attention_bias", "kv_norm_window", "gate_of_attention_sinks"]
)
def test_a_word_in_the_name_of_an_unknown_field_does_not_make_it_harmless(name: str) -> None:
    given = {name: 3, "attention_bias": True, "attn_output_gate": True}
    assert kinds.unknown_names(given, given) == [name]


@pytest.mark.long
def test_a_mixture_in_bf16_takes_58_gib_as_published() -> None:
    """Qwen3-VL-30B-A3B: it was called 116 GiB in fp32."""
    pytest.importorskip("transformers")
    from attnbench.harness.models import by_transformers

    path = FOLDER / "dtype-in-text-config.json"
    data = config_file.read(path)
    found = by_transformers.model(
        {
            **data,
            "text_config": {**data["text_config"], **QWEN3_VL_30B},
            "vision_config": {**data["vision_config"], **ITS_IMAGES},
        },
        "qwen3-vl-30b-a3b",
        str(path),
    )
    experts = 48 * 128 * 3 * 2048 * 768
    attention = 48 * 2 * 2048 * (32 + 4) * 128
    text = experts + attention + 48 * 2048 * 128 + 2 * 151_936 * 2048
    assert found.dtype == "bfloat16"
    assert found.weights is not None
    assert 0 < found.weights.parameters - text < 0.02 * text  # norms, and the encoder of images
    assert round(found.weights.size_bytes(BF16) / 2**30) == 58


def test_what_no_backend_computes_is_named() -> None:
    said = {name: [layer.text() for layer, _ in read(name).attention()] for name in BY_HAND}
    assert "ALiBi" in said["bloom"][0]
    assert "sparse attention to 1024 keys" in said["sparse-indexer"][0]
    assert "16 blocks of keys" in said["minimax-m3"][1]
    assert "a window of 128 tokens around each" in said["modernbert"][1]
    assert said["mimo-v2"][1].endswith("the last 128 tokens, attention sinks")


def test_one_layer_may_have_attention_and_a_state() -> None:
    (state, count), *_ = read("falcon-h1").others()
    assert (state.what, count) == ("Mamba-2 beside attention", 6)
    assert [count for _, count in read("falcon-h1").attention()] == [6]
