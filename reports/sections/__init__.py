"""The sections of a report: every module of this folder, except those that begin with `_`."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

import pandas as pd

from ..data.run_meta import Meta
from ..elements import Block


class Section(Protocol):
    """`ORDER`: its place on the page. `NEEDS`: columns without which it is not shown.

    Optional `ABOUT`: "cases" (the default; includes walls and studies), "kernels" or both. Runs
    without any of them have no such section. Optional `ALL_COPIES`: it gets the further copies of a
    case (`--replicate`) too.
    """

    __name__: str
    TITLE: str
    ORDER: int
    NEEDS: tuple[str, ...]

    def render(self, frame: pd.DataFrame, meta: Meta) -> Iterator[Block]: ...


def name_of(section: Section) -> str:
    return section.__name__.rpartition(".")[2]


def sections() -> list[Section]:
    names = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
    found = [cast(Section, import_module(f"{__name__}.{name}")) for name in names]
    return sorted(found, key=lambda section: (section.ORDER, section.__name__))


def sections_of(meta: Meta) -> list[Section]:
    """The sections about something that these runs have."""
    present = {"kernels"} if any(run.get("kernels") for run in meta.values()) else {"cases"}
    if any(run.get(plan) for run in meta.values() for plan in ("cases", "walls", "studies")):
        present.add("cases")
    return [one for one in sections() if present & set(getattr(one, "ABOUT", ("cases",)))]
