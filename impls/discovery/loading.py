"""Import a backend and bind it: its module or callable behind the `Backend` protocol."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..problem import ALL_MASKS, Problem
from .names import Value, parts_of, real_name
from .registry import BUILTIN_FOLDER, computing, defining, find, parameter_values
from .source import EXACTNESS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ..backend import Backend, Call, Inputs, Weights

WANTED = "attend(q, k, v, *, causal, scale)"
PACKAGE = __name__.rpartition(".discovery")[0]


def load(name: str) -> "Backend":
    """Import the backend now and bind its variant.

    Raises ValueError if there is no such backend, ImportError if it, its module or its attribute
    cannot be found, TypeError if it is not a backend, and whatever its module raises.
    """
    source = find(name)
    if source.broken:
        raise ImportError(source.broken)
    origin = source.origin
    if isinstance(origin, Path):
        found: Any = _module_of(origin)
        found = found if hasattr(found, "prepare") else getattr(found, "attend", found)
    else:
        found = _object_of(origin.module, origin.attribute)
    if not hasattr(found, "prepare"):
        if not callable(found):
            raise TypeError(
                f"{name}: of type {type(found).__name__}; wanted {WANTED}, or something with"
                " prepare"
            )
        refuse_other_arguments(name, found)
        found = PlainCallable(function=found)
    real = real_name(name)
    values = parameter_values(real, source.declared)
    return LoadedBackend(name=real, module=found, parameters=values)


def described(name: str) -> "LoadedBackend":
    """A backend of ours as far as it is known without importing its file, and torch: `why_not` by
    refusals/ and COMPUTES, `peak_bytes` by peak_formulas/. What is not known is which masks it
    refuses, which kernels torch does, and whether a GPU is too old. Raises ValueError if there is
    no such backend.
    """
    real, of = real_name(name), find(name).declared
    file = parts_of(real).file
    known: dict[str, Any] = {"VARIANTS": of.variants, "COMPUTES": of.computes, "MASKS": ALL_MASKS}
    if find_spec(refusals := f"{PACKAGE}.refusals.{file}"):
        known |= vars(import_module(refusals))
    module = SimpleNamespace(**{**known, "__name__": f"{PACKAGE}.{file}"})
    return LoadedBackend(name=real, module=module, parameters=parameter_values(real, of))


def refuse_other_arguments(name: str, function: Callable[..., Any]) -> None:
    """Raises TypeError if a plain callable cannot be called as WANTED."""
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # of a compiled function, which has none
        return
    try:
        more = {"causal_align": ""} if "causal_align" in parameters.parameters else {}
        parameters.bind(None, None, None, causal=False, scale=1.0, **more)
    except TypeError as error:
        raise TypeError(f"{name}{parameters}: {error}; wanted {WANTED}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedBackend:
    """A module as a `Backend`: binds the variant and supplies what the module leaves out.

    If the module has VARIANTS, its functions get `variant` by keyword, and so they get each of its
    PARAMETERS, None if the name does not give it.
    """

    name: str
    module: Any
    parameters: Mapping[str, Value | None] = field(default_factory=dict)

    @property
    def variant(self) -> str:
        return parts_of(self.name).variant

    @property
    def pinned_kernel(self) -> str | None:
        return (self.variant or None) if getattr(self.module, "PINS_KERNEL", False) else None

    @property
    def compiles(self) -> bool:
        return bool(getattr(self.module, "COMPILES", False))

    @property
    def generates_code(self) -> bool:
        compiles = getattr(self.module, "COMPILES", False)
        in_prepare = self.variant in compiles if isinstance(compiles, tuple) else bool(compiles)
        return in_prepare or self.compiles_ahead

    @property
    def compiles_ahead(self) -> bool:
        return hasattr(self.module, "compile_ahead")

    @property
    def exactness(self) -> str:
        found = getattr(self.module, "EXACTNESS", "exact")
        if found not in EXACTNESS:
            raise ValueError(
                f"backend {self.name}: EXACTNESS is {found!r}; wanted one of {', '.join(EXACTNESS)}"
            )
        return str(found)

    def unavailable(self, device: "torch.device") -> str | None:
        function = self._function("unavailable")
        return function(device) if function else None

    def why_not(self, problem: Problem, device: "torch.device") -> str | None:
        function = self._function("why_not")
        masks = ("none", *getattr(self.module, "MASKS", ()))
        computed = getattr(self.module, "COMPUTES", ())
        others = (
            f"does not compute {name} {str(getattr(problem, name))[:40]}".removesuffix(" True")
            + f"; see {', '.join(computing(name))}"
            for name in problem.opted_in
            if name not in computed
        )
        return (
            self.unavailable(device)
            or (function(problem, device) if function else None)
            or (None if problem.mask in masks else f"does not compute the mask {problem.mask}")
            or next(others, None)
        )

    def why_not_under_mask(self, problem: Problem, device: "torch.device") -> str | None:
        if self._function("under_mask") is None:
            return f"takes no mask tensor; these do: {', '.join(defining('under_mask'))}"
        # All that a backend has to know of a caller's mask: it is a matrix.
        plain = replace(problem, causal=False, causal_align="", mask="random", window=0, lengths="")
        return self.why_not(plain, device)

    def compile_ahead(self, problem: Problem, device: "torch.device") -> None:
        if function := self._function("compile_ahead"):
            function(problem, device)

    def prepare(self, problem: Problem, inputs: "Inputs", weights: "Weights | None") -> "Call":
        return self._needed("prepare")(problem, inputs, weights)  # type: ignore[no-any-return]

    def build_mask(self, problem: Problem, device: "torch.device") -> object:
        function = self._function("build_mask")
        return function(problem, device) if function else None

    def context(self, problem: Problem) -> AbstractContextManager[object]:
        function = self._function("context")
        return function(problem) if function else nullcontext()

    def attention_weights(
        self, problem: Problem, inputs: "Inputs", weights: "Weights | None"
    ) -> "Tensor":
        from ..layer import computed_queries, split_heads, with_empty_rows

        function = self._needed("attention_weights", "attention weights")
        q, k, v = inputs if weights is None else split_heads(problem, inputs, weights)
        core = replace(inputs, query=computed_queries(problem, q), key=k, value=v)
        return with_empty_rows(problem, q.device)(function(problem, core, None))

    def under_mask(
        self, problem: Problem, q: "Tensor", k: "Tensor", v: "Tensor", mask: "Tensor"
    ) -> "Tensor":
        return self._needed("under_mask")(problem, q, k, v, mask)  # type: ignore[no-any-return]

    def weights_under_mask(
        self, problem: Problem, q: "Tensor", k: "Tensor", mask: "Tensor"
    ) -> "Tensor":
        from ..backend import Inputs

        function = self._needed("attention_weights", "attention weights under a mask tensor")
        return function(problem, Inputs(q, k, k), mask)  # type: ignore[no-any-return]

    def peak_bytes(self, problem: Problem, device: "torch.device", threads: int) -> int | None:
        function = self._function("peak_bytes") or self._function("peak_bytes", self._formula())
        if function is None:
            return None
        if problem.scope != "block":
            return function(problem, device, threads)  # type: ignore[no-any-return]
        from ..layer import block_peak

        layer = function(replace(problem, scope="layer"), device, threads)
        return None if layer is None else block_peak(problem, layer)

    def _formula(self) -> ModuleType | None:
        """The module of peak_formulas/ that is named like a backend of ours."""
        name = parts_of(self.name).file
        formula = f"{PACKAGE}.peak_formulas.{name}"
        ours = getattr(self.module, "__name__", "") == f"{PACKAGE}.{name}"
        return import_module(formula) if ours and find_spec(formula) else None

    def _needed(self, name: str, what: str = "this") -> Callable[..., Any]:
        """Raises ValueError if the module does not define it. `what`: that it returns."""
        if found := self._function(name):
            return found
        raise ValueError(
            f"{self.name} cannot return {what}; these can: {', '.join(defining(name))}"
        )

    def _function(self, name: str, module: Any = None) -> Callable[..., Any] | None:
        function = getattr(module or self.module, name, None)
        has_variants = bool(getattr(self.module, "VARIANTS", ()))
        if function is None or not (has_variants or self.parameters):
            return function
        bound = {**({"variant": self.variant} if has_variants else {}), **self.parameters}
        return lambda *arguments: function(*arguments, **bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCallable:
    """A bare function attend(q, k, v, *, causal, scale) in place of a backend's module.

    q is [batch, heads, seq_len, d_k], k and v are [batch, kv_heads, kv_seq_len, d_k or d_v]; the
    function returns [batch, heads, seq_len, d_v]. In scope "layer" q, k and v are views of the
    projections and not contiguous. With an argument `causal_align` it gets the triangle's corner;
    without one `causal` is False where the triangle hides nothing, as from one query at the last
    key, and otherwise the corner is the function's own, right or wrong.
    """

    function: "Callable[..., Tensor]"

    def prepare(self, problem: Problem, inputs: "Inputs", weights: "Weights | None") -> "Call":
        from ..layer import as_call

        p, function = problem, self.function
        given: dict[str, Any] = {"causal": p.causal, "scale": p.scale}
        if takes_the_corner(function):
            given["causal_align"] = p.causal_align or "top_left"
        elif p.causal_offset >= p.kv_seq_len - 1:
            given["causal"] = False
        return as_call(p, inputs, weights, lambda q, k, v: function(q, k, v, **given))


def takes_the_corner(function: Callable[..., Any]) -> bool:
    try:
        return "causal_align" in signature(function).parameters
    except (TypeError, ValueError):  # of a compiled function, which has none
        return False


def _object_of(module_name: str, attribute: str) -> object:
    """A module that `import` finds, or an attribute of it."""
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module exists; something it imports does not
        raise ImportError(
            f"no module {error.name} in the folder where attnbench was started, on PYTHONPATH or"
            " among the installed packages"
        ) from None
    for part in filter(None, attribute.split(".")):
        if not hasattr(found, part):
            raise ImportError(f"{module_name} has no {attribute}")
        found = getattr(found, part)
    return found


def _module_of(path: Path) -> ModuleType:
    if path.parent == BUILTIN_FOLDER:
        return import_module(f"{PACKAGE}.{path.stem}")
    # A prefix of our own, so that a private file shadows no installed package.
    module_name = f"attnbench_backends.{path.stem}"
    if module_name in sys.modules and sys.modules[module_name].__file__ == str(path):
        return sys.modules[module_name]
    spec = spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look up their module here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module
