"""How many weights a model has, by the sizes in its configuration; nothing loops over layers.

Which weights a model type has, and what a field is if it is not given, follow the modeling files of
transformers 5.23. Tied weights count once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..files.errors import shown
from .layers import AttentionLayer, Layer, Weights

MOST = 1 << 40  # of any size in a configuration
BY_SIZES = "counted by the sizes in config.json"
Fields = Mapping[str, Any]
LEFT_OUT = ("modules_to_not_convert", "ignore", "llm_int8_skip_modules")
"""Modules that a quantization_config of transformers, compressed-tensors or bitsandbytes spares."""


MODELOPT = {"NVFP4": 4 + 8 / 16, "FP8": 8.0, "FP8_PB_WO": 8.0}
"""Bits of a weight where a quantization of modelopt names its method alone."""


class NotCounted(LookupError):
    """The weights cannot be counted; the message says why."""


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
class Decoder:
    """What the decoders of a model type have, beside what their configuration says.

    `norms`: vectors as wide as the model in the norms of a layer. `biases`: those that q, k, v and
    the output have. `head_norms`: norms of q and k, as wide as a head. `tied`: the last product has
    the weights of the embeddings. `experts`: a layer has many feed-forward layers, and a router.
    """

    norms: int = 2
    biases: str = ""
    head_norms: bool = False
    tied: bool = False
    experts: bool = False


DECODERS = {
    "mixtral": Decoder(experts=True),
    "gemma2": Decoder(norms=4, tied=True),
    **dict.fromkeys(("llama", "mistral"), Decoder()),
    "qwen2": Decoder(biases="qkv"),
    "qwen3": Decoder(head_norms=True),
    **dict.fromkeys(("gemma3", "gemma3_text"), Decoder(norms=4, head_norms=True, tied=True)),
}
"""Those that are read without transformers, which counts the weights of all others itself."""


def weights(
    kind: str, config: Fields, layers: Iterable[tuple[Layer, int]], data: Fields
) -> Weights:
    """Of a model of type `kind`. `config`: the fields of its decoder, or of all of it, by their
    usual names; `data`: the configuration. Raises NotCounted; ValueError for what is no size.
    """
    tally = Tally()
    if kind in DECODERS:
        _decoder(tally, DECODERS[kind], config, layers)
    elif kind in OTHERS:
        OTHERS[kind](tally, config)
    else:
        raise NotCounted(f"attnbench has no formula for {kind}; transformers counts it")
    if kind == "gemma3":
        _images(tally, data.get("vision_config"), size(config, "hidden_size"))
    return stored(tally, data.get("quantization_config"), BY_SIZES)


def weights_or_why(
    kind: str, config: Fields, layers: Iterable[tuple[Layer, int]], data: Fields
) -> tuple[Weights | None, str]:
    """As `weights`; None, and why, where they cannot be counted. Raises ValueError."""
    try:
        return weights(kind, config, layers, data), ""
    except NotCounted as why:
        return None, str(why)


def size(config: Fields, name: str, usual: int | None = None) -> int:
    """A size in a configuration. Raises NotCounted if it is not given, ValueError if it is none."""
    value = usual if config.get(name) is None else config[name]
    if value is None:
        raise NotCounted(f"{name} is not given")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ValueError(f"{name}: {shown(value)}; wanted a whole number from 1 to 2^40")
    return value


# ---- decoders ------------------------------------------------------------------------------------


def _decoder(
    tally: Tally, family: Decoder, config: Fields, layers: Iterable[tuple[Layer, int]]
) -> None:
    """Embeddings, layers with RMS norms, the last norm and the last product."""
    width, depth = size(config, "hidden_size"), size(config, "num_hidden_layers")
    tied = config.get("tie_word_embeddings")
    ends = 1 if (family.tied if tied is None else tied) else 2
    tally.rest += ends * size(config, "vocab_size") * width + (family.norms * depth + 1) * width
    biases = "qkvo" if config.get("attention_bias") else family.biases
    for layer, count in layers:
        if not isinstance(layer, AttentionLayer):
            raise NotCounted(f"attnbench has no formula for {layer.what}")
        q, joined = layer.heads * layer.d_k, layer.heads * layer.d_v
        k, v = layer.kv_heads * layer.d_k, layer.kv_heads * layer.d_v
        tally.matrices += count * width * (q + k + v + joined)
        wide = {"q": q, "k": k, "v": v, "o": width}
        tally.rest += count * sum(wide[one] for one in biases)
        tally.rest += count * 2 * layer.d_k * family.head_norms
    inner = size(config, "intermediate_size")
    experts = size(config, "num_local_experts", 8) if family.experts else 0
    tally.matrices += 0 if experts else depth * 3 * width * inner
    tally.experts += depth * experts * 3 * width * inner
    tally.share = size(config, "num_experts_per_tok", 2) / experts if experts else 0.0
    tally.rest += depth * experts * width
    tally.rest += depth * (2 * inner + width) if config.get("mlp_bias") else 0


# ---- layers with biases and layer norms ----------------------------------------------------------


def _stack(tally: Tally, width: int, inner: int, count: int) -> None:
    tally.matrices += count * (4 * width * width + 2 * width * inner)
    tally.rest += count * (inner + 9 * width)  # of the biases, and of two norms


def _patches(tally: Tally, config: Fields, width: int, more: int) -> None:
    """Of an image of three colours, each with its position; `more`: positions of other tokens."""
    side, patch = size(config, "image_size"), size(config, "patch_size")
    tally.rest += width * (3 * patch * patch + 1 + (side // patch) ** 2 + more)


def _images(tally: Tally, config: Any, text_width: int) -> None:
    """Gemma 3's encoder of images (SigLIP), and the product that takes them into the decoder."""
    if not isinstance(config, Mapping):
        raise NotCounted("vision_config is not given")
    width, depth = size(config, "hidden_size"), size(config, "num_hidden_layers")
    inner, of_text = size(config, "intermediate_size"), tally.matrices
    _stack(tally, width, inner, depth)
    _patches(tally, config, width, 0)
    tally.rest += 3 * width + width * text_width
    if config.get("vision_use_head", True):  # a layer whose one query is learned, with one norm
        _stack(tally, width, inner, 1)
        tally.rest -= width
    tally.beside = tally.matrices - of_text


