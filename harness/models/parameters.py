"""How many weights a model has, by the sizes in its configuration, and in how many bits they are
kept; nothing loops over layers.

Which weights a model type has, and what a field is if it is not given, follow the modeling files of
transformers 5.23. Tied weights count once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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


@dataclass(slots=True)
class Tally:
    """Numbers in `matrices` of the layers' products, in those of `experts`, and the `rest`:
    embeddings, positions, norms, biases, routers and the last product. `beside`: of the matrices,
    those that a token of text does not pass. `share`: of the experts that it passes, 0 if unknown.
    """

    matrices: int = 0
    experts: int = 0
    rest: int = 0
    beside: int = 0
    share: float = 0.0

    @property
    def products(self) -> int:
        """Numbers that a token is multiplied by in all layers; 0 if not known."""
        known = self.share or not self.experts
        return self.matrices - self.beside + int(self.share * self.experts) if known else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a type of decoders has, beside what its configuration says.

    `usual`: fields that are not given. `norms`: vectors as wide as the model in the norms of a
    layer. `biases`: those that q, k, v and the output have. `head_norms`: norms of q and k, as wide
    as a head. `tied`: the last product has the weights of the embeddings. `experts`: a layer has
    many feed-forward layers, and a router.
    """

    usual: dict[str, Any] = field(default_factory=dict)
    norms: int = 2
    biases: str = ""
    head_norms: bool = False
    tied: bool = False
    experts: bool = False


QWEN = {
    "num_key_value_heads": 32, "max_position_embeddings": 32768, "sliding_window": 4096,
    "use_sliding_window": False, "max_window_layers": 28,
}  # fmt: skip
GEMMA = {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096}
GEMMA_2 = {"sliding_window_pattern": 2, "attn_logit_softcapping": 50.0}
MISTRAL = {"num_key_value_heads": 8, "max_position_embeddings": 131072}
FAMILIES = {
    "llama": Family(usual={"max_position_embeddings": 2048}),
    "mistral": Family(usual={**MISTRAL, "sliding_window": 4096}),
    "mixtral": Family(usual={**MISTRAL, "sliding_window": None}, experts=True),
    "qwen2": Family(usual=QWEN, biases="qkv"),
    "qwen3": Family(usual={**QWEN, "head_dim": 128}, head_norms=True),
    "gemma2": Family(
        usual={**GEMMA, **GEMMA_2, "max_position_embeddings": 8192}, norms=4, tied=True
    ),
    "gemma3_text": Family(
        usual={**GEMMA, "max_position_embeddings": 131072, "sliding_window_pattern": 6},
        norms=4, head_norms=True, tied=True,
    ),
}  # fmt: skip
"""Types that are read without asking transformers, which fills in what is not given of others, and
counts their weights.
"""


def counted(kind: str, config: Fields, layers: Iterable[tuple[Layer, int]]) -> Tally:
    """Embeddings, layers with RMS norms, the last norm and the last product of a family's decoder.
    `config`: its fields by their usual names. Raises ValueError; NotGiven for what lacks.
    """
    if kind not in FAMILIES:
        raise NotGiven(f"attnbench has no formula for {kind}; transformers counts it")
    tally, family = Tally(), FAMILIES[kind]
    width, depth = number(config, "hidden_size"), number(config, "num_hidden_layers")
    tied = config.get("tie_word_embeddings")
    ends = 1 if (family.tied if tied is None else tied) else 2
    tally.rest += ends * number(config, "vocab_size") * width + (family.norms * depth + 1) * width
    biases = "qkvo" if config.get("attention_bias") else family.biases
    for layer, count in layers:
        if not isinstance(layer, AttentionLayer):
            raise NotGiven(f"attnbench has no formula for {layer.what}")
        q, joined = layer.heads * layer.d_k, layer.heads * layer.d_v
        k, v = layer.kv_heads * layer.d_k, layer.kv_heads * layer.d_v
        tally.matrices += count * width * (q + k + v + joined)
        wide = {"q": q, "k": k, "v": v, "o": width}
        tally.rest += count * sum(wide[one] for one in biases)
        tally.rest += count * 2 * layer.d_k * family.head_norms
    inner = number(config, "intermediate_size")
    experts = number(config, "num_local_experts", 8) if family.experts else 0
    tally.matrices += 0 if experts else depth * 3 * width * inner
    tally.experts += depth * experts * 3 * width * inner
    tally.share = number(config, "num_experts_per_tok", 2) / experts if experts else 0.0
    tally.rest += depth * experts * width
    tally.rest += depth * (2 * inner + width) if config.get("mlp_bias") else 0
    return tally


def stored(tally: Tally, quantization: Any, words: str) -> Weights:
    """The weights, and in how many bits those of products are kept. Raises NotGiven for a method
    that is not known, ValueError for what is no number of bits.
    """
    found = Weights(
        parameters=tally.matrices + tally.experts + tally.rest,
        words=words,
        products=tally.products,
    )
    if not quantization:
        return found
    if not isinstance(quantization, Mapping):
        raise ValueError(f"quantization_config: {shown(quantization)}; wanted an object")
    method, bits = _bits(quantization)
    smaller = tally.experts if method == "mxfp4" else tally.matrices + tally.experts
    words = f"{words}, about {bits:.3g} bits for each in a product of {method}"
    if method != "mxfp4" and _keeps_products(quantization):
        words += "; more, since some modules that quantization_config leaves out count as quantized"
    return replace(found, words=words, method=method, quantized=smaller, bits=bits)


def _keeps_products(quantization: Fields) -> bool:
    """Whether modules are left out beside the last product, which is never counted as quantized."""
    lists = (quantization.get(name) for name in LEFT_OUT)
    return any(one != "lm_head" for some in lists if isinstance(some, list) for one in some)


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
