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
    values = _Values(path, tree)
    functions = frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    is_backend = "prepare" in functions
    return Declared(
        functions=functions,
        needs=values.strings("NEEDS"),
        variants=values.strings("VARIANTS"),
        parameters=values.types("PARAMETERS"),
        exactness=values.one_of("EXACTNESS", EXACTNESS) if is_backend else "exact",
        input_order=values.one_of("INPUT_ORDER", INPUT_ORDERS) if is_backend else "heads",
        computes=values.strings("COMPUTES"),
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


class _Values:
    """What the top level of a file assigns, by name; raises BadBackend, with the line, for what is
    not written out as wanted.
    """

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path = path
        self.nodes: dict[str, tuple[int, ast.expr]] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self.nodes.setdefault(ast.unparse(target), (node.lineno, node.value))

    def strings(self, name: str) -> tuple[str, ...]:
        """Of `name = ("...", ...)`."""
        value = self._literal(name, ())
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            wanted = "a plain tuple of strings, since the file is read without being run"
            raise self._bad(name, wanted)
        return value

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """The first of the choices if the file assigns none."""
        value = self._literal(name, choices[0])
        if value not in choices:
            raise self._bad(name, f"one of {', '.join(map(repr, choices))}, written out")
        return str(value)

    def types(self, name: str) -> tuple[tuple[str, str], ...]:
        """Of `name = {"...": int}`, each type by its name."""
        if name not in self.nodes:
            return ()
        written = ast.unparse(self.nodes[name][1])
        pairs = tuple(re.findall(r"'(\w+)': (\w+)", written))
        plain = "{" + ", ".join(f"'{key}': {kind}" for key, kind in pairs) + "}"
        known = all(key.isidentifier() and kind in TYPES for key, kind in pairs)
        if plain != written or not known or len(dict(pairs)) < len(pairs):
            types = ", ".join(TYPES)
            raise self._bad(
                name, f"written out as {{'rank': int}}, with a type of {types} for each name"
            )
        return pairs

    def _literal(self, name: str, default: object) -> object:
        """None if it is not a literal."""
        try:
            return ast.literal_eval(self.nodes[name][1]) if name in self.nodes else default
        except ValueError:
            return None

    def _bad(self, name: str, wanted: str) -> BadBackend:
        return BadBackend(f"{self.path}:{self.nodes[name][0]}: {name} must be {wanted}")
