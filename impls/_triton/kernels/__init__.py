"""Attention in tiles with an online softmax, forward and backward, in Triton.

Follows Dao 2023, FlashAttention-2, and uses its names: m_i is the running maximum of the scores,
l_i the running sum of their exponentials, acc the unnormalized output, alpha the factor that
rescales both sums. Written from scratch for this project. One program owns one tile of queries (or,
for the gradients of keys and values, of keys) and iterates over the other side. Blocks that every
query of the tile sees whole take a path without masks; those on an edge of the mask and at the end
take another. There are no atomic additions, so results are the same from run to run. The softmax
works with powers of 2: scores have a factor log2(e).

A tensor's `*_strides` are [batch, head, row, column], in elements, of any size: offsets are 64 bits
wide. `key_mask` has one byte per key, or is None. `lse` is the log-sum-exp of the scaled scores to
base 2, -inf for a query that sees no key, and `delta` the sum over columns of o * do; both are
[batch, heads, n_q], contiguous, fp32. Query i stands at key i + offset, and sees no later key if
CAUSAL. Under a BAND, "local" or "chunked" (masks/rules.py), it sees only keys around it; `window`
is None without one. `cap_factor`, if not None, is scale / softcap, and `scale_log2` then softcap *
log2(e), else scale * log2(e). `sinks` [heads] are scores without a value, or None. `group` query
heads share a key/value head. Widths that are not powers of two are padded with zeros (PAD_K, PAD_V)
in registers only.

If `q_starts` is not None, sequences lie one after the other in the one row of a batch: it and
`kv_starts` [sequences + 1] say where, n_q and n_kv are those of the longest, `packed_rows` is the
number of all queries, and the queries of each sequence are the last of its keys.

If `page_table` is not None, k and v are pools of pages, [pages, kv_heads, PAGE, width], and it
names the pages of each sequence in order, [batch, ceil(n_kv / PAGE)]. The forward kernel looks up
the page of each key of a tile, so that pages and tiles may have any size.

The tensors that a program iterates over (k and v; in the last kernel q and do) are pointers or, if
DESCRIPTORS, tensor descriptors: from compute capability 9.0 on, one instruction then copies a whole
tile.
"""

from .backward import grad_kv_kernel, grad_q_kernel
from .forward import forward_kernel

__all__ = ["forward_kernel", "grad_kv_kernel", "grad_q_kernel"]
