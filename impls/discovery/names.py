"""Names of backends: aliases, variants and parameters, and `attribute@module` for a user's own
callable. Cheap to import.
"""

import re
from itertools import product
from typing import NamedTuple

ALIASES = {
    # Hugging Face's attn_implementation: its functions, as a model calls them. Its "sdpa" is
    # "hf:sdpa" here, since bare "sdpa" is torch's.
    "eager": "hf:eager",
    "flex_attention": "hf:flex_attention",
    "flash_attention_2": "hf:flash_attention_2",
    "flash_attention_3": "hf:flash_attention_3",
    "flash_attention_4": "hf:flash_attention_4",
    # transformers 5.23 drops this prefix, but for eager
    "paged|eager": "hf:paged|eager",
    "paged|sdpa": "hf:sdpa",
    "paged|flash_attention_2": "hf:flash_attention_2",
    "paged|flash_attention_3": "hf:flash_attention_3",
    "paged|flash_attention_4": "hf:flash_attention_4",
    # diffusers' attention backends
    "native": "sdpa",
    "_native_math": "sdpa:math",
    "_native_flash": "sdpa:flash",
    "_native_efficient": "sdpa:efficient",
    "_native_cudnn": "sdpa:cudnn",
}


HUB_KERNEL = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w.-]+)?(:\w+)?", re.ASCII)
"""A kernel of Hugging Face's Hub: owner/name, with a revision and the name of a function."""
_OF_HUB = re.compile(r"hf:kernel\[repo=([^\[\]]*)\]")


def real_name(name: str) -> str:
    """The name that rows carry."""
    return f"hf:kernel[repo={name}]" if HUB_KERNEL.fullmatch(name) else ALIASES.get(name, name)


def downloaded(name: str) -> str:
    """The kernel of the Hub that a backend downloads and runs; "" for any other backend."""
    match = _OF_HUB.fullmatch(real_name(name))
    return match[1] if match else ""


class Parts(NamedTuple):
    """Of `linformer:pool[rank=64]`: file, variant, and each parameter's value as text."""

    file: str
    variant: str
    parameters: dict[str, str]

    @property
    def bare(self) -> str:
        """The name without parameters."""
        return f"{self.file}:{self.variant}" if self.variant else self.file


_WITH_PARAMETERS = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=([^,=\[\]]+)")
Value = int | float | bool | str


def parts_of(name: str) -> Parts:
    """Raises ValueError if what stands in brackets is not name=value."""
    match = _WITH_PARAMETERS.fullmatch(name)
    if match is None and ("[" in name or "]" in name):
        raise ValueError(f"backend {name!r}: wanted a name as linformer[rank=64]")
    bare, inside = match.groups() if match else (name, "")
    given: dict[str, str] = {}
    for one in inside.split(",") if match else ():
        pair = _PARAMETER.fullmatch(one.strip())
        if pair is None or pair[1] in given:
            raise ValueError(
                f"backend {name!r}: found {one.strip()!r}; wanted each name=value once"
            )
        given[pair[1]] = pair[2].strip()
    file, _, variant = bare.partition(":")
    return Parts(file, variant, given)


def given_parameters(name: str) -> dict[str, Value]:
    """The parameters that the name of a backend gives; {} for most."""
    return {one: plain_value(text) for one, text in parts_of(name).parameters.items()}


def plain_value(text: str) -> Value:
    """A number, yes or no, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def each(name: str) -> tuple[str, ...]:
    """A name for each value: both of `linformer[rank=64,128]`, all four of `f[a=1,2,b=3,4]`."""
    match = _WITH_PARAMETERS.fullmatch(name)
    if match is None:
        return (name,)
    values: list[list[str]] = []
    for one in (part.strip() for part in match[2].split(",")):
        if "=" in one or not values:
            values.append([one])
        else:
            values[-1].append(f"{values[-1][0].partition('=')[0]}={one}")
    return tuple(f"{match[1]}[{','.join(some)}]" for some in product(*values))


def separated(text: str) -> list[str]:
    """The names of a list with commas or spaces between them, but for commas in brackets."""
    return [name for name in re.split(r"[,\s]+(?![^\[\]]*\])", text.strip()) if name]


def real_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The real names, in order, one for each value of a parameter.

    Two names of one backend become one. A name that is repeated literally stays, so that the
    caller can report it.
    """
    given: dict[str, list[str]] = {}
    for name in (one for some in names for one in each(some)):
        same = given.setdefault(real_name(name), [])
        if not same or name in same:
            same.append(name)
    return tuple(real for real, same in given.items() for _ in same)


DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
_FLAG = re.compile(f"({DOTTED}):({DOTTED})")
_NAME = re.compile(f"({DOTTED})@({DOTTED})")


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


def typed_names(text: str) -> tuple[str, ...]:
    """The names in rows that a user may mean by it: `sdpa:flash`, and `attribute@module`."""
    own = attribute_from_flag(text)
    return (real_name(text), *([own.name] if own else []))


def attribute_from_name(name: str) -> Attribute | None:
    """Parse `attribute@module`; None for the name of any other backend."""
    match = _NAME.fullmatch(name)
    return Attribute(match[2], match[1]) if match else None
