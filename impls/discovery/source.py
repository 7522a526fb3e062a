"""What a backend's file declares, read from its syntax tree without importing it."""

import ast
import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

EXACTNESS = ("exact", "approximate", "other")
TYPES = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}
"""Of a backend's parameter, and what is wanted."""
INPUT_ORDERS = ("heads", "model")
MOST_BYTES = 4 << 20  # of a backend's file


class BadBackend(ValueError):
    """A backend's file or folder cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The top level of a file: the functions it defines, and some of its values.

    `parameters`: each with the name of its type. `about`: the first sentence of its docstring.
    """

    functions: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    exactness: str = "exact"
    input_order: str = "heads"
    computes: tuple[str, ...] = ()
    about: str = ""


NOTHING = Declared()


def declared(path: Path) -> Declared:
    """Raises BadBackend, with the line, if the file is not Python or a value is not a literal, and
    if it is no file that can be read.
    """
    try:
        known = path.stat()
        return _declared(path, known.st_mtime_ns, known.st_size)
    except OSError as error:
        raise BadBackend(f"{path}: cannot be read ({error.strerror})") from None


@lru_cache(maxsize=256)
def _declared(path: Path, mtime_ns: int, size: int) -> Declared:
    """Parses an unchanged file once: a run looks up its backends for every case."""
    source = _read(path)
    if not any(word in source for word in (b"prepare", b"attend", b"NEEDS")):
        return NOTHING
    try:
        tree = ast.parse(source)  # bytes: the file may declare its encoding
    except SyntaxError as error:
        raise BadBackend(f"{path}:{error.lineno}: {error.msg}; wanted valid Python") from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deep
        raise BadBackend(f"{path}: {error or 'nested too deep'}; wanted valid Python") from None
    functions = frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    is_backend = "prepare" in functions
    return Declared(
        functions=functions,
        needs=_strings(tree, "NEEDS", path),
        variants=_strings(tree, "VARIANTS", path),
        parameters=_typed(tree, "PARAMETERS", path),
        exactness=_one_of(EXACTNESS, tree, "EXACTNESS", path) if is_backend else "exact",
        input_order=_one_of(INPUT_ORDERS, tree, "INPUT_ORDER", path) if is_backend else "heads",
        computes=_strings(tree, "COMPUTES", path),
        about=" ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split()).rstrip("."),
    )


def _read(path: Path) -> bytes:
    """Waits for nobody, as reading a FIFO would. Raises OSError and BadBackend."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise BadBackend(f"{path}: not a regular file; wanted a Python file")
        with open(fd, "rb", closefd=False) as file:
            source = file.read(MOST_BYTES + 1)
    finally:
        os.close(fd)
    if len(source) > MOST_BYTES:
        raise BadBackend(f"{path}: more than {MOST_BYTES} bytes; wanted a Python file")
    return source


def _strings(tree: ast.Module, name: str, path: Path) -> tuple[str, ...]:
    """The value of the top-level assignment `name = ("...", ...)`."""
    line, value = _assigned(tree, name, ())
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise BadBackend(
            f"{path}:{line}: {name} must be a plain tuple of strings, since the file is read"
            " without being run"
        )
    return value


def _typed(tree: ast.Module, name: str, path: Path) -> tuple[tuple[str, str], ...]:
    """The value of the top-level assignment `name = {"...": int}`, each type by its name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            pairs = re.findall(r"'(\w+)': (\w+)", ast.unparse(node.value))
            plain = "{" + ", ".join(f"'{key}': {kind}" for key, kind in pairs) + "}"
            known = all(key.isidentifier() and kind in TYPES for key, kind in pairs)
            if plain != ast.unparse(node.value) or not known or len(dict(pairs)) < len(pairs):
                raise BadBackend(
                    f"{path}:{node.lineno}: {name} must be written out as {{'rank': int}}, with a"
                    f" type of {', '.join(TYPES)} for each name"
                )
            return tuple(pairs)
    return ()


def _one_of(choices: tuple[str, ...], tree: ast.Module, name: str, path: Path) -> str:
    """The value of a top-level assignment; the first of the choices without one."""
    line, value = _assigned(tree, name, choices[0])
    if value not in choices:
        allowed = ", ".join(map(repr, choices))
        raise BadBackend(f"{path}:{line}: {name} must be one of {allowed}, written out")
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
