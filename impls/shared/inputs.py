"""The inputs of a problem: their shapes, their order in memory, and random numbers in them.

Numbers are drawn by place: a number depends on the seed, the tensor's name and its place alone.

The place is that in the tensor's shape, as [batch entry or page, head, token, column], whatever the
order in memory. So numbers are equal to the bit on every device, and of a part that is drawn by
itself; torch's generators give a GPU other numbers than a CPU.

A 32-bit hash of place and key (lowbias32 of C. Wellons, https://nullprogram.com/blog/2018/07/31/)
gives two numbers: its halves find them in a table of 65 536 quantiles. Places repeat after 2**33.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from math import log, sqrt
from typing import Literal

import torch
from torch import Tensor

from ..backend import TORCH_DTYPE, Inputs, leaves
from ..problem import Problem
from .kv_tensors import PREFIX, STORED, empty_storage, quantized
from .mask_counts import unmasked_pairs

QUANTILES = 1 << 16
CPU_CHUNK = 1 << 16  # numbers at a time: their buffers stay in a core's second-level cache
GPU_CHUNK = 1 << 22  # few launches, and 50 MB of buffers
AT_ONCE = 64  # sequences or pages that are quantized at once, which needs fp32 copies

Shape = Literal["normal", "uniform"]
"""Of the distribution: variance 1, or from -1 to 1."""


def draw(
    tensor: Tensor,
    name: str,
    seed: int,
    *,
    first: int = 0,
    shape: Shape = "normal",
    around: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Write `around` + `scale` * random numbers into a tensor, behind the back of autograd.

    `first`: the place of its first number, if it is a part of the tensor of that name.
    """
    numbers = _Numbers(name, seed, shape, tensor)
    for part, place in _chunks(tensor.data, numbers.most, first):
        found = numbers.at(place, part.numel())
        if scale != 1.0:
            found.mul_(scale)
        if around:
            found.add_(around)
        part.copy_(found.view(part.shape))


def draw_inputs(
    problem: Problem, inputs: Inputs, seed: int, entries: Sequence[int] | None = None
) -> None:
    """Write the numbers that `make_inputs` gives for this seed into inputs that it has made.

    `entries`: those of the batch that `inputs` has, if not all of `problem`; its page table then
    has the pages that it has in the whole pool.
    Sinks are around the logarithm of the number of keys that a query sees, so that they take about
    half of its weight: beside many keys one of 0 would take nothing, and not be missed.
    """
    p, table = problem, inputs.more.get("page_table")
    pages = None if entries is None or table is None else table.flatten().tolist()
    # Page tables and projections keep their numbers, and scales are drawn with their codes.
    drawn = (one for one in inputs.named().items() if one[0] not in STORED - PREFIX)
    once = {id(tensor): name for name, tensor in reversed([*drawn])}
    for name in once.values():
        tensor, around = inputs.named()[name], 0.0
        if name == "sinks":
            around = log(unmasked_pairs(p) / (p.batch * p.seq_len))
        batched = name in ("query", "key", "value")
        indices = None if not batched else pages if pages and name != "query" else entries
        scale = inputs.more.get(f"{name}_scale")
        for part, first in _parts(tensor, indices):
            if scale is None:
                draw(tensor[part], name, seed, first=first, around=around)
            else:
                _draw_codes(tensor[part], scale[part], name, seed, first)


def draw_once(inputs: Inputs, seed: int) -> None:
    """Write projections and the order of pages, which stay when a sequence gets other numbers."""
    more = inputs.more
    if "page_table" in more:
        table = more["page_table"]
        order = torch.randperm(table.numel(), generator=torch.Generator().manual_seed(seed))
        table.copy_(order.view(table.shape))
    for name in ("w_uk", "w_uv"):
        if name in more:  # keys and values as wide as the latent's numbers
            draw(more[name], name, seed, scale=1 / sqrt(more[name].shape[1]))


def _parts(tensor: Tensor, indices: Sequence[int] | None) -> Iterator[tuple[slice, int]]:
    """What to draw at once, and its first place: all, or one index of the first axis at a time."""
    if indices is None:
        yield slice(None), 0
        return
    for position, index in enumerate(indices):
        yield slice(position, position + 1), index * tensor[0].numel()


def _draw_codes(codes: Tensor, scale: Tensor, name: str, seed: int, first: int) -> None:
    """Normal random numbers, quantized."""
    for some, their in zip(codes.data.split(AT_ONCE), scale.data.split(AT_ONCE), strict=True):
        values = torch.empty(some.shape, device=some.device)
        draw(values, name, seed, first=first)
        first += values.numel()
        found, scales = quantized(values, codes.dtype)
        some.copy_(found)
        their.copy_(scales)


