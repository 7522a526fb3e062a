"""The sections of a report: every module of this folder, except those that begin with `_`."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

import pandas as pd

from ..data.run_meta import Meta, about
from ..elements import Block
from ..subjects import Teller


class Section(Protocol):
    """`ORDER`: its place on the page. `NEEDS`: columns without which it is not shown.

    Optional `ABOUT`: of "cases" (the default; includes walls and studies), "kernels" and "court".
    Runs without any have no such section. Optional `ALL_COPIES`: it gets the further copies of a
    case (`--replicate`) too.
    """

    __name__: str
    TITLE: str
    ORDER: int
    NEEDS: tuple[str, ...]

    def render(self, frame: pd.DataFrame, meta: Meta) -> Iterator[Block]: ...


def name_of(section: Section | Teller) -> str:
    return section.__name__.rpartition(".")[2]


def sections() -> list[Section]:
    names = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
    found = [cast(Section, import_module(f"{__name__}.{name}")) for name in names]
    return sorted(found, key=lambda section: (section.ORDER, section.__name__))


def sections_of(meta: Meta) -> list[Section]:
    """The sections about something that these runs have."""
    present = about(meta)
    return [one for one in sections() if present & set(getattr(one, "ABOUT", ("cases",)))]
