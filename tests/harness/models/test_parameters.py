"""How many weights models have: as published, as transformers makes them, and quantized."""

from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import by_transformers, parameters, plain
from attnbench.harness.models.layers import Model
from attnbench.harness.models.resolve import model_of

GIB = 2**30
BOTH = {"attention_bias": True, "tie_word_embeddings": False}


def decoder(
    kind: str,
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    kv: int,
    inner: int,
    **more: Any,
) -> dict[str, Any]:
    return {
        "model_type": kind, "vocab_size": vocabulary, "hidden_size": width,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
        "intermediate_size": inner, **more,
    }  # fmt: skip


def gemma3(*sizes: int, **more: Any) -> dict[str, Any]:
    images = {
        "model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896,
        "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
        "patch_size": 14, "vision_use_head": False,
    }  # fmt: skip
    text = decoder("gemma3_text", 262208, *sizes, head_dim=more.pop("head_dim", 256), **more)
    return {"model_type": "gemma3", "text_config": text, "vision_config": images}


GPT_OSS_20B = decoder("gpt_oss", 201088, 2880, 24, 64, 8, 2880, head_dim=64, num_local_experts=32)
LLAMA_2_7B = decoder("llama", 32000, 4096, 32, 32, 32, 11008)
TIED = {"tie_word_embeddings": True}
PUBLISHED = {
    # "Model: parameters", and where that is published; shipped models have theirs below
    "Llama 2 7B": (LLAMA_2_7B, 6.74e9),  # huggingface.co/meta-llama/Llama-2-7b-hf
    # model cards of Qwen2.5: "Number of Parameters"
    "Qwen2.5 0.5B": (decoder("qwen2", 151936, 896, 24, 14, 2, 4864, **TIED), 0.49e9),
    "Qwen2.5 7B": (decoder("qwen2", 152064, 3584, 28, 28, 4, 18944), 7.61e9),
    # arXiv:2503.19786, table 1: images, embeddings and the rest
    "Gemma 3 1B": (
        decoder("gemma3_text", 262144, 1152, 26, 4, 1, 6912, head_dim=256), 302e6 + 698e6,
    ),
    "Gemma 3 27B": (gemma3(5376, 62, 32, 16, 21504, head_dim=128), 417e6 + 1416e6 + 25_600e6),
    # the files of tiiuae/falcon-7b, where the embeddings, which are the last product too, are twice
    "Falcon 7B": (
        {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
         "num_attention_heads": 71, "vocab_size": 65024, "multi_query": True, "bias": False},
        7_217_189_760 - 65024 * 4544,
    ),
    "gpt-oss-20b": (GPT_OSS_20B, 20.91e9),  # arXiv:2508.10925, table 1
    "DeepSeek-V3": (  # arXiv:2412.19437, section 4.2
        decoder(
            "deepseek_v3", 129280, 7168, 61, 128, 128, 18432, moe_intermediate_size=2048,
            n_routed_experts=256, n_shared_experts=1, first_k_dense_replace=3, q_lora_rank=1536,
            kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        ),
        671e9,
    ),
}  # fmt: skip


def read(data: dict[str, Any]) -> Model:
    pytest.importorskip("transformers")
    return by_transformers.model(data, "mine", "mine.json")


def counted(data: dict[str, Any]) -> int:
    found = read(data)
    assert found.weights is not None, found.uncounted
    return found.weights.parameters


@pytest.mark.parametrize("name", PUBLISHED)
def test_models_have_as_many_weights_as_is_published_within_a_percent(name: str) -> None:
    data, published = PUBLISHED[name]
    assert counted(data) == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize(
    ("model", "published"),
    [
        ("llama-3-8b", 8_030_261_248),
        ("mistral-7b", 7_241_732_096),
        ("qwen3-8b", 8_190_735_360),
        ("qwen2.5-7b", 7_615_616_512),
        ("mixtral-8x7b", 46_702_792_704),
        ("gemma-2-9b", 9_241_705_984),
        ("gpt2-xl", 1_557_611_200),
        ("gemma-3-4b", 4_300_079_472),  # of the files of google/gemma-3-4b-pt
        ("bert-base", 110e6),  # Devlin et al. 2019, section 3
        ("vit-l", 307e6),  # Dosovitskiy et al. 2021, table 1
        ("whisper-large", 1550e6),  # Radford et al. 2022, table 1
    ],
)
def test_shipped_models_carry_what_their_weights_need(model: str, published: float) -> None:
    found = model_of(model).weights
    assert found.parameters == pytest.approx(published, rel=0.0 if published > 2e9 else 0.01)


