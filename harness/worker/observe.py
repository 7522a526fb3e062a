"""What is seen of a case beside its times: which kernel really ran, whatever was
requested, and one window of the requested probes over one steady loop.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.attention
from torch.utils._python_dispatch import TorchDispatchMode

from ..devices.nvml import Device
from ..devices.probes import own_calls, requested
from ..measure.graph_capture import Call, not_captured
from ..measure.steady_loop import LaunchMode, as_graph, steady_loop

T = TypeVar("T")

# torch's operators behind scaled_dot_product_attention (ATen/native/native_functions.yaml)
SDPA_KERNELS = {
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_flash_attention_for_cpu": "flash",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_scaled_dot_product_fused_attention_overrideable": "overrideable",
    "_safe_softmax": "math",  # used by the math kernel alone, which is made of plain operators
    # the fast path of nn.MultiheadAttention, projections and all
    "_native_multi_head_attention": "native_mha",
}
CUDA_FLASH = ("aten::_scaled_dot_product_flash_attention", "torch_attn::_varlen_attn")
"""Also answered by what is activated in the place of torch's own flash attention."""
TORCH_FLASH = "FA2"  # torch's own, since 2.2


class Kernel(NamedTuple):
    """What ran: `name` as in `kernel_name`; `generation`: which flash attention had that name."""

    name: str | None
    generation: str | None

    def is_pinned(self, kernel: str) -> bool:
        """Whether it is this one: `flash` of any generation, `flash3` of FA3 alone."""
        newer = (self.generation or "").removeprefix("FA")
        return kernel in (self.name, f"{self.name}{newer}")

    def __str__(self) -> str:
        return f"{self.name} ({self.generation})" if self.generation else f"{self.name}"


class Operators(TorchDispatchMode):
    """Collects the names of all operators that are dispatched meanwhile, in order of first use.

    Compiled code runs unchanged and shows the operators that it calls, not those that were compiled
    away.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: dict[str, None] = {}
        self.generation: str | None = None

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would import its compiler, a second's work, to skip this class; see `shielded`."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Without this torch.compile does not run under a mode, and other code would be checked."""
        return True

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.name().split(".")[0]
        self.seen.setdefault(name)
        if name in CUDA_FLASH:
            self.generation = flash_generation()  # now: it may be activated for this call only
        return func(*args, **(kwargs or {}))


@cache
def shielded() -> type[Operators]:
    """The same, skipped by torch's compiler."""
    dispatch = torch.compiler.disable(Operators.__torch_dispatch__)
    return type("Shielded", (Operators,), {"__torch_dispatch__": dispatch})


def observed(call: Callable[[], T]) -> tuple[T, Kernel]:
    """The result and the attention kernel, without a name if no known part of attention ran."""
    mode = shielded() if "torch._dynamo" in sys.modules else Operators
    with mode() as operators:
        result = call()
    return result, Kernel(kernel_name(tuple(operators.seen)), operators.generation)


def flash_generation() -> str:
    """Which flash attention torch calls on CUDA now: its own, or one that was activated instead.

    torch.nn.attention.activate_flash_attention_impl puts FA3 or FA4 behind the same operator.
    """
    return torch.nn.attention.current_flash_attention_impl() or TORCH_FLASH


def kernel_name(operators: tuple[str, ...]) -> str | None:
    """The kernel as one word.

    "flash", "math", ... for torch's kernels, the operator's own name for a custom one, and
    "matmul+softmax" for plain operators.
    """
    for operator in operators:
        namespace, _, name = operator.rpartition("::")
        if name in SDPA_KERNELS:
            return SDPA_KERNELS[name]
        if namespace not in ("aten", "prim", "prims"):
            return operator
    return "matmul+softmax" if "aten::_softmax" in operators else None


class Watched(NamedTuple):
    """A window as in a row, tables that are not of the window, and why columns are missing."""

    window: dict[str, Any] | None
    tables: dict[str, Any]
    missing: dict[str, str]


def watch_window(
    call: Call,
    anew: Callable[[], Call],
    call_ms: float,
    window_s: float,
    measure: Sequence[str],
    mode: LaunchMode,
    on: tuple[torch.device, Device],
) -> Watched:
    """Watch a warm call for one window. Nothing but the window itself is timed meanwhile.

    `anew` makes the same call again, for a graph.
    """
    device, watched = on
    probes = [probe for probe in requested(measure) if own_calls(probe) is None]
    if mode == "graph":
        try:
            call = as_graph(anew, device)
        except RuntimeError as error:
            return Watched(None, {}, {"graph": not_captured(error)})
    watches = [probe.watch(watched) for probe in probes]
    done = steady_loop(call, call_ms, window_s, list(watches), device)
    window: dict[str, Any] = {"way": mode, "window_s": done.window_s, "calls": done.calls}
    missing: dict[str, str] = {}
    for watch in watches:
        values, reasons = watch.readings()
        window |= values
        missing |= reasons
    return Watched(window, {}, missing)


def profile_kernels(call: Call, measure: Sequence[str], on: tuple[torch.device, Device]) -> Watched:
    """The probes that make calls of their own."""
    device, watched = on
    tables: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for probe in requested(measure):
        calls = own_calls(probe)
        if calls is None:
            continue
        watch = probe.watch(watched)
        with watch:
            for _ in range(calls):
                call()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        values, reasons = watch.readings()
        tables |= values
        missing |= reasons
    return Watched(None, tables, missing)
