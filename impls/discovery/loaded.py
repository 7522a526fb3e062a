"""A backend's module behind the `Backend` protocol: binds the variant and supplies what the file
leaves out.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ..backend import Backend, Call, Inputs, Weights
from ..problem import Problem
from .imported import Attribute
from .plain_callable import PlainCallable
from .source import EXACTNESS, OURS

PACKAGE = __name__.rpartition(".discovery")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Satisfies `Backend`; the module's functions get `variant` by keyword where it has
    VARIANTS.
    """

    name: str
    module: Any
    weights_givers: Callable[[], tuple[str, ...]]

    @property
    def variant(self) -> str:
        return self.name.partition(":")[2]

    @property
    def pinned_kernel(self) -> str | None:
        return (self.variant or None) if getattr(self.module, "PINS_KERNEL", False) else None

    @property
    def compiles(self) -> bool:
        return bool(getattr(self.module, "COMPILES", False))

    @property
    def exactness(self) -> str:
        found = getattr(self.module, "EXACTNESS", "exact")
        if found not in EXACTNESS:
            raise ValueError(
                f"backend {self.name}: EXACTNESS is {found!r}; wanted one of {', '.join(EXACTNESS)}"
            )
        return str(found)

    @property
    def plain_operations(self) -> bool:
        return bool(getattr(self.module, "PLAIN_OPERATIONS", False))

    def unavailable(self, device: torch.device) -> str | None:
        function = self._function("unavailable")
        return function(device) if function else None

    def why_not(self, problem: Problem, device: torch.device) -> str | None:
        function = self._function("why_not")
        masks = ("none", *getattr(self.module, "MASKS", ()))
        unmasked = None if problem.mask in masks else f"does not compute the mask {problem.mask}"
        return (
            self.unavailable(device)
            or (function(problem, device) if function else None)
            or unmasked
        )

    def prepare(self, problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
        function = self._function("prepare")
        assert function is not None  # `bind` takes nothing without
        return function(problem, inputs, weights)  # type: ignore[no-any-return]

    def context(self, problem: Problem) -> AbstractContextManager[object]:
        function = self._function("context")
        return function(problem) if function else nullcontext()

    def attention_weights(
        self, problem: Problem, inputs: Inputs, weights: Weights | None
    ) -> Tensor:
        function = self._function("attention_weights")
        if function is None:
            raise ValueError(
                f"{self.name} cannot return attention weights; these can:"
                f" {', '.join(self.weights_givers())}"
            )
        return function(problem, inputs, weights)  # type: ignore[no-any-return]

    def peak_bytes(self, problem: Problem, device: torch.device, threads: int) -> int | None:
        function = self._function("peak_bytes")
        return function(problem, device, threads) if function else None

    def _function(self, name: str) -> Callable[..., Any] | None:
        function = getattr(self.module, name, None)
        if function is None or not getattr(self.module, "VARIANTS", ()):
            return function
        return lambda *arguments: function(*arguments, variant=self.variant)


def bind(
    name: str,
    origin: Path | EntryPoint | Attribute,
    *,
    weights_givers: Callable[[], tuple[str, ...]],
) -> Backend:
    """Import the module now. `weights_givers` names the backends that have attention weights, for
    those that have none.

    Raises whatever the module raises; ImportError where there is no such module or attribute,
    TypeError where it is no backend.
    """
    found: Any = (
        _imported(origin) if isinstance(origin, Path) else _named(origin.module, _attribute(origin))
    )
    if not hasattr(found, "prepare"):
        if not callable(found):
            raise TypeError(
                f"{name}: of type {type(found).__name__}; wanted attend(q, k, v, *, causal, scale),"
                " or something with prepare"
            )
        found = PlainCallable(function=found)
    return Loaded(name=name, module=found, weights_givers=weights_givers)


def _attribute(origin: EntryPoint | Attribute) -> str:
    return origin.attribute if isinstance(origin, Attribute) else origin.attr or ""


def _named(module_name: str, attribute: str) -> object:
    """An attribute of a module that is found as `import` finds it, or the module itself."""
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # it is there, and what it imports is not
        where = (
            "in the folder where attnbench was started, on PYTHONPATH and among the installed"
            " packages"
        )
        raise ImportError(f"no module {error.name}; it was looked for {where}") from None
    for part in filter(None, attribute.split(".")):
        if not hasattr(found, part):
            raise ImportError(f"{module_name} has no {attribute}")
        found = getattr(found, part)
    return found


def _imported(path: Path) -> ModuleType:
    if path.parent == OURS:
        return import_module(f"{PACKAGE}.{path.stem}")
    # a name of its own, so that no installed package is hidden
    module_name = f"attnbench_backends.{path.stem}"
    if module_name in sys.modules and sys.modules[module_name].__file__ == str(path):
        return sys.modules[module_name]
    spec = spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module
