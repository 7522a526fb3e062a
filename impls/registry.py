"""Which backends there are. Files are read, not imported: listing works without torch and without any optional package.

A backend comes from one of three places, and is imported only by `load`:
1. a file of this folder;
2. a file of a folder named in the environment variable ATTNBENCH_BACKENDS (folders joined by os.pathsep), for private backends;
3. an installed package's entry point in the group `attnbench.backends`: its name is the backend's name ("mine" or "mine:variant"),
   its value the module that defines `prepare`.
"""

import ast
import os
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .backend import Backend

EXACTNESS = ("exact", "approximate", "other")
FOLDERS_VARIABLE = "ATTNBENCH_BACKENDS"
ENTRY_POINTS = "attnbench.backends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a backend is defined, and what can be known of it without importing it."""

    origin: Path | EntryPoint
    needs: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    gives_weights: bool = False  # defines attention_weights
    exactness: str = "exact"  # what an entry point is, is known only once it is loaded


def names() -> tuple[str, ...]:
    """All backends in alphabetical order, variants as file:variant, whether or not they can run here."""
    return tuple(sorted(name for file_name, source in sources().items() for name in _with_variants(file_name, source)))


def needs(name: str) -> tuple[str, ...]:
    """The packages that the backend imports beside torch."""
    return find(name).needs


def exactness(name: str) -> str:
    """Whether the backend computes attention "exact" or "approximate", or something "other"."""
    return find(name).exactness


def missing(name: str) -> str | None:
    """Why the backend cannot be imported here, in words; None when all it needs is installed."""
    absent = [package for package in needs(name) if find_spec(package.partition(".")[0]) is None]
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    return f"needs {', '.join(absent)}, which {verb} not installed: pip install {' '.join(absent)}"


def load(name: str) -> "Backend":
    """Import the backend's file and bind its variant. ValueError where there is no such backend."""
    source = find(name)
    from .loaded import bind

    return bind(name, source.origin, has_variants=bool(source.variants), weights_givers=weights_givers)


def weights_givers() -> tuple[str, ...]:
    """The backends that can return attention weights."""
    known = sources()
    return tuple(sorted(name for file_name, source in known.items() if source.gives_weights for name in _with_variants(file_name, source)))


def find(name: str) -> Source:
    known = sources()
    if name in known:
        return known[name]
    file_name, _, variant = name.partition(":")
    if file_name in known and variant in known[file_name].variants:
        return known[file_name]
    there_are = names()
    close = get_close_matches(name, there_are, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(f"no backend {name!r}; there are: {', '.join(there_are)}{hint}")


def sources() -> dict[str, Source]:
    """Every backend by its name without variant. ValueError where two places define the same name."""
    found: dict[str, Source] = {}
    for folder in (Path(__file__).parent, *_extra_folders()):
        for path in sorted(folder.glob("[!_]*.py")):
            source = _read(path)
            if source:
                _add(found, path.stem, source)
    for point in _installed():
        _add(found, point.name, Source(origin=point))
    return found


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """Looked up once per process: it means reading the metadata of every installed package."""
    return tuple(entry_points(group=ENTRY_POINTS))


def _add(found: dict[str, Source], name: str, source: Source) -> None:
    if name in found:
        raise ValueError(f"backend {name!r} is defined twice, by {found[name].origin} and {source.origin}; rename one")
    found[name] = source


def _with_variants(file_name: str, source: Source) -> tuple[str, ...]:
    return (file_name, *(f"{file_name}:{variant}" for variant in source.variants))


def _extra_folders() -> list[Path]:
    folders = [Path(entry) for entry in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep) if entry]
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{FOLDERS_VARIABLE} names {folder}, which is not a folder")
    return folders


def _read(path: Path) -> Source | None:
    """What the file says of itself; None where it is no backend."""
    stat = path.stat()
    return _parsed(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _parsed(path: Path, mtime_ns: int, size: int) -> Source | None:
    """Parsed once for as long as the file is the same: a run asks for its backends with every case."""
    text = path.read_text(encoding="utf-8")
    if "prepare" not in text:
        return None
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{path}:{error.lineno}: {error.msg}; wanted valid Python") from error
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "prepare" not in functions:
        return None
    needs, variants = _strings(tree, "NEEDS", path), _strings(tree, "VARIANTS", path)
    gives_weights = "attention_weights" in functions
    return Source(origin=path, needs=needs, variants=variants, gives_weights=gives_weights, exactness=_exactness(tree, path))


def _strings(tree: ast.Module, name: str, path: Path) -> tuple[str, ...]:
    """The value of the top-level assignment `name = ("...", ...)`."""
    line, value = _assigned(tree, name, ())
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{path}:{line}: {name} must be a plain tuple of strings, since the file is read without being run")
    return value


def _exactness(tree: ast.Module, path: Path) -> str:
    line, value = _assigned(tree, "EXACTNESS", "exact")
    if value not in EXACTNESS:
        raise ValueError(f"{path}:{line}: EXACTNESS must be one of {', '.join(map(repr, EXACTNESS))}, written out")
    return str(value)


def _assigned(tree: ast.Module, name: str, usual: object) -> tuple[int, object]:
    """The line of the top-level assignment of `name`, and its value: None where it is no literal, `usual` where there is no such line."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            try:
                return node.lineno, ast.literal_eval(node.value) if node.value else usual
            except ValueError:
                return node.lineno, None
    return 0, usual