def _gpt2(tally: Tally, config: Fields) -> None:
    width, positions = size(config, "hidden_size"), size(config, "max_position_embeddings", 1024)
    inner = size(config, "n_inner", 4 * width)
    _stack(tally, width, inner, size(config, "num_hidden_layers"))
    ends = 2 if config.get("tie_word_embeddings") is False else 1
    tally.rest += (ends * size(config, "vocab_size") + positions + 2) * width


def _bert(tally: Tally, config: Fields) -> None:
    """With the pooler."""
    width, positions = size(config, "hidden_size"), size(config, "max_position_embeddings", 512)
    _stack(tally, width, size(config, "intermediate_size"), size(config, "num_hidden_layers"))
    words = size(config, "vocab_size") + positions + size(config, "type_vocab_size", 2)
    tally.rest += (words + 2 + width + 1) * width


def _vit(tally: Tally, config: Fields) -> None:
    """With the pooler; square images."""
    width = size(config, "hidden_size")
    _stack(tally, width, size(config, "intermediate_size"), size(config, "num_hidden_layers"))
    _patches(tally, config, width, 2)  # the class token and its position
    tally.rest += (2 + width + 1) * width


def _whisper(tally: Tally, config: Fields) -> None:
    """No key has a bias. The decoder's layers have a second attention with its norm."""
    width, depth = size(config, "hidden_size"), size(config, "decoder_layers")
    inner = size(config, "decoder_ffn_dim")
    encoders = size(config, "num_hidden_layers")
    _stack(tally, width, size(config, "encoder_ffn_dim"), encoders)
    _stack(tally, width, inner, depth)
    tally.matrices += depth * 4 * width * width
    tally.beside = tally.matrices  # tokens of two stacks, of which each passes one
    tally.rest += depth * (3 + 2 - 1) * width - encoders * width
    heard = size(config, "max_source_positions", 1500)
    written = size(config, "max_position_embeddings", 448)
    convolved = 3 * size(config, "num_mel_bins", 80) + 1 + 3 * width + 1
    tally.rest += (heard + written + size(config, "vocab_size") + convolved + 4) * width


