"""Backends of installed packages: entry points of the group `attnbench.backends`, found without
importing them.

An entry point's name is the backend's name, its value a module that defines `prepare`, or
`module:attribute`, which may be a plain callable too. What the module says of itself is read from
its file where that can be found.
"""

import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from .source import Said, Source, read

GROUP = "attnbench.backends"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_.-]+)?")


@cache
def points() -> tuple[EntryPoint, ...]:
    """Looked up once per process: it means reading the metadata of every installed package."""
    return tuple(entry_points(group=GROUP))


def installed() -> dict[str, Source]:
    """By name. Whatever is wrong with one of them is said of it, and stops no other."""
    found: dict[str, Source] = {}
    for point in points():
        first = found.get(point.name)
        if first is not None:
            assert isinstance(first.origin, EntryPoint)
            both = (
                f"defined twice, by {package_of(first.origin)} and {package_of(point)};"
                " uninstall one"
            )
            found[point.name] = Source(origin=first.origin, broken=both)
        elif NAME.fullmatch(point.name):
            found[point.name] = _source(point)
    return found


def package_of(point: EntryPoint) -> str:
    """The package and its version, in words."""
    dist = point.dist
    return f"the package {dist.name} {dist.version}" if dist else "an installed package"


def _source(point: EntryPoint) -> Source:
    path = file_of(point.module)
    try:
        said = read(path) if path else Said()
    except (OSError, ValueError) as error:
        return Source(origin=point, broken=f"{package_of(point)} cannot be read: {error}")
    if point.attr:  # one object of the file: what else stands there is not its own
        return Source(origin=point, needs=said.needs)
    gives_weights = "attention_weights" in said.functions
    return Source(
        origin=point,
        needs=said.needs,
        variants=said.variants,
        gives_weights=gives_weights,
        exactness=said.exactness,
    )


def file_of(module: str) -> Path | None:
    """The source file of an installed module. Unlike importlib.util.find_spec this imports no
    parent package.
    """
    names = module.split(".")
    folders: list[str] | None = None
    for depth in range(1, len(names) + 1):
        spec = PathFinder.find_spec(".".join(names[:depth]), folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
