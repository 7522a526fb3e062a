"""Masks as tensors: which (query, key) pairs attend, for any part of a mask."""

from collections.abc import Sequence
from math import inf

import torch
from torch import Tensor

from ..axes.lengths import starts
from ..masks import MASKS, has_no_rule
from ..masks.padding import padded_length
from ..problem import Problem


def mask_matrix(
    problem: Problem, rows: Tensor, entries: Sequence[int] | None = None
) -> Tensor | None:
    """True where query rows[i] (int64) attends to key j; None if every query attends to every key.

    [batch or 1, rows or 1, kv_seq_len]: 1 where the mask is the same along that dimension.
    `entries` selects entries of the batch; only the padding mask differs between entries.
    """
    p = problem
    keys = torch.arange(p.kv_seq_len, device=rows.device)
    if p.lengths:
        return _ragged(p, rows, keys)[None]
    own = (rows + p.causal_offset)[:, None]  # the key at the query's own position
    triangle = keys <= own if p.causal else None
    if p.mask == "none":
        return None if triangle is None else triangle[None]
    entries = range(p.batch) if entries is None else entries
    mask = MASKS[p.mask]
    if mask.matrix:
        matrix = mask.matrix(p, rows, keys, own, entries)
    else:
        matrix = by_distance(p, keys - own)[None]
    return matrix if triangle is None else matrix & triangle


def _ragged(p: Problem, rows: Tensor, keys: Tensor) -> Tensor:
    """[rows, kv_seq_len] of packed sequences: the keys of the query's own, and of them its mask."""
    of_queries, of_keys = (torch.tensor(one, device=rows.device) for one in starts(p.lengths))
    sequence = torch.searchsorted(of_queries, rows, right=True) - 1
    end = of_keys[sequence + 1]
    own = (end - of_queries[sequence + 1] + rows)[:, None]  # the last query is at the last key
    seen = keys >= of_keys[sequence][:, None]
    seen &= keys <= own if p.causal else keys < end[:, None]
    return seen if p.mask == "none" else seen & by_distance(p, keys - own)


def by_distance(p: Problem, distance: Tensor) -> Tensor:
    """Whether the mask leaves a pair, from how far the key is after the query's own; overwrites
    `distance`.
    """
    rule = MASKS[p.mask].by_distance
    assert rule is not None
    return rule(p, distance)


def padded_keys(problem: Problem, device: torch.device) -> Tensor | None:
    """True for keys that are padding, [batch, kv_seq_len]; None under another mask."""
    if problem.mask != "padding":
        return None
    lengths = [padded_length(problem, entry) for entry in range(problem.batch)]
    keys = torch.arange(problem.kv_seq_len, device=device)
    return keys >= torch.tensor(lengths, device=device)[:, None]


def computed_rows(problem: Problem, device: torch.device) -> Tensor:
    """The queries that backends compute: all but the leading ones that a causal mask empties."""
    return torch.arange(problem.empty_rows, problem.seq_len, device=device)


def fully_masked_rows(problem: Problem, rows: Tensor) -> Tensor | None:
    """True for each of these queries that sees no key, [rows]; None if the mask has no such query.

    Does not count the leading queries of a causal problem, which `computed_rows` leaves out.
    """
    if not has_no_rule(problem):
        return None
    matrix = mask_matrix(problem, rows)
    assert matrix is not None
    return matrix[0].any(-1).logical_not_()


def materialized_mask(problem: Problem, device: torch.device) -> Tensor | None:
    """The mask as a caller would pass it, bool [computed rows, kv_seq_len], True where a pair
    attends; None for masks that have a rule.

    Made once before the call and counted as an input. Fully masked queries attend to every key in
    it, so that no softmax runs over nothing; layer.as_call then sets their output to zero.
    """
    if not has_no_rule(problem):
        return None
    rows = computed_rows(problem, device)
    matrix, fully_masked = mask_matrix(problem, rows), fully_masked_rows(problem, rows)
    assert matrix is not None
    assert fully_masked is not None
    return matrix[0].logical_or_(fully_masked[:, None])


# ---- a mask tensor that a caller passes ----------------------------------------------------------
# As in torch.nn.functional.scaled_dot_product_attention: boolean, True where a query attends to a
# key; or of a floating dtype, added to the scores before the softmax.


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