OTHERS: dict[str, Callable[[Tally, Fields], None]] = {
    "gpt2": _gpt2,
    "bert": _bert,
    "vit": _vit,
    "whisper": _whisper,
}


# ---- quantized -----------------------------------------------------------------------------------


def stored(tally: Tally, quantization: Any, words: str) -> Weights:
    """The weights, and in how many bits those of products are kept. Raises NotCounted for a method
    that is not known, ValueError for what is no number of bits.
    """
    everything = tally.matrices + tally.experts + tally.rest
    if not quantization:
        return Weights(parameters=everything, words=words, products=tally.products)
    if not isinstance(quantization, Mapping):
        raise ValueError(f"quantization_config: {shown(quantization)}; wanted an object")
    method, bits = _bits(quantization)
    smaller = tally.experts if method == "mxfp4" else tally.matrices + tally.experts
    words = f"{words}, about {bits:.3g} bits for each in a product of {method}"
    if method != "mxfp4" and _keeps_products(quantization):
        words += "; more, since some modules that quantization_config leaves out count as quantized"
    return Weights(
        parameters=everything,
        words=words,
        method=method,
        quantized=smaller,
        bits=bits,
        products=tally.products,
    )


def _keeps_products(quantization: Fields) -> bool:
    """Whether modules are left out beside the last product, which is never counted as quantized."""
    lists = (quantization.get(name) for name in LEFT_OUT)
    return any(one != "lm_head" for some in lists if isinstance(some, list) for one in some)


def _bits(quantization: Fields) -> tuple[str, float]:
    """The method, and bits for one weight with its share of scales and zero points."""
    method = quantization.get("quant_method") or (
        "bitsandbytes" if {"load_in_4bit", "load_in_8bit"} & quantization.keys() else None
    )
    if method in ("gptq", "awq"):
        bits = size(quantization, "bits")
        return method, bits + _shared(quantization, 16 + bits)
    if method == "bitsandbytes":  # blocks of 64 with a scale in fp32, that itself may be quantized
        scale = (8 + 32 / 256) / 64 if quantization.get("bnb_4bit_use_double_quant") else 32 / 64
        return method, 4 + scale if quantization.get("load_in_4bit") else 8
    if method in ("fp8", "fbgemm_fp8"):  # a scale for a row, or for a block of 128 by 128
        return method, 8
    if method == "mxfp4":  # blocks of 32 with a scale of 8 bits (OCP Microscaling 1.0)
        return method, 4 + 8 / 32
    if method in ("compressed-tensors", "modelopt"):
        groups = quantization.get("config_groups")
        found = (
            [one.get("weights") for one in groups.values()] if isinstance(groups, Mapping) else []
        )
        if len(found) == 1 and isinstance(found[0], Mapping):
            bits = size(found[0], "num_bits")
            # of floats in 4 bits the scale has 8: NVFP4 and MXFP4
            scale = 8 if (bits, found[0].get("type")) == (4, "float") else 16
            return method, bits + _shared(found[0], scale)
    if method == "modelopt" and (known := MODELOPT.get(str(quantization.get("quant_algo")))):
        return method, known
    raise NotCounted(f"quantization_config: how many bits {shown(method)} takes is not known")


def _shared(quantization: Fields, bits: int) -> float:
    """Of what a group has once, for each weight; next to nothing for a whole row."""
    group = quantization.get("group_size")
    return bits / size(quantization, "group_size") if group not in (None, -1) else 0.0
