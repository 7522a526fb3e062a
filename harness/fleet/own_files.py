"""Which files of the user's own backends devices elsewhere need; read, never imported, here."""

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path

from ...impls.discovery.registry import BUILTIN_FOLDER, FOLDERS_VARIABLE, find
from .remote import NodeWanted

PACKAGES = "_ray_pkg_"
"""How the folders begin into which Ray unpacks what it was given, one for each file or folder."""


def own_files(backends: Iterable[str], *, allow_import: bool) -> tuple[list[Path], list[Path]]:
    """The modules and the folders of ATTNBENCH_BACKENDS that these backends are in, and what their
    files import from PYTHONPATH and, with `allow_import`, from the current folder.

    Installed packages are not among them: every device has its own.
    """
    folders: dict[Path, None] = {}
    left: list[str] = []  # modules
    for name in backends:
        with suppress(ValueError):  # there is no such backend: others say so
            source = find(name)
            if not isinstance(source.origin, Path):
                left += [] if source.package else [source.origin.module.partition(".")[0]]
            elif source.origin.parent != BUILTIN_FOLDER:
                folders[source.origin.parent.resolve()] = None
    named = {*left}
    places = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    places += [str(Path.cwd())] if allow_import else []
    found: dict[str, Path | None] = {"attnbench": None}  # every device has the same
    left += [name for folder in folders for name in _imported(folder.glob("*.py"))]
    while left:
        if (name := left.pop()) not in found:
            found[name] = path = _place_of(name, places, is_named=name in named)
            left += [] if path is None else _imported(_files_of(path))
    return [path for path in found.values() if path is not None], list(folders)


def sent_folders(wanted: NodeWanted, packages: Sequence[Path]) -> NodeWanted:
    """As a device needs it, with the places that its folders of backends have there."""
    places = (package / name for name in wanted.folders for package in packages)
    there = dict.fromkeys(str(place) for place in places if place.is_dir())
    return replace(wanted, settings={**wanted.settings, FOLDERS_VARIABLE: os.pathsep.join(there)})


def _place_of(name: str, places: Sequence[str], *, is_named: bool) -> Path | None:
    """The file or the folder of a module; None if it is in none of the places, or installed.

    `is_named`: by the user; of other names a folder without __init__.py may be anything.
    """
    installed = [one for one in sys.path if one.endswith(("site-packages", "dist-packages"))]
    if name in sys.stdlib_module_names or PathFinder.find_spec(name, installed):
        return None
    spec = PathFinder.find_spec(name, places)
    if spec is None or not (is_named if spec.origin is None else spec.origin.endswith(".py")):
        return None
    return Path(next(iter(spec.submodule_search_locations or ()), spec.origin or ""))


def _files_of(path: Path) -> Iterable[Path]:
    return path.rglob("*.py") if path.is_dir() else [path]


def _imported(files: Iterable[Path]) -> Iterator[str]:
    """The first part of each name that files import; what cannot be read imports nothing."""
    for file in files:
        with suppress(OSError, SyntaxError, ValueError):
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.Import):
                    yield from (one.name.partition(".")[0] for one in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.partition(".")[0]
