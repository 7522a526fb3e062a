"""Tiny models of transformers, with random weights."""

from typing import Any

import torch

SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 50, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "llama": {
        "vocab_size": 50,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
    },
}


def tiny(family: str) -> Any:
    """Two layers of four heads; those of llama share keys and values by two."""
    import transformers

    torch.manual_seed(0)
    kinds = {"gpt2": transformers.GPT2LMHeadModel, "llama": transformers.LlamaForCausalLM}
    kind = kinds[family]
    tokens = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    return kind(kind.config_class(**SIZES[family], **tokens))
