"""Of which kind each layer is, by the lists, patterns and periods of a configuration."""

from collections.abc import Callable, Collection, Iterable
from itertools import cycle, islice
from typing import Any, Literal

from ..files.errors import shown
from .fields import Fields, number

Kind = Literal[
    "full", "sliding", "chunked", "indexed", "state", "none", "hybrid", "hybrid_sliding", "cross"
]
"""hybrid: attention and something with a state in one layer. indexed: attention to those keys that
an indexer chooses. cross: to what an encoder of images gives.
"""
WORDS: dict[Any, Kind] = {
    **dict.fromkeys(("full_attention", "attention", "full", "global", "*"), "full"),
    **dict.fromkeys(("sliding_attention", "sliding", "local", "local_attention", "swa"), "sliding"),
    "chunked_attention": "chunked",
    **dict.fromkeys(("indexed_attention", "minimax_m3_sparse"), "indexed"),
    **dict.fromkeys(("linear_attention", "mamba", "mamba2", "recurrent", "conv", "M"), "state"),
    **dict.fromkeys(("mlp", "moe", "dummy", "-", "E"), "none"),
    "hybrid": "hybrid",
    "hybrid_sliding": "hybrid_sliding",
}
STATES = ("mamba_heads", "dt_rank", "linear_num_value_heads", "linear_attn_config", "lru_width")
"""Fields of layers with a state: which layers they are must be said then."""


def kinds(fields: Fields) -> list[Kind]:
    """One for each layer. Raises ValueError, with the layer of which it is not known."""
    for name in ("compress_ratios", "compress_rates"):  # DeepSeek-V4
        if given := fields.get(name):
            first = next((at for at, one in enumerate(given) if one), 0)
            raise ValueError(
                f"{name}: {shown(given)}: what layer {first} keeps of compressed keys is not known"
            )
    found = next((made for way in WAYS if (made := way(fields)) is not None), None)
    if found is not None:
        return found
    count = number(fields, "num_hidden_layers")
    if "num_attention_heads" not in fields and "state_size" in fields:
        return ["state"] * count
    if named := next((one for one in STATES if fields.get(one)), None):
        raise ValueError(f"{named} is given, and no list of which of {count} layers have a state")
    return [_usual(fields)] * count


def _usual(fields: Fields) -> Kind:
    """Of a layer about which nothing else is said."""
    if fields.get("index_head_dim") and fields.get("kv_lora_rank"):
        return "indexed"
    if fields.get("sliding_window") and fields.get("use_sliding_window", True):
        return "sliding"
    return "full"


def _listed(fields: Fields) -> list[Kind] | None:
    """layer_types, or blocks that repeat."""
    named = fields.get("layer_types")
    if named is None:
        return None
    if not isinstance(named, list) or not named:
        raise ValueError(f"layer_types: {shown(named)}; wanted a list with one for each layer")
    count = number(fields, "num_hidden_layers", len(named))
    repeats = "block_types" in fields or "_block_types" in fields
    more = fields.get("num_nextn_predict_layers") or 0  # some lists go on with those that draft
    if not repeats and len(named) not in (count, count + more):
        raise ValueError(f"layer_types: {len(named)} for {count} layers; wanted one for each")
    found = _of_words("layer_types", islice(cycle(named), count))
    windows = repeats and "sliding_window" in fields  # RecurrentGemma's attention has one
    return ["sliding" if windows and one == "full" else one for one in found]


def _pattern(fields: Fields) -> list[Kind] | None:
    """Nemotron-H's: M for Mamba, * for attention, - and E for feed-forward layers alone."""
    pattern = fields.get("hybrid_override_pattern")
    return None if not pattern else _of_words("hybrid_override_pattern", pattern)


def _of_words(name: str, words: Iterable[Any]) -> list[Kind]:
    found: list[Kind] = []
    for index, word in enumerate(words):
        if not isinstance(word, str) or word not in WORDS:
            raise ValueError(
                f"{name}: {shown(word)} in layer {index}: what it keeps for a token is not known"
            )
        found.append(WORDS[word])
    return found


def _numbered(name: str, at_0: Kind, at_1: Kind) -> Callable[[Fields], list[Kind] | None]:
    """A list of 0 and 1."""

    def way(fields: Fields) -> list[Kind] | None:
        given = fields.get(name)
        if not given:
            return None
        if not isinstance(given, list) or len(given) != number(fields, "num_hidden_layers"):
            raise ValueError(f"{name}: {shown(given)}; wanted a list with one for each layer")
        if wrong := [index for index, one in enumerate(given) if one not in (0, 1)]:
            raise ValueError(
                f"{name}: {shown(given[wrong[0]])} in layer {wrong[0]}: what it keeps for a token"
                " is not known"
            )
        return [at_1 if one else at_0 for one in given]

    return way


