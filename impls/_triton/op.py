"""The Triton kernels as torch operators, with gradients, shapes for torch.compile and FLOP counts.

Imports triton. Uses `custom_op`: `triton_op`, which torch.compile can look into, fails on fake
tensors while Triton interprets its kernels.
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from . import launch
from .configs import BANDS, WIDEST, Config

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_THREAD = threading.local()


@torch.library.custom_op("attnbench::triton_attention", mutates_args=())
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    scale: float,
    causal: bool,
    causal_offset: int,
    tf32: bool,
    forward: Sequence[int],
    grad_q: Sequence[int],
    grad_kv: Sequence[int],
    sinks: Tensor | None = None,
    softcap: float = 0.0,
    band: str = "",
    window: int = 0,
    q_starts: Tensor | None = None,
    kv_starts: Tensor | None = None,
    longest_q: int = 0,
    longest_kv: int = 0,
    page_table: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Output [batch, heads, n_q, d_v], in memory [batch, n_q, heads, d_v], and log-sum-exp [batch,
    heads, n_q].

    q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, d_k or d_v], of any strides: nothing
    is copied. Query i sees the keys j <= i + causal_offset if `causal`, and those for which
    key_mask [batch, n_kv] is True; masked keys and values are not even read. It stands at key i +
    causal_offset, and sees those up to `window` keys away if `band` is "local", and those of its
    own `window` keys if it is "chunked". A query that sees no key gives zeros. Scaled scores s
    become softcap * tanh(s / softcap) if softcap is not 0. `sinks` [heads] are scores of one more
    key each, seen by all queries, whose value is zero. With `q_starts` and `kv_starts`, int32
    [sequences + 1], the batch of one row holds sequences one after the other, each with at most
    longest_q queries, which are the last of its longest_kv keys; causal_offset counts for nothing.
    With `page_table`, int32 [batch, ceil(longest_kv / page)], k and v are pools [pages, kv_heads,
    page, d_k or d_v], of which it names the pages of each sequence of longest_kv keys, in order;
    nothing else of the pool is read, and there are no gradients. The log-sum-exp is that of these
    scores, to base 2, in fp32, -inf if no key is seen; it has no gradient. `tf32` allows rounding
    fp32 products to 10 bits. `forward`, `grad_q` and `grad_kv` are the kernels' configurations
    (Config.numbers).
    """
    setting = launch.Setting(
        scale=scale, causal=causal, causal_offset=causal_offset, tf32=tf32, softcap=softcap,
        band=band, window=window,
    )  # fmt: skip
    packed = _packed(q_starts, kv_starts, longest_q, longest_kv)
    paged = None if page_table is None else launch.Paged(page_table, longest_kv)
    _check(q, k, v, key_mask, sinks, packed, paged, setting)
    o, lse = _outputs(q, v)
    how: dict[str, Any] = {"setting": setting, "config": Config.of(forward), "packed": packed}
    with _device_of(q):
        launch.forward(q, k, v, key_mask, o, lse, sinks=sinks, paged=paged, **how).start()
    return o, lse


@torch.library.custom_op("attnbench::triton_attention_backward", mutates_args=())
def attention_backward(
    grad_o: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    o: Tensor,
    lse: Tensor,
    scale: float,
    causal: bool,
    causal_offset: int,
    tf32: bool,
    grad_q: Sequence[int],
    grad_kv: Sequence[int],
    sinks: Tensor | None = None,
    softcap: float = 0.0,
    band: str = "",
    window: int = 0,
    q_starts: Tensor | None = None,
    kv_starts: Tensor | None = None,
    longest_q: int = 0,
    longest_kv: int = 0,
) -> list[Tensor]:
    """The gradients of q, k and v, in their layouts, and of sinks, if there are any.

    The same from run to run, to the bit, for the same configurations.
    """
    delta, sink_terms = torch.empty_like(lse), None if sinks is None else torch.empty_like(lse)
    dq, dk, dv = _gradients(q, k, v)
    setting = launch.Setting(
        scale=scale, causal=causal, causal_offset=causal_offset, tf32=tf32, softcap=softcap,
        band=band, window=window,
    )  # fmt: skip
    packed = _packed(q_starts, kv_starts, longest_q, longest_kv)
    how: dict[str, Any] = {"setting": setting, "packed": packed}
    of_q, of_kv = Config.of(grad_q), Config.of(grad_kv)
    with _device_of(q):
        launch.grad_q(
            q, k, v, key_mask, o, grad_o, lse, delta, dq, config=of_q, sinks=sinks,
            sink_terms=sink_terms, **how,
        ).start()  # fmt: skip
        launch.grad_kv(q, k, v, key_mask, grad_o, lse, delta, dk, dv, config=of_kv, **how).start()
    if sinks is None or sink_terms is None:
        return [dq, dk, dv]
    return [dq, dk, dv, sink_terms.sum((0, 2)).to(sinks.dtype)]


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


