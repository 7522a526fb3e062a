"""Tensors of stored keys and values (axes/kv_storage.py): made, quantized, read back as plain ones.

quantized   key, value: codes [batch, kv_heads, n_kv, width], int8 or float8_e4m3fn
            key_scale, value_scale: [batch, kv_heads, n_kv], fp32; a number is code * scale
paged       key, value, and scales: [pages, kv_heads, page, ...] in place of [batch, kv_heads,
            n_kv, ...]; in memory the heads of a token lie side by side
            page_table: [batch, pages per sequence], int32, the pages of a sequence in order
prefix      prefix_key, prefix_value: [1, kv_heads, prefix, width], of all sequences; key, value:
            [batch, kv_heads, n_kv - prefix, width]
latent      key and value: one tensor [batch, 1, n_kv, latent + rope]
            w_uk: [heads * (d_k - rope), latent], w_uv: [heads * d_v, latent]; the last `rope`
            columns of a query and of the cache are multiplied as they are
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import linear

from ..axes.kv_storage import AS_USUAL, PLAIN, pages_per_sequence
from ..problem import Problem

if TYPE_CHECKING:
    from ..backend import Inputs

CODES = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
FROM_FP8 = {torch.float16: (7, 0x4000, 2.0**8), torch.bfloat16: (4, 0x7800, 2.0**120)}
"""Where e4m3's 7 bits of magnitude go in a wider format, that format's further exponent bits, and
two to the power of the difference of the biases.
"""
PREFIX = {"prefix_key", "prefix_value"}
STORED = {"w_uk", "w_uv", "page_table", "key_scale", "value_scale", *PREFIX}


def empty_storage(
    problem: Problem, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor, dict[str, Tensor]] | None:
    """Keys, values and what else belongs to them, without numbers; None if they are plain."""
    p = problem
    if p.latent:
        cache = torch.empty(p.batch, 1, p.kv_seq_len, p.latent + p.rope, dtype=dtype, device=device)
        rows = {"w_uk": p.heads * (p.d_k - p.rope), "w_uv": p.heads * p.d_v}
        return cache, cache, {name: cache.new_empty(n, p.latent) for name, n in rows.items()}
    if p.prefix:
        k, v, prefix_k, prefix_v = (
            torch.empty(batch, p.kv_heads, tokens, width, dtype=dtype, device=device)
            for batch, tokens in ((p.batch, p.kv_seq_len - p.prefix), (1, p.prefix))
            for width in (p.d_k, p.d_v)
        )
        return k, v, {"prefix_key": prefix_k, "prefix_value": prefix_v}
    if not p.page and p.kv_dtype == PLAIN:
        return None
    pages, dtype = pages_per_sequence(p), CODES.get(p.kv_dtype, dtype)

    def empty(*width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        if not pages:
            shape = (p.batch, p.kv_heads, p.kv_seq_len, *width)
            return torch.empty(shape, dtype=dtype, device=device)
        shape = (p.batch * pages, p.page, p.kv_heads, *width)
        return torch.empty(shape, dtype=dtype, device=device).transpose(1, 2)

    more: dict[str, Tensor] = {}
    if p.kv_dtype != PLAIN:
        more |= {"key_scale": empty(), "value_scale": empty()}
    if pages:
        more["page_table"] = torch.empty(p.batch, pages, dtype=torch.int32, device=device)
    return empty(p.d_k, dtype=dtype), empty(p.d_v, dtype=dtype), more


def quantized(values: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Codes of int8 or float8_e4m3fn like `values` [..., width], and their scales [...], fp32.

    The largest number of a row becomes the largest code; rounded to nearest. A row of zeros has
    scale 1.
    """
    largest = values.float().abs().amax(-1)
    scale = torch.where(largest > 0, largest / LARGEST[dtype], 1.0)
    codes = values.float() / scale[..., None]
    return (codes.round() if dtype == torch.int8 else codes).to(dtype), scale


def from_fp8(codes: Tensor, dtype: torch.dtype) -> Tensor:
    """float8_e4m3fn as `dtype`, exact for all 256 codes.

    torch 2.13 converts number by number on a CPU; the same bits, shifted into a wider format and
    multiplied, are 3 to 7 times faster there. Subnormal numbers must not be flushed.
    """
    if codes.is_cuda:
        return codes.to(dtype)
    half = dtype if dtype in FROM_FP8 else torch.float16
    shift, upper, factor = FROM_FP8[half]
    nan = 0x7F << shift
    bits = codes.view(torch.int8).to(torch.int16)
    bits.bitwise_left_shift_(shift).bitwise_and_(~upper)
    bits.bitwise_or_(bits.bitwise_and(nan).eq_(nan).neg_())  # all bits of a NaN
    return bits.view(half).mul_(factor).to(dtype)


