"""Textbook claims about attention, each with its verdict from the rows of a run.

The claims of a file of this folder, or of a file of a pack whose name ends in `statements`, are its
Statements (statement.py): the words of the claim, and the test that gives the evidence.
"""

import re
from importlib import import_module
from pkgutil import iter_modules

from ... import __name__ as reports
from ... import __path__ as folders
from .statement import Statement

NAME = re.compile(r"([A-Z])(\d+)([a-z]?)")


def statements() -> dict[str, Statement]:
    """Those of all files, in the order C1, C3a, C3b, C16, Q1."""
    found: dict[tuple[str, int, str], Statement] = {}
    for file in _files():
        module = import_module(file)
        for one in vars(module).values():
            if not isinstance(one, Statement):
                continue
            known = NAME.fullmatch(one.name)
            place = (known[1], int(known[2]), known[3]) if known else None
            if place is None or place in found:
                wrong = "is in another file too" if place else "is not a name such as C3a"
                raise ValueError(f"{module.__file__}: the claim {one.name} {wrong}")
            found[place] = one
    return {one.name: one for _, one in sorted(found.items())}


def _files() -> list[str]:
    packs = (one.name for one in iter_modules(folders) if one.ispkg)
    theirs = (
        f"{reports}.{pack}.{file.name}"
        for pack in packs
        for file in iter_modules([f"{folder}/{pack}" for folder in folders])
        if file.name.endswith("statements")
    )
    own = (f"{__name__}.{file.name}" for file in iter_modules(__path__))
    return [*own, *theirs]
