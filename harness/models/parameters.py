"""How many weights a model has, by the sizes in its configuration, and in how many bits they are
kept; nothing loops over layers.

Which weights a model type has, and what a field is if it is not given, follow the modeling files of
transformers 5.23. Tied weights count once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..files.errors import shown
from .fields import Fields, NotGiven, number
from .layers import AttentionLayer, Layer, Weights

BY_SIZES = "counted by the sizes in config.json"
LEFT_OUT = ("modules_to_not_convert", "ignore", "llm_int8_skip_modules")
"""Modules that a quantization_config of transformers, compressed-tensors or bitsandbytes spares."""
BITS = {"NVFP4": 4 + 8 / 16, "FP8": 8.0, "FP8_PB_WO": 8.0, "fp8": 8.0, "fbgemm_fp8": 8.0}
BITS |= {"mxfp4": 4 + 8 / 32}
"""Of a weight where a method, or one of modelopt, names nothing more: scales of 8 bits for 16 or 32
weights (OCP Microscaling 1.0), or one for a row, or for a block of 128 by 128.
"""


class Tally(NamedTuple):
    """Numbers in `matrices` of the layers' products, in those of `experts`, and the `rest`:
    embeddings, positions, norms, biases, routers, encoders of images and the last product.
    """

    matrices: int
    experts: int
    rest: int


QWEN = {"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 28}
GEMMA = {"sliding_window": 4096, "norms": 4, "tie_word_embeddings": True}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"max_position_embeddings": 2048},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "qwen2": {**QWEN, "attention_bias": "qkv"},
    "qwen3": {**QWEN, "use_qk_norm": True},
    "gemma2": {**GEMMA, "sliding_window_pattern": 2, "attn_logit_softcapping": 50.0},
    "gemma3_text": {**GEMMA, "sliding_window_pattern": 6, "use_qk_norm": True},
}
"""Types that are read without asking transformers, with what their published configurations leave
out: which of q, k, v and the output have biases, whether q and k have norms as wide as a head, how
many norms as wide as the model a layer has.
"""


def weights(
    kind: str, config: Fields, layers: Iterable[tuple[Layer, int]], quantization: Any
) -> Weights:
    """Embeddings, layers with RMS norms, the last norm and the last product of a family's decoder.
    `config`: its fields by their usual names. Raises ValueError; NotGiven for what lacks.
    """
    if kind not in FAMILIES:
        raise NotGiven(f"attnbench has no formula for {kind}; transformers counts it")
    width, bias = number(config, "hidden_size"), config.get("attention_bias")
    depth, inner = number(config, "num_hidden_layers"), number(config, "intermediate_size")
    ends = 1 if config.get("tie_word_embeddings") else 2
    matrices = depth * 3 * width * inner
    norms = FAMILIES[kind].get("norms", 2) * depth + 1
    rest = (ends * number(config, "vocab_size") + norms) * width
    rest += depth * (2 * inner + width) if config.get("mlp_bias") else 0
    biases = FAMILIES[kind].get("attention_bias", "qkvo" if bias else "")
    for layer, count in layers:
        if not isinstance(layer, AttentionLayer):
            raise NotGiven(f"attnbench has no formula for {layer.what}")
        q, joined = layer.heads * layer.d_k, layer.heads * layer.d_v
        k, v = layer.kv_heads * layer.d_k, layer.kv_heads * layer.d_v
        matrices += count * width * (q + k + v + joined)
        wide = {"q": q, "k": k, "v": v, "o": width}
        within = 2 * layer.d_k if config.get("use_qk_norm") else 0
        rest += count * (sum(wide[one] for one in biases) + within)
    return stored(Tally(matrices, 0, rest), quantization, BY_SIZES)


def stored(tally: Tally, quantization: Any, words: str) -> Weights:
    """The weights, and in how many bits those of products are kept. Raises NotGiven for a method
    that is not known, ValueError for what is no number of bits.
    """
    found = Weights(parameters=sum(tally), words=words)
    if not quantization:
        return found
    method, bits = _bits(quantization)
    smaller = tally.experts if method == "mxfp4" else tally.matrices + tally.experts
    words = f"{words}, about {bits:.3g} bits for each in a product of {method}"
    spared = [quantization.get(name) for name in LEFT_OUT]
    # the last product is never counted as quantized
    kept = any(one != "lm_head" for some in spared if isinstance(some, list) for one in some)
    if method != "mxfp4" and kept:
        words += "; more, since some modules that quantization_config leaves out count as quantized"
    return replace(found, words=words, method=method, quantized=smaller, bits=bits)


def _bits(quantization: Fields) -> tuple[str, float]:
    """The method, and bits for one weight with its share of scales and zero points."""
    loaded = {"load_in_4bit", "load_in_8bit"} & quantization.keys()
    method = quantization.get("quant_method") or ("bitsandbytes" if loaded else None)
    if method in ("gptq", "awq"):
        bits = number(quantization, "bits")
        return method, bits + _shared(quantization, 16 + bits)
    if method == "bitsandbytes":  # blocks of 64 with a scale in fp32, that itself may be quantized
        scale = (8 + 32 / 256) / 64 if quantization.get("bnb_4bit_use_double_quant") else 32 / 64
        return method, 4 + scale if quantization.get("load_in_4bit") else 8
    groups = quantization.get("config_groups")
    if method in ("compressed-tensors", "modelopt") and isinstance(groups, Mapping):
        found = [one.get("weights") for one in groups.values()]
        if len(found) == 1 and isinstance(found[0], Mapping):
            bits = number(found[0], "num_bits")
            # of floats in 4 bits the scale has 8: NVFP4 and MXFP4
            scale = 8 if (bits, found[0].get("type")) == (4, "float") else 16
            return method, bits + _shared(found[0], scale)
    named = quantization.get("quant_algo") if method == "modelopt" else method
    if known := BITS.get(str(named)):
        return str(method), known
    raise NotGiven(f"quantization_config: how many bits {shown(method)} takes is not known")


def _shared(quantization: Fields, bits: float) -> float:
    """Of what a group has once, for each weight; next to nothing for a whole row."""
    group = quantization.get("group_size")
    return bits / number(quantization, "group_size") if group not in (None, -1) else 0.0
