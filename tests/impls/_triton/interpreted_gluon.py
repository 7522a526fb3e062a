"""The Gluon kernel on whole problems, by the harness's check: its source runs on the CPU, the
kernels of the gradients in Triton's interpreter.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from attnbench.impls._triton import launch
from attnbench.impls._triton.configs import Config
from attnbench.impls.problem import Dtype
from tests.impls._triton.gluon_emulator import Emulator
from tests.impls._triton.interpreted_operator import VIEWS, plain, run
from tests.impls._triton.interpreted_problems import checked
from tests.impls._triton.interpreter import SMALL, Configs, main
from tests.impls.conftest import PROBLEMS

GLUON: Configs = (Config(128, 128, 8, 2, descriptors=True, gluon=True), *SMALL[1:])


@contextmanager
def emulated() -> Iterator[list[launch.Launch]]:
    """Launches of the Gluon kernel run on the CPU; yields all launches."""
    emulator = Emulator()
    made: list[launch.Launch] = []
    start = launch.Launch.start

    def start_here(one: launch.Launch) -> None:
        made.append(one)
        if one.config.gluon:
            emulator.launch(min(one.programs, 3), one.arguments, one.constants)
        else:
            start(one)

    with patch.object(launch.Launch, "start", start_here):
        yield made


def shared_list(dtype: Dtype) -> dict[str, Any]:
    """With the kernels that ran: problems whose rows are not multiples of 16 bytes fit none."""
    found = {}
    for name, problem in PROBLEMS.items():
        with emulated() as made:
            result = checked(replace(problem, dtype=dtype), GLUON)
        found[name] = result | {"kernels": [one.kernel.__name__ for one in made]}
    return found


def refusals() -> dict[str, list[Any]]:
    """The kernel that ran, why not the one in Gluon, and whether the result is right."""
    generator = torch.Generator().manual_seed(5)

    def tensor(heads: int, n: int, width: int) -> Tensor:
        return torch.randn(2, heads, n, width, generator=generator).half()

    q, k, v = tensor(2, 37, 64), tensor(2, 50, 64), tensor(2, 50, 64)
    wide = [x.repeat_interleave(3, 3) for x in (q, k, v)]
    apart, shared = ([VIEWS[name](x) for x in (q, k, v)] for name in VIEWS if name in APART)
    mask = torch.rand(2, 50, generator=generator) > 0.3
    found = {
        "taken": tried(q, k, v),
        "a key mask": tried(q, k, v, mask),
        "fp32": tried(q.float(), k.float(), v.float()),
        "wide heads": tried(*wide),
        "columns apart": tried(*apart),
        "one for all heads": tried(*shared),
    }
    with patch.object(launch, "_missing_for_gluon", lambda: "Triton 3 has not the Gluon"):
        return found | {"no Gluon": tried(q, k, v)}


APART = ("columns apart", "one for all heads")


def tried(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> list[Any]:
    with emulated() as made:
        o, _ = run(q, k, v, mask, configs=GLUON)
    masked = torch.zeros(2, 1, 37, 50, dtype=torch.bool)
    if mask is not None:
        masked = masked | ~mask[:, None, None, :]
    expected = plain(q.double(), k.double(), v.double(), masked)
    right = bool(torch.linalg.vector_norm(o - expected) < 2e-3 * torch.linalg.vector_norm(expected))
    return [made[0].kernel.__name__, made[0].why_not, right]


if __name__ == "__main__":
    main(globals())