def _chunks(tensor: Tensor, most: int, first: int) -> Iterator[tuple[Tensor, int]]:
    """Parts of at most so many numbers, in the order of places, each with its first place."""
    if tensor.numel() <= most:
        yield tensor, first
        return
    size = tensor[0].numel()
    for part in tensor.split(max(1, most // size)):
        yield from _chunks(part if size <= most else part[0], most, first)
        first += part.numel()


class _Numbers:
    """The numbers of one name and seed, some at a time, in the same memory each time.

    `most`: numbers at a time.
    """

    def __init__(self, name: str, seed: int, shape: Shape, like: Tensor) -> None:
        device = like.device
        self.most = min(like.numel(), CPU_CHUNK if device.type == "cpu" else GPU_CHUNK)
        digest = blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
        self._keys = int.from_bytes(digest[:4]), int.from_bytes(digest[4:])
        self._table = _quantiles(shape).to(device)
        pairs = self.most // 2 + 1  # an odd first place begins in the middle of one
        self._counter = torch.arange(pairs, dtype=torch.int32, device=device)
        self._hash, self._shifted = (torch.empty_like(self._counter) for _ in range(2))
        self._indices = self._counter.new_empty(2 * pairs)
        self._found = torch.empty(2 * pairs, device=device)

    def at(self, first: int, count: int) -> Tensor:
        """Those of so many places from `first` on, fp32, until the next call."""
        skipped = first % 2
        pairs = (skipped + count + 1) // 2
        x, shifted = self._hash[:pairs], self._shifted[:pairs]

        def mix(bits: int) -> None:
            torch.bitwise_right_shift(x, bits, out=shifted)
            x.bitwise_xor_(shifted.bitwise_and_((1 << (32 - bits)) - 1))  # of the sign bit's copies

        torch.add(self._counter[:pairs], _int32(self._keys[0] + first // 2), out=x)
        mix(16)
        x.mul_(_int32(0x7FEB352D))
        mix(15)
        x.bitwise_xor_(_int32(self._keys[1]))  # else other seeds would be other places
        x.mul_(_int32(0x846CA68B))
        mix(16)
        indices, found = self._indices[: 2 * pairs], self._found[: 2 * pairs]
        indices.copy_(x.view(torch.int16)).bitwise_and_((1 << 16) - 1)
        torch.index_select(self._table, 0, indices, out=found)
        return found[skipped : skipped + count]


@lru_cache
def _quantiles(shape: Shape) -> Tensor:
    """In the middle of each of QUANTILES equal parts, fp32; made on the CPU for all devices."""
    middles = (torch.arange(QUANTILES, dtype=torch.float64) + 0.5) / QUANTILES
    found = torch.special.ndtri(middles) if shape == "normal" else 2 * middles - 1
    return found.float()


def _int32(bits: int) -> int:
    """The low 32 bits as a signed number; sums and products in int32 wrap."""
    return (bits + (1 << 31)) % (1 << 32) - (1 << 31)


# ---- the tensors ---------------------------------------------------------------------------------


def make_inputs(problem: Problem, device: torch.device, seed: int, order: str = "heads") -> Inputs:
    """Normal random inputs that require grad if the problem does.

    Equal for equal seeds, on every device and in either order. On device "meta" they have no
    numbers.
    `order`: how tensors of scope "core" lie in memory. "heads": head by head. "model": as a model
    of Hugging Face has them: queries token by token, as projections write them; so are keys and
    values, unless a cache has joined them head by head (`keys_are_cached`).
    """
    made = _empty_inputs(problem, device, order)
    if device.type != "meta":
        draw_once(made, seed)
        draw_inputs(problem, made, seed)
    return _requiring_grad(problem, made)


def made_entries(problem: Problem, entries: Sequence[int], seed: int, once_seed: int) -> Inputs:
    """On the CPU, these entries of the batch of the inputs that `make_inputs` made from `once_seed`
    and `draw_inputs` then drew from `seed`, as the inputs of a smaller batch.
    """
    made = _empty_inputs(replace(problem, batch=len(entries)), torch.device("cpu"), "heads")
    tables = {}
    if problem.page:
        of_entries = made.more["page_table"]
        tables["page_table"] = of_entries.new_empty(problem.batch, of_entries.shape[1])
    whole = replace(made, more={**made.more, **tables})
    draw_once(whole, once_seed)
    for name, table in tables.items():
        made.more[name].copy_(table[list(entries)])
    draw_inputs(problem, made, seed, entries)
    for name in tables:  # of the pages that are here
        made.more[name].copy_(torch.arange(made.more[name].numel()).view_as(made.more[name]))
    return _requiring_grad(problem, made)


def _requiring_grad(problem: Problem, inputs: Inputs) -> Inputs:
    for tensor in leaves(inputs, None):
        tensor.requires_grad_(problem.backward)
    return inputs


def _empty_inputs(p: Problem, device: torch.device, order: str) -> Inputs:
    """Inputs without numbers."""
    dtype = TORCH_DTYPE[p.dtype]

    def by_head(heads: int, tokens: int, width: int) -> Tensor:
        return torch.empty(p.batch, heads, tokens, width, dtype=dtype, device=device)

    def by_token(heads: int, tokens: int, width: int) -> Tensor:
        return by_head(tokens, heads, width).transpose(1, 2)

    if p.scope != "core":
        x = torch.empty(p.batch, p.seq_len, p.d_model, dtype=dtype, device=device)
        cross = p.kv_seq_len != p.seq_len
        source = x.new_empty(p.batch, p.kv_seq_len, p.d_model) if cross else x
        made = Inputs(x, source, source)
    else:
        query = by_token if order == "model" else by_head
        keys = by_head if order == "heads" or keys_are_cached(p) else by_token
        k, v, more = empty_storage(p, dtype, device) or (
            keys(p.kv_heads, p.kv_seq_len, p.d_k),
            keys(p.kv_heads, p.kv_seq_len, p.d_v),
            {},
        )
        made = Inputs(query(p.heads, p.seq_len, p.d_k), k, v, more)
    of_axes = {name: made.query.new_empty(shape) for name, shape in p.tensors.items()}
    return replace(made, more={**made.more, **of_axes})


def keys_are_cached(problem: Problem) -> bool:
    """Whether a model of Hugging Face reads these keys from its cache: a decoder without gradients.

    Its encoder's attention, which is neither causal nor to another length, has no cache, and
    training uses none.
    """
    is_decoder = problem.causal or problem.kv_seq_len != problem.seq_len
    return is_decoder and not problem.backward