SMALL = decoder("", 1000, 64, 3, 4, 2, 96, head_dim=16)
UNUSUAL: dict[str, dict[str, Any]] = {
    "llama": {**BOTH, "mlp_bias": True},
    "mistral": TIED,
    "qwen2": {},
    "qwen3": BOTH,
    "gemma3_text": BOTH,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", parameters.FAMILIES)
def test_our_formulas_count_what_transformers_itself_makes(kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    data = {**SMALL, **UNUSUAL.get(kind, {}), "model_type": kind}
    made = by_transformers.built(transformers.AutoConfig.for_model(**data))
    assert counted(data) == made.matrices + made.experts + made.rest


def test_a_type_without_a_formula_is_counted_by_transformers() -> None:
    data = decoder("olmo2", 1000, 64, 3, 4, 4, 96)
    found = read(data).weights
    assert "transformers" in found.words
    # four norms of the width: two after the layers' halves, two of q and k
    assert found.parameters == 2 * 1000 * 64 + 3 * (4 * 64**2 + 3 * 64 * 96 + 4 * 64) + 64


MXFP4 = {"quant_method": "mxfp4"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}


@pytest.mark.parametrize(
    ("data", "quantization", "gib"),
    [
        (GPT_OSS_20B, MXFP4, 12.8),  # arXiv:2508.10925, table 1: size of the checkpoint
        ({**GPT_OSS_20B, "num_hidden_layers": 36, "num_local_experts": 128}, MXFP4, 60.8),
        (LLAMA_2_7B, GPTQ, 3.90e9 / GIB),  # huggingface.co/TheBloke/Llama-2-7B-GPTQ
        (LLAMA_2_7B, {**GPTQ, "quant_method": "awq"}, 3.89e9 / GIB),  # TheBloke/Llama-2-7B-AWQ
    ],
)
def test_quantized_weights_take_the_bytes_of_their_published_files(
    data: dict[str, Any], quantization: dict[str, Any], gib: float
) -> None:
    found = read({**data, "quantization_config": quantization}).weights
    assert found.size_bytes(2) / GIB == pytest.approx(gib, rel=0.01)


@pytest.mark.parametrize(
    ("quantization", "said"),
    [
        (GPTQ | {"modules_to_not_convert": ["lm_head"]}, False),
        (GPTQ | {"modules_to_not_convert": ["self_attn"]}, True),
        ({"load_in_8bit": True, "llm_int8_skip_modules": ["lm_head", "mlp"]}, True),
        (MXFP4 | {"modules_to_not_convert": ["model.layers.*.self_attn"]}, False),
    ],
)
def test_modules_that_stay_as_they_are_are_said_to_be_counted_as_quantized(quantization, said):
    found = read({**LLAMA_2_7B, "quantization_config": quantization}).weights
    assert found is not None
    assert ("leaves out" in found.words) is said


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        ({"load_in_4bit": True}, 4.5),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4 + 8 / 64 + 32 / 64 / 256),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8),
        ({"quant_method": "compressed-tensors",
          "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 64}}}}, 4.25),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": {"group_0": {
            "weights": {"num_bits": 4, "type": "float", "group_size": 16}}}}, 4.5),
        ({"quant_method": "modelopt", "config_groups": {"group_0": {
            "weights": {"num_bits": 8, "type": "float"}}}}, 8),
    ],
)  # fmt: skip
def test_bits_of_a_weight_are_those_of_its_method(
    quantization: dict[str, Any], bits: float
) -> None:
    tally = parameters.Tally(matrices=1000, experts=0, rest=10)
    found = parameters.stored(tally, quantization, "")
    assert (found.quantized, found.parameters) == (1000, 1010)
    assert found.bits == pytest.approx(bits, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"vocab_size": None}, "vocab_size: not given"),
        ({"quantization_config": {"quant_method": "dreams"}}, "how many bits 'dreams' takes"),
        ({"quantization_config": {"quant_method": "gptq"}}, "bits: not given"),
    ],
)
def test_what_is_not_known_is_said_and_is_not_zero(change: dict[str, Any], why: str) -> None:
    found = plain.model({**LLAMA_2_7B, **change}, "mine", "mine.json")
    assert found.weights is None
    assert why in found.uncounted


@pytest.mark.parametrize(
    "change",
    [
        {"vocab_size": "many"},
        {"vocab_size": -5},
        {"vocab_size": float("inf")},
        {"intermediate_size": 10**30},
        {"intermediate_size": True},
        {"quantization_config": "4 bits"},
        {"quantization_config": {**GPTQ, "group_size": -7}},
    ],
)
def test_what_is_no_size_is_refused_in_one_line(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        plain.model({**LLAMA_2_7B, **change}, "mine", "mine.json")
    (line,) = caught.value.problems
    assert line.startswith("mine.json: ")
    assert "wanted" in line
