"""Textbook claims about attention, each with its verdict from the rows of a run.

A file of this folder that defines CLAIMS, statements by name (statement.py), adds them to the
ledger. Its functions take rows or findings of studies, and give a Part for each backend, task or
whatever else a claim is tested on (claim_verdict.py); no part means that the run does not test it.
"""

import re
from importlib import import_module
from pkgutil import iter_modules

from .statement import Statement

NAME = re.compile(r"([A-Z])(\d+)([a-z]?)")


def statements() -> dict[str, Statement]:
    """Those of all files, in the order C1, C3a, C3b, C16, Q1."""
    found: dict[tuple[str, int, str], tuple[str, Statement]] = {}
    for file in iter_modules(__path__):
        module = import_module(f"{__name__}.{file.name}")
        for name, statement in getattr(module, "CLAIMS", {}).items():
            known = NAME.fullmatch(name)
            place = (known[1], int(known[2]), known[3]) if known else None
            if place is None or place in found:
                wrong = "is in another file too" if place else "is not a name such as C3a"
                raise ValueError(f"{module.__file__}: the claim {name} {wrong}")
            found[place] = (name, statement)
    return {name: statement for _, (name, statement) in sorted(found.items())}