def _packed(
    q_starts: Tensor | None, kv_starts: Tensor | None, longest_q: int, longest_kv: int
) -> launch.Packed | None:
    if q_starts is None or kv_starts is None:
        return None
    return launch.Packed(q_starts, kv_starts, longest_q, longest_kv)


def _check(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, sinks: Tensor | None,
    packed: launch.Packed | None, paged: launch.Paged | None, setting: launch.Setting,
) -> None:  # fmt: skip
    """The kernels trust their arguments: wrong ones would read memory outside the tensors."""
    shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if not q.dim() == k.dim() == v.dim() == 4:
        raise ValueError(f"{shapes}; wanted [batch, heads, length, width] each")
    same = q.shape[3] == k.shape[3] and k.shape[:3] == v.shape[:3]
    same = same and (paged is not None or q.shape[0] == k.shape[0])
    if not same or 0 in (*q.shape, *k.shape, *v.shape) or q.shape[1] % k.shape[1]:
        raise ValueError(
            f"{shapes}; wanted equal batches, key widths and key lengths, none 0, and heads a"
            " multiple of kv_heads"
        )
    if max(q.shape[3], v.shape[3]) > WIDEST:
        raise ValueError(f"{shapes}; wanted heads up to {WIDEST} wide")
    if q.dtype not in DTYPES or not q.dtype == k.dtype == v.dtype:
        raise ValueError(
            f"q, k, v of {q.dtype}, {k.dtype}, {v.dtype}; wanted one of float16, bfloat16 and"
            " float32 for all"
        )
    n_kv, page = (paged.n_kv if paged else k.shape[2]), k.shape[2]
    wanted = (q.shape[0], n_kv)
    if key_mask is not None and (key_mask.dtype != torch.bool or key_mask.shape != wanted):
        raise ValueError(
            f"key_mask {key_mask.dtype} {list(key_mask.shape)}; wanted torch.bool {list(wanted)}"
        )
    floats = sinks is None or (sinks.is_floating_point() and sinks.is_contiguous())
    if sinks is not None and not (floats and sinks.shape == q.shape[1:2]):
        raise ValueError(
            f"sinks {sinks.dtype} {list(sinks.shape)}; wanted floating-point numbers, one for each"
            f" of {q.shape[1]} heads, side by side"
        )
    if packed is not None:
        starts = packed[:2]
        shapes = " and ".join(f"{one.dtype} {list(one.shape)}" for one in starts)
        alike = starts[0].shape == starts[1].shape and starts[0].dim() == 1
        if not alike or {one.dtype for one in starts} != {torch.int32} or q.shape[0] != 1:
            raise ValueError(
                f"starts {shapes}, batch {q.shape[0]}; wanted torch.int32, one more than sequences,"
                " and a batch of 1"
            )
        if key_mask is not None or min(packed.longest_q, packed.longest_kv) < 1:
            raise ValueError("packed sequences with a key mask or none; wanted no mask, and tokens")
    if paged is not None:
        table, wanted = paged.table, (q.shape[0], -(-n_kv // page))
        right = table.shape == wanted and table.dtype == torch.int32 and table.is_contiguous()
        if packed is not None or n_kv < 1 or not right:
            raise ValueError(
                f"page_table {table.dtype} {list(table.shape)} of {n_kv} keys; wanted torch.int32"
                f" {list(wanted)}, side by side, at least one key, and no packed sequences"
            )
    tables = (*(packed[:2] if packed else ()), *(paged[:1] if paged else ()))
    others = (k, v, key_mask, sinks, *tables)
    if any(tensor.device != q.device for tensor in others if tensor is not None):
        raise ValueError(f"tensors on several devices; wanted all on {q.device}, as q is")
    if not setting.scale > 0:
        raise ValueError(f"scale is {setting.scale}; wanted a positive number")
    if not 0 <= setting.softcap < inf:
        raise ValueError(f"softcap is {setting.softcap}; wanted a positive number, or 0 for none")
    if setting.band not in ("", *BANDS):
        raise ValueError(f"band is {setting.band!r}; wanted {' or '.join(BANDS)}, or nothing")
    if setting.band and not (setting.window > 0 and setting.causal_offset >= 0):
        raise ValueError(
            f"band {setting.band} of {setting.window} keys, offset {setting.causal_offset}; wanted"
            " a positive number of keys and queries that stand at one"
        )


def _outputs(q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Not yet filled. The output has the memory of merged heads, so that a layer need not copy."""
    batch, heads, n_q, _ = q.shape
    o = torch.empty(batch, n_q, heads, v.shape[3], dtype=q.dtype, device=q.device).transpose(1, 2)
    return o, torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)


def _gradients(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


@attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_others: Any) -> tuple[Tensor, Tensor]:
    return _outputs(q, v)


@attention_backward.register_fake
def _(
    _grad_o: Tensor, q: Tensor, k: Tensor, v: Tensor, _key_mask: Any, _o: Any, _lse: Any,
    _scale: Any, _causal: Any, _causal_offset: Any, _tf32: Any, _grad_q: Any, _grad_kv: Any,
    sinks: Tensor | None = None, *_others: Any,
) -> list[Tensor]:  # fmt: skip
    return [*_gradients(q, k, v), *([] if sinks is None else [torch.empty_like(sinks)])]


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, key_mask, scale, causal, causal_offset, tf32, _, grad_q, grad_kv, sinks, *rest = inputs
    *more, q_starts, kv_starts, longest_q, longest_kv, page_table = rest
    if page_table is not None:
        raise ValueError("keys in pages have no gradients; wanted inputs that require none")
    ctx.save_for_backward(q, k, v, key_mask, *output, sinks, q_starts, kv_starts)
    ctx.numbers = (scale, causal, causal_offset, tf32, grad_q, grad_kv)
    ctx.more, ctx.longest = more, (longest_q, longest_kv)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)  # or zeros would be made for the log-sum-exp's gradient


def _backward(ctx: Any, grad_o: Tensor | None, _grad_lse: None) -> tuple[Tensor | None, ...]:
    q, k, v, key_mask, o, lse, sinks, *starts = ctx.saved_tensors
    gradients: list[Tensor | None] = [None] * 4
    if grad_o is not None:
        gradients[: 3 + (sinks is not None)] = attention_backward(
            grad_o, q, k, v, key_mask, o, lse, *ctx.numbers, sinks, *ctx.more, *starts, *ctx.longest
        )
    *qkv, grad_sinks = gradients
    return *qkv, *(None,) * 8, grad_sinks, *(None,) * 8


attention.register_autograd(_backward, setup_context=_save_for_backward)


@register_flop_formula(torch.ops.attnbench.triton_attention)
def _forward_flops(
    q: Sequence[int], k: Sequence[int], v: Sequence[int], *others: Any, **_named: Any
) -> int:
    """Counted like torch's own attention: both products in full, causal or not."""
    n_kv = others[15] if any(others[16:]) else k[2]  # longest_kv, if there is a page_table
    return _pairs(q, n_kv) * 2 * (q[3] + v[3])


@register_flop_formula(torch.ops.attnbench.triton_attention_backward)
def _backward_flops(
    _grad_o: Any, q: Sequence[int], k: Sequence[int], v: Sequence[int], *_others: Any, **_named: Any
) -> int:
    """Counted like torch's own attention: five products, recomputed scores included.

    Our two kernels do seven, since each computes scores and dP.
    """
    return _pairs(q, k[2]) * 2 * (3 * q[3] + 2 * v[3])


def _pairs(q: Sequence[int], n_kv: int) -> int:
    batch, heads, n_q, _ = q
    return batch * heads * n_q * n_kv
