"""Tensors of stored keys and values (kv_storage.py): made, drawn, and read back as plain ones.

    quantized   key, value: codes [batch, kv_heads, n_kv, width], int8 or float8_e4m3fn
                key_scale, value_scale: [batch, kv_heads, n_kv], fp32; a number is code * scale
    paged       key, value, and scales: [pages, kv_heads, page, ...] in place of [batch, kv_heads,
                n_kv, ...]; in memory the heads of a token lie side by side
                page_table: [batch, pages per sequence], int32, the pages of a sequence in order
    latent      key and value: one tensor [batch, 1, n_kv, latent + rope]
                w_uk: [heads * (d_k - rope), latent], w_uv: [heads * d_v, latent]; the last `rope`
                columns of a query and of the cache are multiplied as they are
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor
from torch.nn.functional import linear

from .kv_storage import PLAIN, pages_per_sequence
from .problem import Problem

if TYPE_CHECKING:
    from .backend import Inputs

CODES = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
AT_ONCE = 64  # sequences or pages that are drawn at once: quantizing needs fp32 copies


def empty_storage(
    problem: Problem, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor, dict[str, Tensor]] | None:
    """Keys, values and what else belongs to them, without numbers; None if they are plain."""
    p = problem
    if p.latent:
        cache = torch.empty(p.batch, 1, p.kv_seq_len, p.latent + p.rope, dtype=dtype, device=device)
        rows = {"w_uk": p.heads * (p.d_k - p.rope), "w_uv": p.heads * p.d_v}
        return cache, cache, {name: cache.new_empty(n, p.latent) for name, n in rows.items()}
    if not p.page and p.kv_dtype == PLAIN:
        return None
    pages, dtype = pages_per_sequence(p), CODES.get(p.kv_dtype, dtype)
    whole = (p.batch * pages, p.page) if pages else (p.batch, p.kv_seq_len)
    more: dict[str, Tensor] = {}
    if p.kv_dtype != PLAIN:
        for name in ("key_scale", "value_scale"):
            more[name] = torch.empty(whole[0], p.kv_heads, whole[1], device=device)
    if not pages:
        k, v = (
            torch.empty(p.batch, p.kv_heads, p.kv_seq_len, width, dtype=dtype, device=device)
            for width in (p.d_k, p.d_v)
        )
        return k, v, more
    more["page_table"] = torch.empty(p.batch, pages, dtype=torch.int32, device=device)
    k, v = (
        torch.empty(*whole, p.kv_heads, width, dtype=dtype, device=device).transpose(1, 2)
        for width in (p.d_k, p.d_v)
    )
    return k, v, more


def draw_once(more: dict[str, Tensor], seed: int) -> None:
    """Projections and the order of pages, which stay when a sequence gets other numbers.

    Drawn on the CPU: equal for equal seeds on every device.
    """
    generator = Generator().manual_seed(seed)
    if "page_table" in more:
        table = more["page_table"]
        order = torch.randperm(table.numel(), generator=generator)
        table.copy_(order.view_as(table))
    for name in ("w_uk", "w_uv"):
        if name in more:  # keys and values as wide as the latent's numbers
            weight = torch.randn(more[name].shape, generator=generator)
            more[name].copy_(weight / sqrt(weight.shape[1]))


def draw_codes(codes: Tensor, scale: Tensor, generator: Generator) -> None:
    """Normal random numbers, quantized."""
    for some, their in zip(codes.data.split(AT_ONCE), scale.data.split(AT_ONCE), strict=True):
        values = torch.empty(some.shape, device=some.device).normal_(generator=generator)
        found, scales = quantized(values, codes.dtype)
        some.copy_(found)
        their.copy_(scales)


def quantized(values: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Codes of int8 or float8_e4m3fn like `values` [..., width], and their scales [...], fp32.

    The largest number of a row becomes the largest code; rounded to nearest. A row of zeros has
    scale 1.
    """
    largest = values.float().abs().amax(-1)
    scale = torch.where(largest > 0, largest / LARGEST[dtype], 1.0)
    codes = values.float() / scale[..., None]
    return (codes.round() if dtype == torch.int8 else codes).to(dtype), scale


