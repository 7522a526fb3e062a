"""The sections of a report: every module of this folder whose name does not begin with an
underscore.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

import pandas as pd

from ..data.run_meta import Meta
from ..elements import Block


class Section(Protocol):
    """`NEEDS` are columns without which the section has nothing to say; `ORDER` is its place on the
    page.

    Optional `ABOUT`: what it speaks of, "cases" (with walls and studies, as most do), "kernels" or
    both; it is left out where the runs have none of that.
    """

    __name__: str
    TITLE: str
    ORDER: int
    NEEDS: tuple[str, ...]

    def render(self, frame: pd.DataFrame, meta: Meta) -> Iterator[Block]: ...


def sections() -> list[Section]:
    names = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
    found = [cast(Section, import_module(f"{__name__}.{name}")) for name in names]
    return sorted(found, key=lambda section: (section.ORDER, section.__name__))


def shown(meta: Meta) -> list[Section]:
    """Those that speak of something that the runs have."""
    held = {"kernels"} if any(run.get("kernels") for run in meta.values()) else {"cases"}
    if any(run.get(plan) for run in meta.values() for plan in ("cases", "walls", "studies")):
        held.add("cases")
    return [section for section in sections() if held & set(getattr(section, "ABOUT", ("cases",)))]
