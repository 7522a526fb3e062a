"""torch's flex_attention over pages in place: nothing is gathered.

Its block mask names the pages of each sequence. As in
torch.nn.attention.experimental._paged_attention; the mask is made once, in `prepare`.
"""

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from .axes.kv_storage import pages_per_sequence
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .refusals import flex_unavailable_here as unavailable
from .refusals import flex_why_not
from .shared.flex_attention import BLOCK
from .shared.inductor import compile_now, compiled

__all__ = ["prepare", "unavailable", "why_not"]

COMPUTES = ("page",)
COMPILES = True
AVX2_FLOATS = 8  # of a vector; seen 2e6 times as far off as the textbook, and right with 7, 16, 32


def why_not(problem: Problem, device: torch.device) -> str | None:
    if not problem.page:
        return "reads keys and values in pages only; set page"
    if device.type == "cuda" and problem.page % BLOCK:
        return f"flex_attention on a GPU reads blocks of {BLOCK} keys; set page to a multiple of it"
    avx2_only = torch.backends.cpu.get_cpu_capability() == "AVX2"
    if device.type == "cpu" and problem.page == AVX2_FLOATS and avx2_only:
        return "flex_attention of torch 2.13 is wrong over pages of 8 keys on a CPU with AVX2"
    return flex_why_not(problem, device)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    mask = page_mask(problem, inputs.more["page_table"])
    scale, grouped = problem.scale, problem.kv_heads != problem.heads
    pool = [in_one_row(inputs.key), in_one_row(inputs.value)]

    def attend(q: Tensor, _k: Tensor, _v: Tensor) -> Tensor:
        k, v = pool
        o = flex_attention(q, k, v, block_mask=mask, scale=scale, enable_gqa=grouped)
        assert isinstance(o, Tensor)  # a pair only if more outputs are requested
        return o  # [batch, heads, n_q, d_v]

    call = as_call(problem, inputs, weights, compiled(attend), fills=True)
    return compile_now(problem, inputs, weights, call)


def in_one_row(pages: Tensor) -> Tensor:
    """[pages, kv_heads, page, width] as [1, kv_heads, pages * page, width]: a view."""
    return pages.transpose(1, 2).flatten(0, 1).transpose(0, 1)[None]


def page_mask(problem: Problem, table: Tensor) -> BlockMask:
    """`table`: [batch, pages per sequence]. A block of keys is a page of the pool."""
    p, pages, offset = problem, table.numel(), max(problem.causal_offset, 0)
    n_q = p.seq_len - p.empty_rows
    own = torch.arange(pages_per_sequence(p), dtype=torch.int32, device=table.device)
    place = torch.full((p.batch, pages), -1, dtype=torch.int32, device=table.device)
    place.scatter_(
        1, table.long(), own.expand_as(table)
    )  # of a page in the sequence; -1: another's
    others = pages - len(own)
    indices = torch.nn.functional.pad(table, (0, others))  # those behind the count are not read
    blocks = -(-n_q // BLOCK)

    def mask_mod(b: Tensor, _h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        key = place[b, kv // p.page] * p.page + kv % p.page
        within = (key >= 0) & (key < p.kv_seq_len)
        return within & (key <= q + offset) if p.causal else within

    return BlockMask.from_kv_blocks(
        torch.full((p.batch, 1, blocks), len(own), dtype=torch.int32, device=table.device),
        indices[:, None, None].expand(-1, 1, blocks, -1).contiguous(),
        None,
        None,
        BLOCK_SIZE=(BLOCK, p.page),
        mask_mod=mask_mod,
        seq_lengths=(n_q, pages * p.page),
    )
