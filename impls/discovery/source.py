"""What a backend's file declares, read from its syntax tree without importing it."""

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

EXACTNESS = ("exact", "approximate", "other")


class BadBackend(ValueError):
    """A backend's file or folder cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The top level of a file: the functions it defines, and three of its values."""

    functions: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    exactness: str = "exact"


NOTHING = Declared()


def declared(path: Path) -> Declared:
    """Raises BadBackend, with the line, if the file is not Python or a value is not a literal."""
    stat = path.stat()
    return _declared(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _declared(path: Path, mtime_ns: int, size: int) -> Declared:
    """Parses an unchanged file once: a run looks up its backends for every case."""
    text = path.read_text(encoding="utf-8")
    if "prepare" not in text and "NEEDS" not in text:
        return NOTHING
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise BadBackend(f"{path}:{error.lineno}: {error.msg}; wanted valid Python") from error
    functions = frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return Declared(
        functions=functions,
        needs=_strings(tree, "NEEDS", path),
        variants=_strings(tree, "VARIANTS", path),
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
        allowed = ", ".join(map(repr, EXACTNESS))
        raise BadBackend(f"{path}:{line}: EXACTNESS must be one of {allowed}, written out")
    return str(value)


def _assigned(tree: ast.Module, name: str, default: object) -> tuple[int, object]:
    """Line and value of the top-level assignment of `name`; the value is None if not a literal."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            try:
                return node.lineno, ast.literal_eval(node.value) if node.value else default
            except ValueError:
                return node.lineno, None
    return 0, default
