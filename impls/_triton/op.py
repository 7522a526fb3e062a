"""The Triton kernels as a function of torch with gradients. Imports triton."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..shared.inputs import make_inputs
from .configs import Config, Kernel, Kind
from .launch import Launch, Setting, launch

_THREAD = threading.local()


def attention(
    q: Tensor, k: Tensor, v: Tensor, setting: Setting, sinks: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Output [batch, heads, n_q, d_v], in memory [batch, n_q, heads, d_v], and log-sum-exp [batch,
    heads, n_q].

    q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, d_k or d_v], of any strides: nothing
    is copied. A query that sees no key gives zeros. `sinks` [heads] are scores of one more key
    each, seen by all queries, whose value is zero. If `setting` has pages, k and v are pools
    [pages, kv_heads, page, d_k or d_v], of which nothing is read that its table does not name, and
    there are no gradients. The log-sum-exp is that of these scores, to base 2, in fp32, -inf if no
    key is seen; it has no gradient. Results are the same from run to run, to the bit, for the same
    configurations. Raises ValueError for shapes with which the kernels would read elsewhere.
    """
    alike = q.shape[3] == k.shape[3] and k.shape[:3] == v.shape[:3]
    fitting = q.shape[1] % k.shape[1] == 0 and (setting.arguments["PAGE"] or len(q) == len(k))
    if not (alike and fitting and q.dtype == k.dtype == v.dtype):
        found = ", ".join(f"{x.dtype} {list(x.shape)}" for x in (q, k, v))
        raise ValueError(
            f"q, k and v are {found}; wanted one dtype, equal batches, key widths and lengths, and"
            " heads a multiple of kv_heads"
        )
    return _Attention.apply(q, k, v, sinks, setting)  # type: ignore[no-any-return, no-untyped-call]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, setting: Setting
    ) -> tuple[Tensor, Tensor]:
        made = _results(q, v)
        with _device_of(q):
            launch("forward", setting, q=q, k=k, v=v, sinks=sinks, **made).start()
        ctx.save_for_backward(q, k, v, sinks, *made.values())
        ctx.setting = setting
        ctx.mark_non_differentiable(made["lse"])
        ctx.set_materialize_grads(False)  # or zeros would be made for the log-sum-exp's gradient
        return made["o"], made["lse"]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, do: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        if do is None:
            return (None,) * 5
        if ctx.setting.arguments["PAGE"]:
            raise ValueError("keys in pages have no gradients; wanted inputs that require none")
        q, k, v, sinks, o, lse = ctx.saved_tensors
        made = _gradients(q, k, v, sinks, lse)
        given = {"q": q, "k": k, "v": v, "sinks": sinks, "o": o, "lse": lse, "do": do, **made}
        with _device_of(q):
            launch("grad_q", ctx.setting, **given).start()
            launch("grad_kv", ctx.setting, **given).start()
        terms = made["sink_terms"]
        summed = None if terms is None else terms.sum((0, 2)).to(sinks.dtype)
        return made["dq"], made["dk"], made["dv"], summed, None


def _results(q: Tensor, v: Tensor) -> dict[str, Tensor]:
    """What the forward kernel fills. The output has the memory of merged heads, so that a layer
    need not copy.
    """
    batch, heads, n_q, _ = q.shape
    o = torch.empty(batch, n_q, heads, v.shape[3], dtype=q.dtype, device=q.device).transpose(1, 2)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)
    return {"o": o, "lse": lse}


def _gradients(
    q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, lse: Tensor
) -> dict[str, Tensor | None]:
    """What the other two fill."""
    terms = None if sinks is None else torch.empty_like(lse)
    made = {"dq": torch.empty_like(q), "dk": torch.empty_like(k), "dv": torch.empty_like(v)}
    return {**made, "delta": torch.empty_like(lse), "sink_terms": terms}


def example(kind: Kind, device: torch.device) -> Callable[[Kernel, Config], Launch]:
    """Launches of a kernel in a configuration, on a problem of this kind: to time or, on device
    "meta", to compile it.
    """
    inputs = make_inputs(kind.problem, device, seed=0)
    q, k, v = (x.detach() for x in inputs)
    sinks, made = inputs.more.get("sinks"), _results(q, v)
    tensors = {"q": q, "k": k, "v": v, "sinks": sinks, "do": made["o"], **made}
    tensors |= _gradients(q, k, v, sinks, made["lse"])

    def launched(kernel: Kernel, config: Config) -> Launch:
        return launch(kernel, Setting.of(kind.problem, inputs, {kernel: config}), **tensors)

    return launched


def _device_of(q: Tensor) -> AbstractContextManager[object]:
    """With a CUDA context in this thread: describing a tensor needs one, and autograd's thread may
    have none while its tensors come from torch's cache ("Failed to create tensor map descriptor:
    invalid device context", on an H200). Recording an event makes one, also while a graph is
    captured.
    """
    if q.is_cuda and not getattr(_THREAD, "has_context", False):
        torch.cuda.Event().record()
        _THREAD.has_context = True
    return torch.cuda.device_of(q)
