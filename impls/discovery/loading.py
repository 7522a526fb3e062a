"""Import a backend and bind it: `load(name)` gives its `Backend`."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..axes.kv_storage import AS_USUAL
from ..problem import Problem
from .names import Value, parts_of, real_name
from .registry import BUILTIN_FOLDER, computing, find, parameter_values
from .source import EXACTNESS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ..backend import Call, Inputs, Weights

WANTED = "attend(q, k, v, *, causal, scale)"
PACKAGE = __name__.rpartition(".discovery")[0]


def load(name: str) -> "Backend":
    """Import the backend now and bind its variant and parameters.

    Raises ValueError if there is no such backend, ImportError if it, its module or its attribute
    cannot be found, TypeError if it is not a backend, and whatever its module raises.
    """
    source = find(name)
    if source.broken:
        raise ImportError(source.broken)
    if isinstance(source.origin, Path):
        found: Any = _module_of(source.origin)
        found = found if hasattr(found, "prepare") else getattr(found, "attend", found)
    else:
        found = _object_of(source.origin.module, source.origin.attribute)
    module = found if hasattr(found, "prepare") else PlainCallable.of(name, found)
    real = real_name(name)
    return Backend(real, module, parameter_values(real, source.declared))


def described(name: str) -> "Backend":
    """A backend of ours as far as it is known without importing its file, and torch: `why_not` by
    refusals.py and COMPUTES, `peak_bytes` by peak_formulas/. What is not known is which masks it
    refuses, which kernels torch does, and whether a GPU is too old. Raises ValueError if there is
    no such backend.
    """
    from ..refusals import REFUSALS

    real, of = real_name(name), find(name).declared
    file = parts_of(real).file
    known: dict[str, Any] = {"VARIANTS": of.variants, "COMPUTES": ("mask", *of.computes)}
    known |= {**REFUSALS.get(file, {}), "__name__": f"{PACKAGE}.{file}"}
    module = SimpleNamespace(**known)
    return Backend(real, module, parameter_values(real, of))


@dataclass(frozen=True, slots=True)
class Backend:
    """One attention implementation: its module (backend.py says what that may define), with what it
    leaves out.

    If the module has VARIANTS, its functions get `variant` by keyword, and so they get each of its
    PARAMETERS, None if the name does not give it.
    """

    name: str
    module: Any
    parameters: Mapping[str, Value | None] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are loaded anew, since a module is neither."""
        return load, (self.name,)

    @property
    def variant(self) -> str:
        """The part of the name after the colon, or ""."""
        return parts_of(self.name).variant

    @property
    def pinned_kernel(self) -> str | None:
        """The only kernel that may run: the variant, if the file has PINS_KERNEL."""
        return (self.variant or None) if getattr(self.module, "PINS_KERNEL", False) else None

    @property
    def compiles(self) -> bool:
        """The file has COMPILES."""
        return bool(getattr(self.module, "COMPILES", False))

    @property
    def compiles_ahead(self) -> bool:
        """The file has `compile_ahead`."""
        return hasattr(self.module, "compile_ahead")

    @property
    def exactness(self) -> str:
        """The file's EXACTNESS, one of source.EXACTNESS."""
        found = getattr(self.module, "EXACTNESS", "exact")
        if found not in EXACTNESS:
            raise ValueError(
                f"backend {self.name}: EXACTNESS is {found!r}; wanted one of {', '.join(EXACTNESS)}"
            )
        return str(found)

    def unavailable(self, device: "torch.device") -> str | None:
        """What is missing here for any problem, as text; None if nothing is. Never raises."""
        return self._asked("unavailable", device)  # type: ignore[no-any-return]

    def why_not(self, problem: Problem, device: "torch.device") -> str | None:
        """Why this backend cannot compute the problem here, as text for the user; None if it can.

        A reason from `unavailable` comes first. Never raises.
        """
        reason = self.unavailable(device) or self._asked("why_not", problem, device)
        if reason:
            return str(reason)
        if problem.mask != "none" and not self._computes & {"mask", problem.mask}:
            return f"does not compute the mask {problem.mask}"
        for axis in problem.opted_in:
            if axis not in self._computes:
                words = f"{axis} {str(getattr(problem, axis))[:40]}".removesuffix(" True")
                return f"does not compute {words}; see {', '.join(computing(axis))}"
        return None

    def why_not_under_mask(self, problem: Problem, device: "torch.device") -> str | None:
        """As why_not, for the problem under a mask tensor that the caller passes."""
        if "mask tensor" not in self._computes:
            return f"takes no mask tensor; these do: {', '.join(computing('mask tensor'))}"
        # All that a backend has to know of a caller's mask: it is a matrix.
        return self.why_not(replace(_without_mask(problem), mask="random"), device)

    def compile_ahead(self, problem: Problem, device: "torch.device") -> None:
        """Compile what `prepare` needs, if the file can do so without the inputs.

        It is a phase of its own, with the time that compiling gets.
        """
        self._asked("compile_ahead", problem, device)

    def prepare(self, problem: Problem, inputs: "Inputs", weights: "Weights | None") -> "Call":
        """Do all set-up (layout, compilation, tuning) and return the call to time. It may view
        inputs, never copy them: their numbers change between calls, those of weights do not.

        `weights` is None in scope "core", and BlockWeights in scope "block", where layer.in_scope
        wraps the layer. The call may have an attribute `facts`, a JSON-ready
        dict of the choices made, which becomes the row's `configuration`. With EXACTNESS "other", a
        call that uses weights of its own instead of `weights` has them in an attribute
        `parameters`, a sequence of tensors: gradients are computed for those instead.
        """
        return self._asked("prepare", problem, inputs, weights)  # type: ignore[no-any-return]

    def build_mask(self, problem: Problem, device: "torch.device") -> object:
        """The mask under which the call computes, in the backend's own form, so that its cost can
        be measured alone; None if it builds none.
        """
        return self._asked("build_mask", problem, device)

    def context(self, problem: Problem) -> AbstractContextManager[object]:
        """Settings that must hold while the call runs.

        Entered around a series of calls, outside the timed region.
        """
        return self._asked("context", problem) or nullcontext()

    def under_mask(
        self, problem: Problem, q: "Tensor", k: "Tensor", v: "Tensor", mask: "Tensor"
    ) -> "Tensor":
        """The core's output [batch, heads, n_q, d_v] under a caller's mask (mask_tensors.py).

        q, k and v as in scope "core"; causal and mask of the problem are in `mask` already.
        """
        from ..backend import Inputs

        core = replace(_without_mask(problem), scope="core")
        return self.prepare(core, Inputs(q, k, v, mask=mask), None)()

    def attention_weights(self, problem: Problem, inputs: "Inputs") -> "Tensor":
        """softmax(QK^T/sqrt(d_k)), [batch, heads, n_q, n_kv]: the output for V = I.

        Of plain inputs as in scope "core", under their mask if they have one. Raises ValueError if
        the backend cannot compute it.
        """
        import torch

        k = inputs.key
        unit = torch.eye(k.shape[2], dtype=k.dtype, device=k.device).expand(*k.shape[:2], -1, -1)
        core = replace(problem, scope="core", d_v=k.shape[2], **AS_USUAL)
        ask = self.why_not if inputs.mask is None else self.why_not_under_mask
        why = ask(core, k.device)
        if self.exactness != "exact":
            why = "its result is not attention's"
        if why:
            raise ValueError(f"{self.name} cannot return attention weights: {why}")
        core = core if inputs.mask is None else _without_mask(core)
        return self.prepare(core, replace(inputs, value=unit), None)()

    def peak_bytes(self, problem: Problem, device: "torch.device", threads: int) -> int | None:
        """Peak bytes of a call above inputs and weights, output included; None if unknown."""
        from ..peak_formulas import block_peak

        p = problem if problem.scope != "block" else replace(problem, scope="layer")
        found = self._asked("peak_bytes", p, device, threads)
        return found if found is None or p is problem else block_peak(problem, found)

    @property
    def _computes(self) -> set[str]:
        """Of masks, and of the axes that are opt_in (problem.py)."""
        return {word for name in ("COMPUTES", "MASKS") for word in getattr(self.module, name, ())}

    def _asked(self, name: str, *arguments: Any) -> Any:
        """What the module's function of this name returns; None without one."""
        function = getattr(self.module, name, None)
        if function is None and name == "peak_bytes":
            function = _formula(getattr(self.module, "__name__", ""))
        if function is None:
            return None
        has_variants = bool(getattr(self.module, "VARIANTS", ()))
        variant = {"variant": self.variant} if has_variants else {}
        return function(*arguments, **variant, **self.parameters)


