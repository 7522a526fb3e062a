from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnbench.impls import Problem, load, make_inputs
from tests.impls.discovery.conftest import FAKE, PROBLEM

CPU = torch.device("cpu")


def test_the_variant_reaches_the_backend(folder: Path) -> None:
    (folder / "two_sided.py").write_text(FAKE.format(boom=0))
    inputs = make_inputs(PROBLEM, CPU, 0)
    assert load("two_sided:right").variant == "right"
    assert torch.equal(load("two_sided:right").prepare(PROBLEM, inputs, None)(), 2 * inputs.query)
    assert torch.equal(load("two_sided").prepare(PROBLEM, inputs, None)(), inputs.query)


def test_an_entry_point_is_a_module_an_object_or_a_plain_callable(
    tmp_path: Path, entry_points: Callable
) -> None:
    (tmp_path / "third_party.py").write_text(
        "import math\n"
        "from types import SimpleNamespace as N\n"
        "def prepare(problem, inputs, weights): return lambda: inputs.value\n"
        "inner = N(deep=N(prepare=prepare))\n"
        "def attend(q, k, v, *, causal, scale): return v\n"
    )
    entry_points(
        module="third_party",
        thing="third_party:inner.deep",
        function="third_party:attend",
        number="third_party:math.pi",
    )
    inputs = make_inputs(PROBLEM, CPU, 0)
    for name in ("module", "thing", "function"):
        assert load(name).prepare(PROBLEM, inputs, None)() is inputs.value
    message = (
        r"^number: of type float; wanted attend\(q, k, v, \*, causal, scale\), or something with"
        r" prepare$"
    )
    with pytest.raises(TypeError, match=message):
        load("number")


def test_a_plain_callable_gets_causal_and_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "returning.py").write_text(
        "def attend(q, k, v, *, causal, scale): return q.shape, k.shape, v.shape, causal, scale\n"
    )
    shape = {"batch": 2, "seq_len": 6, "d_model": 16, "heads": 4, "kv_heads": 2, "d_k": 3, "d_v": 5}
    problem = Problem(**shape, causal=True)
    backend = load("attend@returning")
    got = backend.prepare(problem, make_inputs(problem, CPU, 0), None)()
    assert got == ((2, 4, 6, 3), (2, 2, 6, 3), (2, 2, 6, 5), True, problem.scale)
    assert backend.why_not(problem, CPU) is None
    full = replace(problem, kv_seq_len=9, causal=False, causal_align="")
    assert backend.why_not(full, CPU) is None
    assert not backend.compiles
    assert backend.pinned_kernel is None


@pytest.mark.parametrize(
    ("n_q", "align", "causal"),
    [(4, "bottom_right", True), (1, "bottom_right", False), (1, "top_left", True)],
)
def test_a_plain_callable_gets_the_corner_if_it_takes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_q: int, align: str, causal: bool
) -> None:
    """Otherwise no triangle where one query sees every key."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "corners.py").write_text(
        "def without(q, k, v, *, causal, scale): return causal\n"
        "def with_one(q, k, v, *, causal, scale, causal_align): return causal, causal_align\n"
    )
    sizes = {"batch": 1, "seq_len": n_q, "kv_seq_len": 9, "d_model": 16, "heads": 4}
    problem = Problem(**sizes, causal=True, causal_align=align)
    inputs = make_inputs(problem, CPU, 0)
    assert load("without@corners").prepare(problem, inputs, None)() is causal
    assert load("with_one@corners").prepare(problem, inputs, None)() == (True, align)
