"""What compiled backends rely on.

Torch's back ends without a C++ compiler replace the real one, which test_agreement.py uses.
"""

import sysconfig
from functools import partial
from typing import Any

import pytest
import torch

from attnbench.impls import load, make_inputs, make_weights
from attnbench.impls.backend import leaves
from attnbench.impls.shared import inductor
from tests.budget import first
from tests.impls.conftest import shaped

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The graphs of autograd's part of the compiler; the rest of the compiler does not run."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    graphs: list[object] = []

    def keep(graph: torch.fx.GraphModule, example_inputs: object) -> object:
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    monkeypatch.setattr(
        torch, "compile", partial(torch.compile, backend=aot_autograd(fw_compiler=keep))
    )
    return graphs


@pytest.mark.long
def test_each_call_keeps_its_own_code_however_many_shapes_there_are(
    compilations: list[object],
) -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    several = [inductor.compiled(doubled) for _ in range(12)]
    for _ in range(2):
        for n, call in enumerate(several, 1):
            assert torch.equal(call(torch.ones(n)), torch.full((n,), 2.0))
    assert len(compilations) == 12
    for n in range(1, 9):
        torch.compile(doubled, fullgraph=True, dynamic=False)(torch.ones(n))
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):  # what it is for
        torch.compile(doubled, fullgraph=True, dynamic=False)(torch.ones(9))


@pytest.mark.parametrize(
    "asked", first(2, ["forward core", "forward+backward layer", "backward core"])
)
def test_all_is_compiled_before_the_call_is_timed(asked: str, compilations: list[object]) -> None:
    passes, scope = asked.split()
    problem = shaped(1, 8, 16, 2, causal=True, passes=passes, scope=scope)
    inputs = make_inputs(problem, CPU, 0)
    weights = make_weights(problem, CPU, 0) if scope == "layer" else None
    backend = load("compiled")
    call = backend.prepare(problem, inputs, weights)
    compiled = len(compilations)
    assert compiled == (2 if problem.backward else 1)
    with torch.set_grad_enabled(problem.backward), backend.context(problem):
        output = call()
        for _ in range(2):
            if problem.backward:
                targets, gradient = leaves(inputs, weights), torch.randn_like(output)
                again = passes == "backward"
                torch.autograd.grad(output, targets, gradient, retain_graph=again)
                output = output if again else call()
    assert len(compilations) == compiled


NO_CXX = (
    "torch.compile needs a C++ compiler, and there is no no-such-compiler: apt-get install g++, or"
    " name one in CXX"
)
NO_CC = (
    "Triton needs a C compiler, and there is no {}: apt-get install gcc libc6-dev, or name one in"
    " CC"
)
NO_HEADERS = (
    "{} needs Python's C headers, and there is no Python.h in /no/include: apt-get install"
    " python3-dev"
)
NO_TRITON = "torch.compile needs triton, which is not installed: pip install triton"
OLD = "torch.compile needs a GPU of compute capability 7.0 or newer; this one has 6.1"
LACKING: list[tuple[torch.device, dict[str, Any], str]] = [
    (CPU, {"CXX": "no-such-compiler"}, NO_CXX),
    (CPU, {"CXX": "python3", "headers": "/no/include"}, NO_HEADERS.format("torch.compile")),
    (CUDA, {"triton": None}, NO_TRITON),
    (CUDA, {"headers": "/no/include"}, NO_HEADERS.format("Triton")),
    (CUDA, {"age": (6, 1)}, OLD),
    (CUDA, {"CC": "no-such-compiler"}, NO_CC.format("no-such-compiler")),
    (CUDA, {"CC": None, "PATH": "/nowhere"}, NO_CC.format("gcc or clang")),
]


@pytest.mark.parametrize(("device", "here", "said"), LACKING, ids=str)
def test_a_missing_part_is_reported_with_the_command_that_helps(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, here: dict[str, Any], said: str
) -> None:
    """As in images that only run programs: it would end as an error, one row after the other."""
    monkeypatch.setattr(inductor, "find_spec", lambda name: here.get("triton", name))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: here.get("age", (9, 0)))
    if "headers" in here:
        monkeypatch.setattr(sysconfig, "get_path", lambda name: here["headers"])
    for name in {"CC", "CXX", "PATH"} & {*here}:
        monkeypatch.delenv(name, raising=False) if here[name] is None else monkeypatch.setenv(
            name, here[name]
        )
    for name in ("compiled", "flex", *(["triton", "hf:flex_attention"] if "CC" in here else [])):
        assert load(name).unavailable(device) == said