def _formula(module: str) -> Callable[..., Any] | None:
    """`peak_bytes` in peak_formulas/ of a backend of ours."""
    from ..peak_formulas import FORMULAS

    package, _, name = module.rpartition(".")
    return FORMULAS.get(name) if package == PACKAGE else None


def _without_mask(p: Problem) -> Problem:
    return replace(p, causal=False, causal_align="", mask="none", window=0, lengths="")


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
    takes_the_corner: bool

    @classmethod
    def of(cls, name: str, found: Any) -> "PlainCallable":
        """Raises TypeError if it cannot be called as WANTED."""
        if not callable(found):
            kind = type(found).__name__
            raise TypeError(f"{name}: of type {kind}; wanted {WANTED}, or something with prepare")
        try:
            parameters = signature(found)
        except (TypeError, ValueError):  # of a compiled function, which has none
            return cls(function=found, takes_the_corner=False)
        corner = "causal_align" in parameters.parameters
        try:
            more = {"causal_align": ""} if corner else {}
            parameters.bind(None, None, None, causal=False, scale=1.0, **more)
        except TypeError as error:
            raise TypeError(f"{name}{parameters}: {error}; wanted {WANTED}") from None
        return cls(function=found, takes_the_corner=corner)

    def prepare(self, problem: Problem, inputs: "Inputs", weights: "Weights | None") -> "Call":
        from ..layer import as_call

        p, function = problem, self.function
        given: dict[str, Any] = {"causal": p.causal, "scale": p.scale}
        if self.takes_the_corner:
            given["causal_align"] = p.causal_align or "top_left"
        elif p.causal_offset >= p.kv_seq_len - 1:
            given["causal"] = False
        return as_call(p, inputs, weights, lambda q, k, v: function(q, k, v, **given))


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
