"""Settings of torch that change what others compute: those of torch.backends, and autocast's."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import torch

from .graph_capture import overrides_streams

PRECISIONS = (
    *(("generic", "all"), ("cuda", "all"), ("mkldnn", "all")),
    *((backend, op) for backend in ("cuda", "mkldnn") for op in ("matmul", "conv", "rnn")),
)
"""Where torch has a precision of fp32: what inherits comes after what it inherits from."""
OLD_PRECISIONS = {
    "matmul precision": "float32_matmul_precision",
    "TF32 in matmul": "cublas_allow_tf32",
    "TF32 in cuDNN": "cudnn_allow_tf32",
}
"""Older names for the same, and those of their functions in torch._C without _get_ and _set_."""
UNREADABLE = "what its older name cannot say"
OF_BACKENDS = (
    *("blas_", "cpu_allow_", "cublas_", "cudnn_", "linalg_", "miopen_", "mkldnn_", "nnpack_"),
    *("qengine", "rocm_", "sdp_", "math_sdp_", "sm_carveout", "deterministic_fill"),
)
"""How the names of such functions begin."""
TOLD_BY_KERNEL = ("fa3",)  # activating it is allowed: worker/kernel.py says which one answered
DEVICES = ("cpu", "cuda")


class Setting(NamedTuple):
    """`undo` sets it to a value that `read` gave. A dict holds several settings, by name."""

    name: str
    read: Callable[[], Any]
    undo: Callable[[Any], object]


def attribute(what: str, owner: Any, name: str) -> Setting:
    return Setting(what, partial(getattr, owner, name), partial(setattr, owner, name))


def torch_settings() -> list[Setting]:
    """Those that can be read here; reading changes nothing."""
    found = [Setting("torch's", _precisions, _set_precisions)]
    for setting in (*_in_pairs(), *_in_python(), *_autocast()):
        # there is none such as one that only a build for GPUs has
        with suppress(AttributeError, ImportError, RuntimeError):
            setting.read()
            found.append(setting)
    return found


def _precisions() -> dict[str, Any]:
    """The older names raise where the newer ones say what they have no word for."""
    found: dict[str, Any] = {
        f"fp32_precision of {backend} {op}": torch._C._get_fp32_precision_getter(backend, op)
        for backend, op in PRECISIONS
    }
    for what, name in OLD_PRECISIONS.items():
        found[what] = UNREADABLE
        with suppress(RuntimeError):
            found[what] = getattr(torch._C, f"_get_{name}")()
    return found


def _set_precisions(before: Mapping[str, Any]) -> None:
    """The older names first, since they set newer ones too."""
    for what, name in OLD_PRECISIONS.items():
        if before[what] != UNREADABLE:
            getattr(torch._C, f"_set_{name}")(before[what])
    for backend, op in PRECISIONS:
        precision = before[f"fp32_precision of {backend} {op}"]
        torch._C._set_fp32_precision_setter(backend, op, precision)


def _in_pairs() -> Iterator[Setting]:
    """What torch._C both gets and sets."""
    known = vars(torch._C)
    for getter, read in known.items():
        name = getter.removeprefix("_get_")
        kernel = name.removesuffix("_sdp_enabled")
        is_switch = kernel != name and kernel not in TOLD_BY_KERNEL
        setter = known.get(f"_set_sdp_use_{kernel}" if is_switch else f"_set_{name}")
        if setter is None or name in OLD_PRECISIONS.values():
            continue
        if is_switch:
            yield Setting(f"SDPA's {kernel} switch", read, setter)
        elif name.startswith(OF_BACKENDS):
            yield Setting(f"torch's {name}", read, partial(_set_parts, setter))


def _set_parts(setter: Callable[..., object], value: Any) -> None:
    """A pair, as of cuBLAS, is two arguments."""
    setter(*value) if isinstance(value, tuple) else setter(value)


def _in_python() -> Iterator[Setting]:
    mha, einsum = torch.backends.mha, torch.backends.opt_einsum
    yield Setting(
        "nn.MultiheadAttention's fast path", mha.get_fastpath_enabled, mha.set_fastpath_enabled
    )
    if overrides_streams():
        yield Setting(
            "the stream of captured leaves",
            torch._C._override_stale_capture_stream,
            torch._C._set_override_stale_capture_stream,
        )
    yield attribute("opt_einsum", einsum, "enabled")
    yield attribute("opt_einsum's strategy", einsum, "strategy")
    native = getattr(torch.backends, "python_native", None)  # from torch 2.12 on
    for name in native.all_dsls if native else ():
        yield attribute(f"torch's operators in {name}", getattr(native, name), "enabled")


def _autocast() -> Iterator[Setting]:
    for kind in DEVICES:
        yield Setting(
            f"autocast on {kind}",
            partial(torch.is_autocast_enabled, kind),
            partial(torch.set_autocast_enabled, kind),
        )
        yield Setting(
            f"autocast's dtype on {kind}",
            partial(torch.get_autocast_dtype, kind),
            partial(torch.set_autocast_dtype, kind),
        )
    yield Setting(
        "autocast's cache", torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled
    )
