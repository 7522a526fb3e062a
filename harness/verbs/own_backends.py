"""Backends as a user names them: by their names, or as functions of the user's own."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ..files.errors import option
from .request import refuse

Backends = str | Callable[..., Any] | Sequence[str | Callable[..., Any]]


class Named(NamedTuple):
    """`own`: those that are functions of the user, who permits workers to import their modules by
    giving them; `folders`: from which.
    """

    names: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()


def named_backends(given: Backends) -> Named:
    """Raises BadInput for a function that a worker cannot import."""
    from ...impls.discovery.names import separated
    from ..scenario.selection import backends_of_option

    names, own, folders = list[str](), set[str](), dict[str, None]()
    for one in [given] if isinstance(given, str) or callable(given) else given:
        if isinstance(one, str):
            text, of_text = backends_of_option(one)
            names += separated(text)
            own |= of_text
        else:
            name = _name_of(one)
            names.append(name)
            own.add(name)
            folders[str(_folder_of(sys.modules[one.__module__]))] = None
    return Named(tuple(names), frozenset(own), tuple(folders))


def _name_of(function: Callable[..., Any]) -> str:
    """`attend@my_attention`."""
    module = str(getattr(function, "__module__", ""))
    path = str(getattr(function, "__qualname__", ""))
    at: Any = sys.modules.get(module)
    for part in path.split("."):
        at = getattr(at, part, None)
    name = path.rpartition(".")[2] or type(function).__name__
    whys = {
        "a lambda has no name there": "<lambda>" in path,
        "it is defined in another function": "<locals>" in path,
        "it is defined in a notebook, a script or a shell": module == "__main__",
        "no module has it under its name": at is not function
        or not getattr(sys.modules[module], "__file__", None),
    }
    refuse(
        {
            f"{option('backends')}: {name}: a worker cannot import it, since {why}; write it into a"
            " file, as `def attend(q, k, v, *, causal, scale)` in my_attention.py, and give"
            " my_attention.attend": holds
            for why, holds in whys.items()
        }
    )
    return f"{path}@{module}"


def _folder_of(module: ModuleType) -> Path:
    """From which `import` finds it."""
    file = Path(module.__file__ or "").resolve()
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    return file.parents[depth]
