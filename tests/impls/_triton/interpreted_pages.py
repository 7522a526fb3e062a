"""The operator on keys and values in pages of a pool."""

from functools import partial
from itertools import product
from typing import Any

import torch

from tests.impls._triton.conftest import in_pages, pairs_seen
from tests.impls._triton.interpreted_operator import by_tile, equal, run
from tests.impls._triton.interpreter import DESCRIBED, SMALL, poisoned

N_KV = 110
MASKS: tuple[
    tuple[int, int, dict[str, Any]], ...
] = (  # queries, keys that are not masked, the rest
    (20, N_KV, {"causal": False}),
    (20, 70, {"causal": True, "offset": 90}),
    (1, N_KV, {"causal": True, "offset": 109, "band": "local", "window": 20}),
    (20, N_KV, {"causal": True, "offset": 65, "band": "chunked", "window": 40}),
)


def paged(every: str) -> dict[str, bool]:
    """Whether keys in pages give to the bit what they give side by side, with NaN in all keys that
    are masked or in a tile that no query sees; pages without any other key are no longer named.
    """
    found = {}
    cases = [*product((1, 7, 16, 40, 64), MASKS)]
    for page, (n_q, present, mask) in cases[:: int(every)]:
        generator = torch.Generator().manual_seed(page)
        q, k, v = (
            torch.randn(2, heads, n, 16, generator=generator)
            for heads, n in ((4, n_q), (2, N_KV), (2, N_KV))
        )
        key_mask = (torch.arange(N_KV) < present).expand(2, N_KV).clone()
        key_mask[0] = True
        seen = pairs_seen(n_q, N_KV, **{"offset": 0, **mask}).any(0)
        read = by_tile(seen, SMALL["forward"].block_kv) & key_mask  # [batch, n_kv]
        bad_k, bad_v = (torch.where(read[:, None, :, None], x, torch.nan) for x in (k, v))
        *pools, table = in_pages(bad_k, bad_v, page)
        reads_page = torch.nn.functional.pad(read, (0, -N_KV % page)).view(2, -1, page).any(-1)
        unnamed = next(one for one in range(len(pools[0])) if not (table == one).any())
        table = torch.where(reads_page, table, unnamed)
        attend = partial(run, mask=None if present == N_KV else key_mask, **mask)
        with poisoned():
            plainly = attend(q, k, v)
            ours = attend(q, *pools, page_table=table, PAGE=page, n_kv=N_KV, configs=DESCRIBED)
        found[f"{page} {n_q} {present} {mask}"] = equal([*ours], [*plainly])
    return found
