"""A user's own callable as a backend: `module:attribute` on the command line, `attribute@module` as
the name that rows carry.

No other backend has an @ in its name, so the two are never taken for each other. A name alone
imports nothing; `load` does.
"""

import re
from typing import NamedTuple

_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
_GIVEN = re.compile(f"({_DOTTED}):({_DOTTED})")
_NAME = re.compile(f"({_DOTTED})@({_DOTTED})")


class Attribute(NamedTuple):
    """What is to be imported."""

    module: str
    attribute: str

    @property
    def name(self) -> str:
        """The backend's name."""
        return f"{self.attribute}@{self.module}"


def given(text: str) -> Attribute | None:
    """What `module:attribute` names; None where the text is not of this form."""
    found = _GIVEN.fullmatch(text)
    return Attribute(found[1], found[2]) if found else None


def attribute_of(name: str) -> Attribute | None:
    """What the backend `attribute@module` is imported from; None for the name of any other
    backend.
    """
    found = _NAME.fullmatch(name)
    return Attribute(found[2], found[1]) if found else None
