"""What a backend's file says of itself, read without running it."""

import ast
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path

from .imported import Attribute

OURS = Path(__file__).parent.parent
"""The folder of our own backends."""
EXACTNESS = ("exact", "approximate", "other")


class BadBackend(ValueError):
    """A file, or the folder that should hold it, cannot be used; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a backend is defined, and what can be known of it without importing it. `broken` says
    why it cannot be used at all.
    """

    origin: Path | EntryPoint | Attribute
    needs: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    gives_weights: bool = False  # defines attention_weights
    exactness: str = "exact"
    broken: str = ""

    def names(self, name: str) -> tuple[str, ...]:
        """The backends of a file of this name."""
        return (name, *(f"{name}:{variant}" for variant in self.variants))


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The top level of a file: the functions that it defines, and three of its values."""

    functions: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    exactness: str = "exact"


def read(path: Path) -> Said:
    """Raises BadBackend, with the line, where the file is no Python or a value is not plain."""
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _read(path: Path, mtime_ns: int, size: int) -> Said:
    """Once for as long as the file is the same: a run asks for its backends with every case."""
    text = path.read_text(encoding="utf-8")
    if "prepare" not in text and "NEEDS" not in text:
        return Said()
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise BadBackend(f"{path}:{error.lineno}: {error.msg}; wanted valid Python") from error
    functions = frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    needs, variants = _strings(tree, "NEEDS", path), _strings(tree, "VARIANTS", path)
    return Said(
        functions=functions,
        needs=needs,
        variants=variants,
        exactness=_exactness(tree, path) if "prepare" in functions else "exact",
    )


def _strings(tree: ast.Module, name: str, path: Path) -> tuple[str, ...]:
    """The value of the top-level assignment `name = ("...", ...)`."""
    line, value = _assigned(tree, name, ())
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise BadBackend(
            f"{path}:{line}: {name} must be a plain tuple of strings, since the file is read"
            " without being run"
        )
    return value


def _exactness(tree: ast.Module, path: Path) -> str:
    line, value = _assigned(tree, "EXACTNESS", "exact")
    if value not in EXACTNESS:
        raise BadBackend(
            f"{path}:{line}: EXACTNESS must be one of {', '.join(map(repr, EXACTNESS))},"
            " written out"
        )
    return str(value)


def _assigned(tree: ast.Module, name: str, usual: object) -> tuple[int, object]:
    """The line of the top-level assignment of `name`, and its value: None where it is no literal,
    `usual` where there is no such line.
    """
    for node in tree.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            try:
                return node.lineno, ast.literal_eval(node.value) if node.value else usual
            except ValueError:
                return node.lineno, None
    return 0, usual
