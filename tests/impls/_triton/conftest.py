import json
import os
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.conftest import ROOT, environment, ran

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs triton: pip install triton"
)


def child(module: str, *arguments: str, **variables: str) -> Any:
    """The output of a process that imports triton, which this one never does."""
    path = os.pathsep.join([str(ROOT / ".package"), str(ROOT)])
    interpreting = str(int(module.startswith("interpreted")))
    extra = {"PYTHONPATH": path, "TRITON_INTERPRET": interpreting, **variables}
    if own := variables.get("TRITON_CACHE_DIR"):  # and notes of launches of its own
        extra.setdefault("ATTNBENCH_CACHE", own)
    done = ran(
        [sys.executable, "-m", f"tests.impls._triton.{module}", *arguments],
        env=environment(extra),
        cwd=ROOT,
        timeout=600,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


A_PART = ("bf16", 6)


@cache
def on_problems(dtype: str, every: int) -> Any:
    """What the interpreter finds on whole problems: of the shared list every so many."""
    checks = (f"shared_list:{dtype}:{every}", f"masks:{dtype}:{-(-every // 2)}")
    return child("interpreted_problems", *checks, "prepared", "noted")


def pairs_seen(
    n_q: int, n_kv: int, *, causal: bool, offset: int, band: str = "", window: int = 0
) -> Tensor:
    """True where a query sees a key, [n_q, n_kv]; the names are those of the operator."""
    positions, keys = torch.arange(n_q)[:, None] + offset, torch.arange(n_kv)
    seen = keys <= positions if causal else keys >= 0 * positions
    if band == "local":
        seen = seen & ((keys - positions).abs() <= window)
    if band == "chunked":
        seen = seen & (keys // window == positions // window)
    return seen


def in_pages(k: Tensor, v: Tensor, page: int) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values [batch, kv_heads, n_kv, width] in pools of pages in random order, and the
    table; NaN in the rest of each last page, and in two pages more, which the table does not name.
    """
    batch, _, n_kv, _ = k.shape
    each = -(-n_kv // page)
    order = torch.randperm(batch * each + 2, generator=torch.Generator().manual_seed(page))
    table = order[2:].view(batch, each)

    def pool(x: Tensor) -> Tensor:
        padded = torch.nn.functional.pad(x, (0, 0, 0, each * page - n_kv), value=torch.nan)
        by_page = padded.unflatten(2, (each, page)).permute(0, 2, 3, 1, 4)
        made = x.new_full((len(order), *by_page.shape[2:]), torch.nan)
        made[table] = by_page  # in memory the heads of a token lie side by side
        return made.transpose(1, 2)

    return pool(k.detach()), pool(v.detach()), table.int()
