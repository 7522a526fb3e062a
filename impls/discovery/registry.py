"""Which backends there are. Files are read, not imported: listing works without torch and without
any optional package.

A backend comes from one of four places, and is imported only by `load`:
1. a file of this folder;
2. a file of a folder named in the environment variable ATTNBENCH_BACKENDS (folders joined by os.pathsep), for private backends;
3. an installed package's entry point (installed.py);
4. a module that the user names, as `attribute@module` (imported.py); such a backend is in no list.
"""

import os
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .aliases import ALIASES, real_name
from .imported import attribute_of
from .installed import NAME, installed, package_of, points
from .source import OURS, BadBackend, Source, read

if TYPE_CHECKING:
    from ..backend import Backend

FOLDERS_VARIABLE = "ATTNBENCH_BACKENDS"


def names() -> tuple[str, ...]:
    """All backends in alphabetical order, variants as file:variant, whether or not they can run
    here.
    """
    return tuple(
        sorted(name for file_name, source in sources().items() for name in source.names(file_name))
    )


def needs(name: str) -> tuple[str, ...]:
    """The packages that the backend imports beside torch."""
    return find(name).needs


def exactness(name: str) -> str:
    """Whether the backend computes attention "exact" or "approximate", or something "other"."""
    return find(name).exactness


def missing(name: str) -> str | None:
    """Why the backend cannot be imported here, in words; None when all it needs is installed."""
    source = find(name)
    absent = [package for package in source.needs if find_spec(package.partition(".")[0]) is None]
    if source.broken or not absent:
        return source.broken or None
    verb = "is" if len(absent) == 1 else "are"
    return f"needs {', '.join(absent)}, which {verb} not installed: pip install {' '.join(absent)}"


def from_outside(name: str) -> str | None:
    """Where a backend of somebody else's comes from, in words: its code is run only in a worker.
    None for a file of ours or the user's.
    """
    origin = find(name).origin
    if isinstance(origin, EntryPoint):
        return package_of(origin)
    return None if isinstance(origin, Path) else f"the module {origin.module}"


def load(name: str) -> "Backend":
    """Import the backend's file and bind its variant. ValueError where there is no such backend;
    whatever its file raises.
    """
    source = find(name)
    if source.broken:
        raise ImportError(source.broken)
    from .loaded import bind

    return bind(real_name(name), source.origin, weights_givers=weights_givers)


def weights_givers() -> tuple[str, ...]:
    """The backends that can return attention weights."""
    return tuple(
        sorted(
            name
            for file_name, source in sources().items()
            if source.gives_weights
            for name in source.names(file_name)
        )
    )


def find(name: str) -> Source:
    attribute = attribute_of(name)
    if attribute:
        return Source(origin=attribute)
    known, real = sources(), real_name(name)
    if real in known:
        return known[real]
    file_name, _, variant = real.partition(":")
    if file_name in known and variant in known[file_name].variants:
        return known[file_name]
    there_are = names()
    close = get_close_matches(name, there_are, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(f"no backend {name!r}; there are: {', '.join(there_are)}{hint}")


def sources() -> dict[str, Source]:
    """Every backend by its name without variant. BadBackend where two folders define the same name.

    A package's backend takes no name away: one whose name is taken is left out (see `ignored`).
    """
    files = _files()
    return {
        **{name: source for name, source in installed().items() if name not in _taken(files)},
        **files,
    }


def ignored() -> tuple[str, ...]:
    """What packages offer and cannot be used, because of its name: a sentence each."""
    taken = _taken(_files())
    reasons = {point: "its name is taken" for point in points() if point.name in taken}
    reasons |= {
        point: "a name has letters, digits, and . _ - within"
        for point in points()
        if not NAME.fullmatch(point.name)
    }
    return tuple(
        f"{point.name!r} of {package_of(point)} is left out: {reason}"
        for point, reason in reasons.items()
    )


def _taken(files: dict[str, Source]) -> set[str]:
    return {
        *ALIASES,
        *(name for file_name, source in files.items() for name in source.names(file_name)),
    }


def _files() -> dict[str, Source]:
    found: dict[str, Source] = {}
    for folder in (OURS, *_extra_folders()):
        for path in sorted(folder.glob("[!_]*.py")):
            source = _of_file(path)
            if source is None:
                continue
            if path.stem in ALIASES:
                raise BadBackend(
                    f"{path}: {path.stem} is another name of {ALIASES[path.stem]}; rename the file"
                )
            if path.stem in found:
                raise BadBackend(
                    f"backend {path.stem!r} is defined twice, by {found[path.stem].origin} and"
                    f" {path}; rename one"
                )
            found[path.stem] = source
    return found


def _extra_folders() -> list[Path]:
    folders = [
        Path(entry) for entry in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep) if entry
    ]
    for folder in folders:
        if not folder.is_dir():
            raise BadBackend(f"{FOLDERS_VARIABLE} names {folder}, which is not a folder")
    return folders


def _of_file(path: Path) -> Source | None:
    """None where it is no backend."""
    said = read(path)
    if "prepare" not in said.functions:
        return None
    return Source(
        origin=path,
        needs=said.needs,
        variants=said.variants,
        gives_weights="attention_weights" in said.functions,
        exactness=said.exactness,
    )
