"""Which backends exist, and where.

A backend comes from one of four places:
1. a file in impls/;
2. a file in a folder listed in the environment variable ATTNBENCH_BACKENDS (separated by
   os.pathsep), for private backends;
3. an entry point of an installed package in the group `attnbench.backends`. Its name is the
   backend's name; its value is a module that defines `prepare`, or `module:attribute`, which may
   also be a plain callable;
4. a module named by the user, as `attribute@module` (names.py). Such a backend is not listed.

Nothing here imports a backend (loading.py does): files are read, so listing works without torch and
without optional packages.
"""

import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from .names import ALIASES, Attribute, attribute_from_name, real_name
from .source import NOTHING, BadBackend, Declared, declared

BUILTIN_FOLDER = Path(__file__).parent.parent
FOLDERS_VARIABLE = "ATTNBENCH_BACKENDS"
GROUP = "attnbench.backends"
ENTRY_POINT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_.-]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a backend is defined and what its file declares; `broken` says why it is unusable."""

    origin: Path | EntryPoint | Attribute
    declared: Declared = NOTHING
    broken: str = ""

    def names(self, name: str) -> tuple[str, ...]:
        """The backends of a file with this name."""
        return (name, *(f"{name}:{variant}" for variant in self.declared.variants))


def names() -> tuple[str, ...]:
    """All backends in alphabetical order, variants as file:variant, runnable here or not."""
    return tuple(
        sorted(name for file_name, source in sources().items() for name in source.names(file_name))
    )


def needs(name: str) -> tuple[str, ...]:
    """The packages that the backend imports besides torch."""
    return find(name).declared.needs


def exactness(name: str) -> str:
    """One of source.EXACTNESS."""
    return find(name).declared.exactness


def missing(name: str) -> str | None:
    """Why the backend cannot be imported here; None if everything it needs is installed."""
    source = find(name)
    if source.broken:
        return source.broken
    absent = [
        package for package in source.declared.needs if find_spec(package.partition(".")[0]) is None
    ]
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    return f"needs {', '.join(absent)}, which {verb} not installed: pip install {' '.join(absent)}"


def third_party(name: str) -> str | None:
    """The package or module that a third-party backend comes from; None for a file of ours or of
    the user's folders. Third-party code runs in workers only.
    """
    origin = find(name).origin
    if isinstance(origin, EntryPoint):
        return _package_of(origin)
    return None if isinstance(origin, Path) else f"the module {origin.module}"


def is_ours(name: str) -> bool:
    """Whether the backend is a file of this package, and not the user's or another package's."""
    origin = find(name).origin
    return isinstance(origin, Path) and origin.parent == BUILTIN_FOLDER


def with_attention_weights() -> tuple[str, ...]:
    """The backends that can return attention weights."""
    return tuple(
        sorted(
            name
            for file_name, source in sources().items()
            if "attention_weights" in source.declared.functions
            for name in source.names(file_name)
        )
    )


def find(name: str) -> Source:
    """Raises ValueError if there is no such backend."""
    attribute = attribute_from_name(name)
    if attribute:
        return Source(origin=attribute)
    known, real = sources(), real_name(name)
    if real in known:
        return known[real]
    file_name, _, variant = real.partition(":")
    if file_name in known and variant in known[file_name].declared.variants:
        return known[file_name]
    all_names = names()
    close = get_close_matches(name, all_names, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(f"no backend {name!r}; there are: {', '.join(all_names)}{hint}")


def sources() -> dict[str, Source]:
    """Every backend by its name without variant.

    Raises BadBackend if two folders define the same name. A package's backend with a taken name is
    left out (see `ignored`).
    """
    files = _files()
    taken = _taken(files)
    packages = {name: source for name, source in _packages().items() if name not in taken}
    return packages | files


def ignored() -> tuple[str, ...]:
    """One sentence for each entry point that cannot be used because of its name."""
    taken = _taken(_files())
    reasons = {
        point: "its name is taken" for point in package_entry_points() if point.name in taken
    }
    reasons |= {
        point: "a name has letters, digits, and . _ - within"
        for point in package_entry_points()
        if not ENTRY_POINT_NAME.fullmatch(point.name)
    }
    return tuple(
        f"{point.name!r} of {_package_of(point)} is left out: {reason}"
        for point, reason in reasons.items()
    )


def _taken(files: dict[str, Source]) -> set[str]:
    """The names that a package's backend cannot have."""
    return {*ALIASES, *(name for stem, source in files.items() for name in source.names(stem))}


def _files() -> dict[str, Source]:
    """The backends of our folder and of the user's folders."""
    found: dict[str, Source] = {}
    for folder in (BUILTIN_FOLDER, *_user_folders()):
        for path in sorted(folder.glob("[!_]*.py")):
            in_file, name = declared(path), path.stem
            if "prepare" not in in_file.functions:
                continue
            if name in ALIASES:
                raise BadBackend(f"{path}: {name} is an alias of {ALIASES[name]}; rename the file")
            if name in found:
                raise BadBackend(
                    f"backend {name!r} is defined twice, by {found[name].origin} and {path};"
                    " rename one"
                )
            found[name] = Source(origin=path, declared=in_file)
    return found


def _user_folders() -> list[Path]:
    entries = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    folders = [Path(entry) for entry in entries if entry]
    for folder in folders:
        if not folder.is_dir():
            raise BadBackend(f"{FOLDERS_VARIABLE} names {folder}, which is not a folder")
    return folders


@cache
def package_entry_points() -> tuple[EntryPoint, ...]:
    """Looked up once per process: it reads the metadata of every installed package."""
    return tuple(entry_points(group=GROUP))


def _packages() -> dict[str, Source]:
    """The backends of installed packages. A broken one is marked and does not stop the others."""
    found: dict[str, Source] = {}
    for point in package_entry_points():
        first = found.get(point.name)
        if first is not None:
            assert isinstance(first.origin, EntryPoint)
            both = f"{_package_of(first.origin)} and {_package_of(point)}"
            broken = f"defined twice, by {both}; uninstall one"
            found[point.name] = Source(origin=first.origin, broken=broken)
        elif ENTRY_POINT_NAME.fullmatch(point.name):
            found[point.name] = _package_source(point)
    return found


def _package_source(point: EntryPoint) -> Source:
    path = _module_file(point.module)
    try:
        in_file = declared(path) if path else NOTHING
    except (OSError, ValueError) as error:
        return Source(origin=point, broken=f"{_package_of(point)} cannot be read: {error}")
    if point.attr:  # one object of the file: only the imports are certainly its own
        in_file = Declared(needs=in_file.needs)
    return Source(origin=point, declared=in_file)


def _package_of(point: EntryPoint) -> str:
    """The package and its version, as text."""
    dist = point.dist
    return f"the package {dist.name} {dist.version}" if dist else "an installed package"


def _module_file(module: str) -> Path | None:
    """The source file of an installed module.

    Unlike importlib.util.find_spec this imports no parent package.
    """
    parts = module.split(".")
    folders: list[str] | None = None
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
