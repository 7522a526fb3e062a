"""Which backends exist, and where.

A backend comes from one of four places:
1. a file in impls/;
2. a file in a folder listed in the environment variable ATTNBENCH_BACKENDS (separated by
   os.pathsep), for private backends: it defines `prepare`, or only a plain `attend`;
3. an entry point of an installed package in the group `attnbench.backends`. Its name is the
   backend's name; its value is a module that defines `prepare`, or `module:attribute`, which may
   also be a plain callable;
4. a module named by the user, as `attribute@module` (names.py). Such a backend is not listed.

Nothing here imports a backend (loading.py does): files are read, so listing works without torch and
without optional packages.
"""

import os
import re
import shlex
from dataclasses import dataclass, replace
from difflib import get_close_matches
from errno import ENOENT, ENOTDIR
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..problem import Problem
from .names import (
    ALIASES,
    DOTTED,
    Attribute,
    Value,
    attribute_from_name,
    given_parameters,
    parts_of,
    real_name,
)
from .source import NOTHING, TYPES, BadBackend, Declared, declared

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

BUILTIN_FOLDER = Path(__file__).parent.parent
FOLDERS_VARIABLE = "ATTNBENCH_BACKENDS"
GROUP = "attnbench.backends"
MALFORMED = (OSError, ValueError, TypeError, LookupError, AttributeError)
"""What importlib.metadata raises for files of a package that are not as they must be."""
ENTRY_POINT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_.-]+)?")
ENTRY_POINT_VALUE = re.compile(f"{DOTTED}(:{DOTTED})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a backend is defined and what its file declares. `package`: that it comes from, with
    its version; "" for a file and for a user's module. `broken` says why it is unusable.
    """

    origin: Path | Attribute
    declared: Declared = NOTHING
    package: str = ""
    broken: str = ""

    def names(self, name: str) -> tuple[str, ...]:
        """The backends of a file with this name."""
        return (name, *(f"{name}:{variant}" for variant in self.declared.variants))


def names() -> tuple[str, ...]:
    """All backends in alphabetical order, variants as file:variant, runnable here or not."""
    return tuple(
        sorted(name for file_name, source in sources().items() for name in source.names(file_name))
    )


def exactness(name: str) -> str:
    """One of source.EXACTNESS."""
    return find(name).declared.exactness


def input_order(name: str, problem: Problem) -> str:
    """How the tensors that the backend gets lie in memory, one of source.INPUT_ORDERS; they differ
    in scope "core" only (backend.make_inputs).
    """
    return find(name).declared.input_order if problem.scope == "core" else "heads"


def missing(name: str) -> str | None:
    """Why the backend cannot be imported here; None if everything it needs is installed."""
    source = find(name)
    if source.broken:
        return source.broken
    absent = [package for package in source.declared.needs if not _is_installed(package)]
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    install = shlex.join(["pip", "install", *absent])
    return f"needs {', '.join(absent)}, which {verb} not installed: {install}"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package.partition(".")[0]) is not None
    except ValueError:  # no name of a module
        return False


def third_party(name: str) -> str | None:
    """The package or module that a third-party backend comes from; None for a file of ours or of
    the user's folders. Third-party code runs in workers only.
    """
    source = find(name)
    if isinstance(source.origin, Path):
        return None
    return source.package or f"the module {source.origin.module}"


def is_ours(name: str) -> bool:
    """Whether the backend is a file of this package, and not the user's or another package's."""
    origin = find(name).origin
    return isinstance(origin, Path) and origin.parent == BUILTIN_FOLDER


def computing(word: str) -> tuple[str, ...]:
    """The files of backends that have this in COMPUTES, though maybe not in each variant."""
    return tuple(sorted(name for name, one in sources().items() if word in one.declared.computes))


def find(name: str) -> Source:
    """Raises ValueError if there is no such backend."""
    attribute = attribute_from_name(name)
    if attribute:
        return Source(origin=attribute)
    known, parts = sources(), parts_of(real_name(name))
    found = known.get(parts.bare)  # the name of a package's backend may have a colon
    of_file = known.get(parts.file)
    if found is None and of_file and parts.variant in of_file.declared.variants:
        found = of_file
    if found is not None:
        parameter_values(name, found.declared)
        return found
    all_names = names()
    if left := next((one for one in ignored() if one.startswith(f"'{parts.file}.py' ")), ""):
        raise ValueError(f"no backend {name!r}; there are: {', '.join(all_names)}; {left}")
    of_kernel = [one for one in all_names if one.endswith(f":{name}")]
    close = of_kernel or get_close_matches(name, all_names, n=1)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(all_names)}"
    raise ValueError(f"no backend {name!r}; {hint}")


def parameter_values(name: str, of: Declared) -> dict[str, Value | None]:
    """The value of each parameter of a backend, None for those that its name does not give.

    Raises ValueError if it gives others, or a value of another type.
    """
    given, kinds = given_parameters(name) if "[" in name else {}, dict(of.parameters)
    if unknown := [one for one in given if one not in kinds]:
        there = ", ".join(f"{one} ({kind})" for one, kind in kinds.items()) or "none"
        raise ValueError(f"backend {name!r}: no parameter {unknown[0]!r}; there are: {there}")
    values: dict[str, Value | None] = dict.fromkeys(kinds)
    for one, value in given.items():
        wanted = kinds[one]
        allowed = ("int", "float") if wanted == "float" else (wanted,)
        if wanted != "str" and type(value).__name__ not in allowed:
            raise ValueError(f"backend {name!r}: {one} is {value!r}; wanted {TYPES[wanted]}")
        values[one] = str(value) if wanted == "str" else value
    return values


def unknown(name: str) -> str:
    """Why there is no such backend, in one line; "" if there is."""
    try:
        find(name)
    except ValueError as error:
        return str(error)
    return ""


def sources() -> dict[str, Source]:
    """Every backend by its name without variant.

    Raises BadBackend if two folders define the same name. A package's backend with a taken name is
    left out (see `ignored`).
    """
    return _found_and_ignored()[0]


def ignored() -> tuple[str, ...]:
    """One sentence for each file and entry point that cannot be used because of its name, and for
    each package whose entry points cannot be read.
    """
    return _found_and_ignored()[1]


def _found_and_ignored() -> tuple[dict[str, Source], tuple[str, ...]]:
    """First the files, ours before the user's; then the packages, which cannot take their names."""
    found: dict[str, Source] = {}
    left_out: dict[str, str] = {}  # what: why
    for path in (*sorted(BUILTIN_FOLDER.glob("[!_]*.py")), *_user_files()):
        source, name = _file_source(path), path.stem
        what = f"{path.name!r} in {path.parent}"
        if source is None:
            if path.parent != BUILTIN_FOLDER:
                left_out[what] = (
                    "defines neither prepare nor attend; the name of a helper begins with _"
                )
        elif not _is_name(name) or (source.broken and name in found):
            left_out[what] = "wanted another name"
        elif name in ALIASES:
            raise BadBackend(f"{path}: {name} is an alias of {ALIASES[name]}; rename the file")
        elif name in found:
            raise BadBackend(
                f"backend {name!r} is defined twice, by {found[name].origin} and {path}; rename one"
            )
        else:
            found[name] = source
    taken = {*ALIASES, *(name for stem, source in found.items() for name in source.names(stem))}
    points, unreadable = entry_points()
    for point in points:
        source, what = _package_source(point), f"{point.name!r} of {_package_of(point.dist)}"
        if not ENTRY_POINT_NAME.fullmatch(point.name):
            left_out[what] = "a name has letters, digits, and . _ - within"
        elif point.name in taken:
            left_out[what] = "its name is taken"
        elif first := found.get(point.name):
            both = f"{first.package} and {source.package}"
            found[point.name] = replace(source, broken=f"defined twice, by {both}; uninstall one")
        else:
            found[point.name] = source
    left_out |= dict.fromkeys(unreadable, "its entry points cannot be read")
    return found, tuple(f"{what} is left out: {reason}" for what, reason in left_out.items())


def _file_source(path: Path) -> Source | None:
    """None if it is no backend. What cannot be read is a broken one, and does not stop others."""
    try:
        in_file = declared(path)
    except BadBackend as error:
        return Source(origin=path, broken=str(error))
    if "prepare" in in_file.functions:
        return Source(origin=path, declared=in_file)
    if "attend" in in_file.functions:  # a plain function: all that its file declares is its imports
        plain = Declared(needs=in_file.needs, about=in_file.about)
        return Source(origin=path, declared=plain)
    return None


def _is_name(stem: str) -> bool:
    """Not of a hidden file, such as the lock `.#mine.py` of an editor."""
    return stem.isprintable() and not stem.startswith(".")


def _user_files() -> list[Path]:
    """In the order of the folders. Raises BadBackend if one of them cannot be listed."""
    found: list[Path] = []
    entries = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    for folder in dict.fromkeys(Path(entry) for entry in entries if entry):
        try:
            found += sorted(path for path in folder.iterdir() if path.match("[!_]*.py"))
        except OSError as error:
            is_none = error.errno in (ENOENT, ENOTDIR)
            reason = "is not a folder" if is_none else f"no one can list ({error})"
            raise BadBackend(f"{FOLDERS_VARIABLE} names {folder}, which {reason}") from None
    return found


@cache
def entry_points() -> "tuple[tuple[EntryPoint, ...], tuple[str, ...]]":
    """Those of our group, and the packages whose entry points cannot be read. Looked up once per
    process: it reads the metadata of every installed package.
    """
    from importlib import metadata  # slow, and help does not need it

    try:
        return tuple(metadata.entry_points(group=GROUP)), ()
    except MALFORMED:
        points: dict[EntryPoint, None] = {}
        unreadable = []
        for dist in metadata.distributions():
            try:
                points |= dict.fromkeys(dist.entry_points.select(group=GROUP))
            except MALFORMED:
                unreadable.append(_package_of(dist))
        return tuple(points), tuple(unreadable)


def _package_source(point: "EntryPoint") -> Source:
    module, _, attribute = point.value.partition(":")
    source = Source(origin=Attribute(module, attribute), package=_package_of(point.dist))
    if not ENTRY_POINT_VALUE.fullmatch(point.value):
        wanted = "wanted a module, or module:attribute"
        return replace(source, broken=f"{source.package} names {point.value!r}; {wanted}")
    path = _module_file(module)
    try:
        in_file = declared(path) if path else NOTHING
    except (OSError, ValueError) as error:
        return replace(source, broken=f"{source.package} cannot be read: {error}")
    # of one object of the file, only the imports are certainly its own
    return replace(source, declared=Declared(needs=in_file.needs) if attribute else in_file)


def _package_of(dist: "Distribution | None") -> str:
    """The package and its version, as text."""
    try:
        return f"the package {dist.name} {dist.version}" if dist else "an installed package"
    except MALFORMED:
        return "an installed package"


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
