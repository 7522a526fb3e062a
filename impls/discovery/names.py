"""Names of backends: aliases, and `attribute@module` for a user's own callable. Cheap to import."""

import re
from typing import NamedTuple

ALIASES = {
    # Hugging Face's attn_implementation: its functions, as a model calls them. Its "sdpa" is
    # "hf:sdpa" here, since bare "sdpa" is torch's.
    "eager": "hf:eager",
    "flex_attention": "hf:flex_attention",
    "flash_attention_2": "hf:flash_attention_2",
    # diffusers' attention backends
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
    """The real names, in order.

    Two names of one backend become one. A name that is repeated literally stays, so that the
    caller can report it.
    """
    given: dict[str, list[str]] = {}
    for name in names:
        same = given.setdefault(real_name(name), [])
        if not same or name in same:
            same.append(name)
    return tuple(real for real, same in given.items() for _ in same)


_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
_FLAG = re.compile(f"({_DOTTED}):({_DOTTED})")
_NAME = re.compile(f"({_DOTTED})@({_DOTTED})")


class Attribute(NamedTuple):
    """A user's callable or module-like object: `module:attribute` on the command line.

    In rows it is called `attribute@module`; no other backend has an @ in its name. A name alone
    imports nothing; registry.load does.
    """

    module: str
    attribute: str

    @property
    def name(self) -> str:
        """The backend's name."""
        return f"{self.attribute}@{self.module}"


def attribute_from_flag(text: str) -> Attribute | None:
    """Parse `module:attribute`; None if the text has another form."""
    match = _FLAG.fullmatch(text)
    return Attribute(match[1], match[2]) if match else None


def attribute_from_name(name: str) -> Attribute | None:
    """Parse `attribute@module`; None for the name of any other backend."""
    match = _NAME.fullmatch(name)
    return Attribute(match[2], match[1]) if match else None
