"""The Triton kernels as torch operators, with gradients, shapes for torch.compile and FLOP counts.

Imports triton. Uses `custom_op`: `triton_op`, which torch.compile can look into, fails on fake
tensors while Triton interprets its kernels.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from . import launch
from .configs import WIDEST, Config

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


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
) -> tuple[Tensor, Tensor]:
    """Output [batch, heads, n_q, d_v], in memory [batch, n_q, heads, d_v], and log-sum-exp [batch,
    heads, n_q].

    q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, d_k or d_v], of any strides: nothing
    is copied. Query i sees the keys j <= i + causal_offset if `causal`, and those for which
    key_mask [batch, n_kv] is True; masked keys and values are not even read. A query that sees no
    key gives zeros. The log-sum-exp is that of the scaled scores, to base 2, in fp32, -inf if no
    key is seen; it has no gradient. `tf32` allows rounding fp32 products to 10 bits. The last three
    are the kernels' configurations (Config.numbers).
    """
    _check(q, k, v, key_mask, scale)
    o, lse = _outputs(q, v)
    setting = launch.Setting(scale=scale, causal=causal, causal_offset=causal_offset, tf32=tf32)
    config = Config.of(forward)
    with torch.cuda.device_of(q):
        launch.forward(q, k, v, key_mask, o, lse, setting=setting, config=config).start()
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
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v, in their layouts.

    The same from run to run, to the bit, for the same configurations.
    """
    delta = torch.empty_like(lse)
    dq, dk, dv = _gradients(q, k, v)
    setting = launch.Setting(scale=scale, causal=causal, causal_offset=causal_offset, tf32=tf32)
    q_config, kv_config = Config.of(grad_q), Config.of(grad_kv)
    with torch.cuda.device_of(q):
        launch.grad_q(
            q, k, v, key_mask, o, grad_o, lse, delta, dq, setting=setting, config=q_config
        ).start()
        launch.grad_kv(
            q, k, v, key_mask, grad_o, lse, delta, dk, dv, setting=setting, config=kv_config
        ).start()
    return dq, dk, dv


def _check(q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, scale: float) -> None:
    """The kernels trust their arguments: wrong ones would read memory outside the tensors."""
    shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if not q.dim() == k.dim() == v.dim() == 4:
        raise ValueError(f"{shapes}; wanted [batch, heads, length, width] each")
    same = (
        q.shape[0] == k.shape[0] == v.shape[0]
        and q.shape[3] == k.shape[3]
        and k.shape[1:3] == v.shape[1:3]
    )
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
    wanted = (k.shape[0], k.shape[2])
    if key_mask is not None and (key_mask.dtype != torch.bool or key_mask.shape != wanted):
        raise ValueError(
            f"key_mask {key_mask.dtype} {list(key_mask.shape)}; wanted torch.bool {list(wanted)}"
        )
    if any(tensor.device != q.device for tensor in (k, v, key_mask) if tensor is not None):
        raise ValueError(f"tensors on several devices; wanted all on {q.device}, as q is")
    if not scale > 0:
        raise ValueError(f"scale is {scale}; wanted a positive number")


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
    _grad_o: Tensor, q: Tensor, k: Tensor, v: Tensor, *_others: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return _gradients(q, k, v)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, key_mask, scale, causal, causal_offset, tf32, _, *backward = inputs
    ctx.save_for_backward(q, k, v, key_mask, *output)
    ctx.numbers = (scale, causal, causal_offset, tf32, *backward)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)  # or zeros would be made for the log-sum-exp's gradient


def _backward(ctx: Any, grad_o: Tensor | None, _grad_lse: None) -> tuple[Tensor | None, ...]:
    none = (None,) * 8
    if grad_o is None:
        return None, None, None, *none
    q, k, v, key_mask, o, lse = ctx.saved_tensors
    return *attention_backward(grad_o, q, k, v, key_mask, o, lse, *ctx.numbers), *none


attention.register_autograd(_backward, setup_context=_save_for_backward)


@register_flop_formula(torch.ops.attnbench.triton_attention)
def _forward_flops(
    q: Sequence[int], k: Sequence[int], v: Sequence[int], *_others: Any, **_named: Any
) -> int:
    """Counted like torch's own attention: both products in full, causal or not."""
    return _pairs(q, k) * 2 * (q[3] + v[3])


@register_flop_formula(torch.ops.attnbench.triton_attention_backward)
def _backward_flops(
    _grad_o: Any, q: Sequence[int], k: Sequence[int], v: Sequence[int], *_others: Any, **_named: Any
) -> int:
    """Counted like torch's own attention: five products, recomputed scores included.

    Our two kernels do seven, since each computes scores and dP.
    """
    return _pairs(q, k) * 2 * (3 * q[3] + 2 * v[3])


def _pairs(q: Sequence[int], k: Sequence[int]) -> int:
    batch, heads, n_q, _ = q
    return batch * heads * n_q * k[2]