def _indices(
    name: str, inside: Kind, outside: Kind, first: int = 0
) -> Callable[[Fields], list[Kind] | None]:
    """A list of layers, of which the first has the number `first`."""

    def way(fields: Fields) -> list[Kind] | None:
        given = fields.get(name)
        if not isinstance(given, list):
            return None
        return _those(fields, lambda index: index + first in given, inside, outside)

    return way


def _those(
    fields: Fields, chosen: Callable[[int], bool], inside: Kind, outside: Kind
) -> list[Kind]:
    count = number(fields, "num_hidden_layers")
    return [inside if chosen(index) else outside for index in range(count)]


def _last_of_every(every: int, fields: Fields, inside: Kind, outside: Kind) -> list[Kind]:
    return _those(fields, lambda index: (index + 1) % every == 0, inside, outside)


def _kimi(fields: Fields) -> list[Kind] | None:
    """Lists in `linear_attn_config`, which count from 1."""
    inside = fields.get("linear_attn_config")
    if not isinstance(inside, dict) or "full_attn_layers" not in inside:
        return None
    return _indices("full_attn_layers", "full", "state", 1)({**fields, **inside})


def _period(fields: Fields) -> list[Kind] | None:
    """Jamba's attn_layer_period, and every n-th layer of other names."""
    if "attn_layer_period" in fields:
        period, offset = number(fields, "attn_layer_period"), fields.get("attn_layer_offset", 0)
        return _those(fields, lambda index: index % period == offset, "full", "state")
    name = next(
        (one for one in ("full_attention_interval", "layer_group_size") if one in fields), ""
    )
    return _last_of_every(number(fields, name), fields, "full", "state") if name else None


def _blocks(fields: Fields) -> list[Kind] | None:
    """Nemotron-NAS: of each block, whether it has attention."""
    blocks = fields.get("block_configs")
    if not isinstance(blocks, list):
        return None
    found: list[Kind] = []
    for index, block in enumerate(blocks):
        said = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(said, dict):
            raise ValueError(f"block_configs: nothing is said of attention in layer {index}")
        found.append("none" if said.get("no_op") or said.get("replace_with_linear") else "full")
    return found


def _chunks(fields: Fields) -> list[Kind] | None:
    """Llama 4: layers with rotated positions attend in chunks, by default three of four."""
    if not fields.get("attention_chunk_size") or "no_rope_layers" not in fields:
        return None
    if fields["no_rope_layers"]:
        return _numbered("no_rope_layers", "full", "chunked")(fields)
    return _last_of_every(number(fields, "no_rope_layer_interval", 4), fields, "full", "chunked")


def _windows(fields: Fields) -> list[Kind] | None:
    """Which layers have the window."""
    window = fields.get("sliding_window") and fields.get("use_sliding_window", True)
    pattern = fields.get("sliding_window_pattern")
    if "global_attn_every_n_layers" in fields:
        every = number(fields, "global_attn_every_n_layers")
        return _those(fields, lambda index: index % every == 0, "full", "sliding")
    if isinstance(spelled := fields.get("attention_types"), list):  # GPT-Neo: [[[...], repeats]]
        words = [word for some, times in spelled for word in some * times]
        return _of_words("attention_types", words)
    if not window:
        return None
    if isinstance(pattern, str) and pattern:  # EXAONE: LLLG
        return _those(fields, lambda index: pattern[index % len(pattern)] == "G", "full", "sliding")
    if isinstance(pattern, int) and pattern > 0:
        return _last_of_every(pattern, fields, "full", "sliding")
    first = fields.get("max_window_layers", 0)
    return _those(fields, lambda index: index < first, "full", "sliding") if first else None


def _parallel(fields: Fields) -> list[Kind] | None:
    """Falcon-H1: attention and Mamba beside one another in every layer."""
    return _those(fields, lambda _: True, "hybrid", "full") if "mamba_d_ssm" in fields else None


WAYS: Collection[Callable[[Fields], list[Kind] | None]] = (
    _listed,
    _pattern,
    _numbered("attn_type_list", "state", "full"),
    _numbered("hybrid_layer_pattern", "full", "sliding"),
    _numbered("sparse_attention_freq", "full", "indexed"),
    _kimi,
    _indices("attn_layer_indices", "full", "state"),
    _indices("full_attn_idxs", "full", "state"),
    _indices("hybrid_layer_ids", "hybrid", "state"),
    _indices("cross_attention_layers", "cross", "full"),
    _period,
    _blocks,
    _chunks,
    _windows,
    _parallel,
)
"""Each reads one way to say it; the first that is used counts."""
