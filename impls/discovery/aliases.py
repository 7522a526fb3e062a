"""Other names that users know backends by: those of Hugging Face's attn_implementation, and of
diffusers' attention backends.
"""

ALIASES = {
    "eager": "fused",
    "flex_attention": "flex",
    "flash_attention_2": "hf:flash_attention_2",
    "native": "sdpa",
    "_native_math": "sdpa:math",
    "_native_flash": "sdpa:flash",
    "_native_efficient": "sdpa:efficient",
    "_native_cudnn": "sdpa:cudnn",
}


def real_name(name: str) -> str:
    """The name that rows carry."""
    return ALIASES.get(name, name)


def real_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Each by its real name. One that is there already, under another name, is left out; one that
    is repeated as it is stays.
    """
    kept: dict[str, list[str]] = {}
    for name in names:
        same = kept.setdefault(real_name(name), [])
        if not same or name in same:
            same.append(name)
    return tuple(real for real, same in kept.items() for _ in same)
