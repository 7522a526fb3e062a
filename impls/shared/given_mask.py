"""A mask tensor that a caller passes: its conventions, in the form that backends take.

As in torch.nn.functional.scaled_dot_product_attention: boolean, True where a query attends to a
key; or of a floating dtype, added to the scores before the softmax.
"""

from math import inf

import torch
from torch import Tensor

from ..problem import Problem
from .mask_tensors import mask_matrix


def given_mask(mask: Tensor, problem: Problem, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The mask with the problem's own, and which queries see no key: [batch, heads, n_q, n_kv] and
    [batch, heads, n_q, 1], sizes 1 where it is the same along that dimension.

    The mask is bool, or of `dtype` (that of the scores). Queries that see no key (every pair False
    or -inf) attend to every key in it, so that no softmax runs over nothing; their output is to be
    set to zero. A finite fill, such as -1e9, is not -inf: a query with fills alone attends to all
    of them, and equally, since fp32 has no digits left for scores beside -1e9. Fills beyond half
    the lowest number of the dtypes are raised to that: exp gives 0 all the same, and no sum
    overflows. NaN and inf give NaN.

    Raises ValueError for shapes and dtypes that are no mask of this problem.
    """
    p = problem
    _check(mask, p)
    mask = mask if mask.dim() == 4 else mask[None, None]
    if mask.dtype != torch.bool:
        lowest = max(torch.finfo(one).min for one in (dtype, mask.dtype)) / 2
        raised = mask.clamp(min=lowest).to(dtype)
        mask = raised.masked_fill(mask == -inf, -inf)
    rule = mask_matrix(p, torch.arange(p.seq_len, device=mask.device))
    if rule is not None:  # [batch or 1, n_q or 1, n_kv]
        rule = rule[:, None]
        mask = mask & rule if mask.dtype == torch.bool else mask.masked_fill(~rule, -inf)
    if mask.dtype == torch.bool:
        empty = mask.any(-1, keepdim=True).logical_not_()
        return mask | empty, empty
    empty = (mask == -inf).all(-1, keepdim=True)
    return mask.masked_fill(empty, 0.0), empty


def _check(mask: Tensor, p: Problem) -> None:
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(
            f"mask of {mask.dtype}; wanted torch.bool, True where a query attends, or a floating"
            " dtype, added to the scores; if 1 means attend, pass mask.bool()"
        )
    whole = (p.batch, p.heads, p.seq_len, p.kv_seq_len)
    wanted = whole[-2:] if mask.dim() == 2 else whole
    if len(mask.shape) != len(wanted) or any(
        size not in (1, all_) for size, all_ in zip(mask.shape, wanted, strict=True)
    ):
        raise ValueError(
            f"mask of shape {list(mask.shape)}; wanted [n_q, n_kv] or [batch, heads, n_q, n_kv],"
            f" here {list(whole[-2:])} or {list(whole)}, or sizes of 1; a mask of keys"
            " [batch, n_kv] is mask[:, None, None]"
        )