def is_stored(problem: Problem) -> bool:
    """Whether keys and values are anything but plain tensors."""
    return any(getattr(problem, name) != usual for name, usual in AS_USUAL.items())


def plain(problem: Problem, inputs: "Inputs", dtype: torch.dtype) -> tuple[Problem, "Inputs"]:
    """The same attention with plain keys and values of `dtype`, [batch, kv_heads, n_kv, width].

    Differentiable with a latent or a prefix.
    """
    if not is_stored(problem):
        return problem, inputs
    if problem.latent:
        weights = {name: inputs.more[name].to(dtype) for name in ("w_uk", "w_uv")}
        k, v = keys_and_values(problem, inputs.key.to(dtype), weights)
    else:
        k, v = read_back(problem, inputs, dtype)
    usual = replace(problem, **AS_USUAL)
    more = {name: tensor for name, tensor in inputs.more.items() if name not in STORED}
    return usual, replace(inputs, key=k, value=v, more=more)


def keys_and_values(
    problem: Problem, cache: Tensor, weights: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Of every head from the latent cache: [batch, heads, n_kv, d_k] and [..., d_v]."""
    p = problem
    latent, rope = cache.split([p.latent, p.rope], -1)  # [batch, 1, n_kv, ...]

    def by_head(weight: Tensor) -> Tensor:
        made = linear(latent[:, 0], weight)  # [batch, n_kv, heads * width]
        by_token: Tensor = made.unflatten(-1, (p.heads, -1))
        return by_token.transpose(1, 2)

    k = torch.cat([by_head(weights["w_uk"]), rope.expand(-1, p.heads, -1, -1)], -1)
    return k, by_head(weights["w_uv"])


def read_back(
    problem: Problem,
    inputs: "Inputs",
    dtype: torch.dtype,
    keys: slice = slice(None),
    *,
    scaled: bool = True,
) -> tuple[Tensor, Tensor]:
    """Keys and values of `dtype` from pages or codes, [batch, kv_heads, n_kv, width]; of `keys`
    only, which begin with a page; codes alone if not `scaled`. A prefix is
    copied for each sequence.

    A number is the product in fp32, in float64 if `dtype` is that, rounded once.
    """
    if problem.prefix:
        k, v = (with_prefix(problem, inputs, name, keys).to(dtype) for name in ("key", "value"))
        return k, v
    table = inputs.more.get("page_table")
    k, v = (_found(problem, one, table, keys) for one in (inputs.key, inputs.value))
    k_scale, v_scale = scales(problem, inputs, keys) if scaled else (None, None)
    wide = torch.float64 if dtype == torch.float64 else torch.float32

    def numbers(codes: Tensor, scale: Tensor | None) -> Tensor:
        found = dtype if scale is None else wide
        read = from_fp8(codes, found) if codes.dtype == torch.float8_e4m3fn else codes.to(found)
        return read if scale is None else read.mul_(scale[..., None]).to(dtype)

    return numbers(k, k_scale), numbers(v, v_scale)


def with_prefix(problem: Problem, inputs: "Inputs", name: str, keys: slice) -> Tensor:
    """`keys` of each sequence, [batch, kv_heads, keys, width], as a copy; `name`: key or value."""
    first, end, _ = keys.indices(problem.kv_seq_len)
    shared, own = inputs.more[f"prefix_{name}"], inputs.named()[name]
    rest = own[:, :, max(0, first - problem.prefix) : max(0, end - problem.prefix)]
    return torch.cat([shared[:, :, first:end].expand(len(own), -1, -1, -1), rest], 2)


def scales(
    problem: Problem, inputs: "Inputs", keys: slice = slice(None)
) -> tuple[Tensor | None, Tensor | None]:
    """Of keys and of values, [batch, kv_heads, n_kv]; None without codes."""
    if problem.kv_dtype == PLAIN:
        return None, None
    table = inputs.more.get("page_table")
    k, v = (inputs.more[name] for name in ("key_scale", "value_scale"))
    return _found(problem, k, table, keys), _found(problem, v, table, keys)


def _found(problem: Problem, stored: Tensor, table: Tensor | None, keys: slice) -> Tensor:
    """[batch, kv_heads, keys, ...]."""
    if table is None:
        return stored[:, :, keys]
    p, (first, end, _) = problem, keys.indices(problem.kv_seq_len)
    pages = table[:, first // p.page : -(-end // p.page)]
    bits = torch.uint8 if stored.dtype == torch.float8_e4m3fn else stored.dtype  # torch's gather
    whole = stored.transpose(1, 2).view(bits)  # [pages, page, kv_heads, ...], as in memory
    chosen = whole.index_select(0, pages.flatten()).view(stored.dtype)
    tokens: Tensor = chosen.unflatten(0, pages.shape).flatten(
        1, 2
    )  # [batch, tokens, kv_heads, ...]
    return tokens[:, : end - first].transpose(1, 2)