def multiply(tensor: Tensor, factors: Tensor | float) -> None:
    """In place; codes by 1 and -1 only, which is exact, to the bit."""
    factors = torch.as_tensor(factors, device=tensor.device)
    if tensor.dtype == torch.float8_e4m3fn:  # has a sign bit, and no product in torch
        tensor.view(torch.uint8).bitwise_xor_((factors < 0).to(torch.uint8) << 7)
    else:
        tensor.mul_(factors.to(tensor.dtype))


def is_stored(problem: Problem) -> bool:
    """Whether keys and values are anything but plain tensors."""
    return bool(problem.latent or problem.page or problem.kv_dtype != PLAIN)


def plain(
    problem: Problem,
    inputs: "Inputs",
    dtype: torch.dtype,
    entries: Sequence[int] | None = None,
) -> tuple[Problem, "Inputs"]:
    """The same attention with plain keys and values of `dtype`, [batch, kv_heads, n_kv, width].

    `entries`: those of the batch that `problem`, queries and unpaged keys have; tables and scales
    are of all. Differentiable with a latent.
    """
    if not is_stored(problem):
        return problem, inputs
    if problem.latent:
        weights = {name: inputs.more[name].to(dtype) for name in ("w_uk", "w_uv")}
        k, v = keys_and_values(problem, inputs.key.to(dtype), weights)
    else:
        k, v = read_back(problem, inputs, dtype, entries)
    usual = replace(problem, latent=0, rope=0, page=0, kv_dtype=PLAIN)
    names = {"w_uk", "w_uv", "page_table", "key_scale", "value_scale"}
    more = {name: tensor for name, tensor in inputs.more.items() if name not in names}
    return usual, replace(inputs, key=k, value=v, more=more)


def keys_and_values(
    problem: Problem, cache: Tensor, weights: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Of every head from the latent cache: [batch, heads, n_kv, d_k] and [..., d_v]."""
    p = problem
    latent, rope = cache.split([p.latent, p.rope], -1)  # [batch, 1, n_kv, ...]

    def by_head(weight: Tensor) -> Tensor:
        made = linear(latent[:, 0], weight)  # [batch, n_kv, heads * width]
        return made.unflatten(-1, (p.heads, -1)).transpose(1, 2)

    k = torch.cat([by_head(weights["w_uk"]), rope.expand(-1, p.heads, -1, -1)], -1)
    return k, by_head(weights["w_uv"])


def read_back(
    problem: Problem,
    inputs: "Inputs",
    dtype: torch.dtype,
    entries: Sequence[int] | None = None,
    keys: slice = slice(None),
) -> tuple[Tensor, Tensor]:
    """Keys and values of `dtype` from pages or codes, [batch, kv_heads, n_kv, width]; of `keys`
    only, which begin and end with a page.

    A number is the product in fp32, in float64 if `dtype` is that, rounded once.
    """
    p, more = problem, inputs.more
    table = more.get("page_table")
    if table is not None:
        table = table if entries is None else table[entries]

    def found(stored: Tensor, *, cut: bool) -> Tensor:
        if table is None:
            stored = stored if entries is None or not cut else stored[entries]
            return stored[:, :, keys]
        first, end, _ = keys.indices(p.kv_seq_len)
        pages = table[:, first // p.page : -(-end // p.page)]
        # [batch, pages, kv_heads, page, ...] to [batch, kv_heads, tokens, ...]
        gathered = stored.view(_bits(stored))[pages].transpose(1, 2).flatten(2, 3)
        return gathered.view(stored.dtype)[:, :, : end - first]

    def numbers(name: str, stored: Tensor) -> Tensor:
        codes = found(stored, cut=False)
        if f"{name}_scale" not in more:
            return codes.to(dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        scale = found(more[f"{name}_scale"], cut=True)
        return codes.to(wide).mul_(scale[..., None]).to(dtype)

    return numbers("key", inputs.key), numbers("value", inputs.value)


def _bits(stored: Tensor) -> torch.dtype:
    """A dtype that torch gathers: fp8 is not."""
    return torch.uint8 if stored.dtype == torch.float8_e4m3fn else stored.dtype
