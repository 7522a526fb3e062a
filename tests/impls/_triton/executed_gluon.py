"""The Gluon kernel compiled for 9.0 and executed in numpy: at every edge, on whole problems by the
harness's check, and what it leaves to the portable kernel.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from attnbench.impls._triton import launch
from attnbench.impls.problem import Dtype
from tests.impls._triton.executed import GLUON, TIMINGS, Problem, complaint
from tests.impls._triton.interpreted_problems import checked
from tests.impls._triton.interpreter import SMALL, main
from tests.impls.conftest import PROBLEMS
from tests.ptxrun.block import Timing
from tests.ptxrun.launched import execute

HOPPER = (9, 0)
ONE_PROGRAM, TWO_PROGRAMS = {"programs": 1}, {"programs": 2}
FULL = Problem(n_q=200, n_kv=610, heads=1, causal=False)
CAUSAL = Problem(n_q=200, n_kv=600, offset=350)
EDGES: dict[str, tuple[Problem, dict[str, Any]]] = {
    "one query and key": (replace(FULL, n_q=1, n_kv=1), {}),
    "one key": (replace(FULL, n_kv=1), {}),
    "many keys": (replace(FULL, n_q=70, n_kv=1000), {}),
    "short lengths": (replace(FULL, n_q=64, n_kv=127), {}),
    "whole tiles": (replace(FULL, n_q=256, n_kv=256, batch=2, heads=6, kv_heads=2), {}),
    "one row more": (replace(CAUSAL, n_q=257, n_kv=129, offset=0), {}),
    "fp16": (replace(FULL, dtype="fp16", n_kv=150), {}),
    "wide keys": (replace(FULL, d_k=128, n_kv=300), {}),
    "wide values": (replace(CAUSAL, d_v=128, n_kv=300, offset=100), {}),
    "padded widths": (replace(FULL, d_k=40, d_v=72, n_kv=130), {}),
    "a program for two units": (CAUSAL, ONE_PROGRAM),
    "a program for all": (replace(FULL, n_kv=200, n_q=300, heads=3), ONE_PROGRAM),
    "two programs": (replace(FULL, n_q=300, n_kv=130, heads=3, kv_heads=3), TWO_PROGRAMS),
    "sections": (replace(CAUSAL, batch=2, heads=4, n_q=300, n_kv=130, offset=0), {"programs": 3}),
    # The second unit of each head, the first half of the queries, sees no key at all.
    "no key": (replace(CAUSAL, n_q=400, n_kv=64, offset=-200), ONE_PROGRAM),
    **{
        f"diagonal at {offset}": (
            Problem(n_q=300, n_kv=300, heads=1, offset=offset), TWO_PROGRAMS,
        )
        for offset in (-400, -129, -70, -64, -1, 1, 31, 100, 400)
    },
}  # fmt: skip


def edges(stages: str) -> dict[str, str]:
    """Complaints by edge; every second one has tensors whose heads lie side by side."""
    config, found = replace(GLUON, stages=int(stages)), {}
    with patch.object(launch, "SECTION_BYTES", 50_000):  # a head or two
        for number, (name, (p, how)) in enumerate(EDGES.items()):
            laid_out = replace(p, merged=number % 2 == 1)
            timing = TIMINGS[number % len(TIMINGS)]
            found[name] = complaint("forward", config, HOPPER, laid_out, timing, strict=True, **how)
    return found


@contextmanager
def executing() -> Iterator[list[launch.Launch]]:
    made: list[launch.Launch] = []

    def start(one: launch.Launch) -> None:
        made.append(one)
        execute(one, HOPPER, Timing())

    with patch.object(launch.Launch, "start", start):
        yield made


def shared_list(dtype: Dtype) -> dict[str, Any]:
    """With the kernels that ran: problems whose rows are not multiples of 16 bytes fit none."""
    found = {}
    for name, problem in PROBLEMS.items():
        with executing() as made:
            result = checked(replace(problem, dtype=dtype), (GLUON, *SMALL[1:]))
        found[name] = result | {"kernels": [one.kernel.__name__ for one in made]}
    return found


def refusals() -> dict[str, list[Any]]:
    """The kernel that is launched, and why not the one in Gluon."""
    q, k, v = (torch.randn(2, 2, n, 64).half() for n in (37, 50, 50))
    mask = torch.ones(2, 50, dtype=torch.bool)
    found = {
        "taken": asked(q, k, v),
        "a key mask": asked(q, k, v, mask),
        "fp32": asked(q.float(), k.float(), v.float()),
        "wide heads": asked(*(x.repeat_interleave(3, 3) for x in (q, k, v))),
        "columns apart": asked(*(x.mT.contiguous().mT for x in (q, k, v))),
        "one for all heads": asked(*(x[:, :1].expand_as(x) for x in (q, k, v))),
    }
    with patch.object(launch, "_missing_for_gluon", lambda: "Triton 3 has not the Gluon"):
        return found | {"no Gluon": asked(q, k, v)}


def asked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> list[Any]:
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3])
    setting = Problem(n_q=37, n_kv=50).setting
    made = launch.forward(q, k, v, mask, o, lse, setting=setting, config=GLUON)
    return [made.kernel.__name__, made.why_not]


if __name__ == "__main__":
    main(globals())
