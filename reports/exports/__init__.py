"""Runs as files for other programs: every module of this folder is a format.

Modules that begin with `_` are not; `pytest_benchmark.py` is the format pytest-benchmark.
docs/cookbook.md, Exports, describes the formats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from ...harness.files.errors import BadInput, EnvironmentUnmet


class NotExportable(BadInput):
    """One line: no such format, or the runs cannot be written in it."""


class PackageMissing(EnvironmentUnmet, ImportError):
    """One line: which package is missing, and how to install it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The content to write; `notes`: what is not in it, and why."""

    content: str | bytes
    notes: tuple[str, ...] = ()


def names() -> list[str]:
    """All formats, without importing them."""
    return sorted(
        module.name.replace("_", "-")
        for module in iter_modules(__path__)
        if not module.name.startswith("_")
    )


def load(name: str) -> ModuleType:
    """The module of a format: `MEANING`, who reads it, and `export(runs) -> Exported`, which raises
    NotExportable and PackageMissing. Raises NotExportable.
    """
    if name not in names():
        raise NotExportable(f"no format {name!r}; there are: {', '.join(names())}")
    return import_module(f"{__name__}.{name.replace('-', '_')}")


def export(
    run: str | Path | Sequence[str | Path],
    name: str,
    *,
    salvage: bool = False,
    hide: bool = False,
) -> Exported:
    """One run or several in a format. `salvage`: without rows that cannot be read. `hide`: without
    what tells of the machine's owner.

    Raises BadRun, NotExportable and PackageMissing.
    """
    from ..data.anonymous import anonymous
    from ..data.run_meta import read_runs

    form = load(name)
    runs = read_runs([run] if isinstance(run, str | Path) else run, salvage=salvage)
    runs = anonymous(runs) if hide else runs
    done: Exported = form.export(runs)
    return Exported(
        content=done.content,
        notes=(*(f"{one.meta['run']}: {note}" for one in runs for note in one.notes), *done.notes),
    )
