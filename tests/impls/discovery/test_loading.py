from collections.abc import Callable
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


ENDS = {"causal": True, "causal_align": "bottom_right"}


@pytest.mark.parametrize(
    ("changes", "causal"),
    [
        ({"causal": True}, True),
        ({}, False),
        ({"seq_len": 4, "kv_seq_len": 9, **ENDS}, True),
        ({"seq_len": 1, "kv_seq_len": 9, **ENDS}, False),  # it sees every key: no triangle
        ({"seq_len": 1, "kv_seq_len": 9, "causal": True, "causal_align": "top_left"}, True),
    ],
)
def test_a_plain_callable_gets_causal_and_scale_and_the_corner_if_it_takes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict, causal: bool
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "returning.py").write_text(
        "def attend(q, k, v, *, causal, scale): return q.shape, k.shape, v.shape, causal, scale\n"
        "def with_one(q, k, v, *, causal, scale, causal_align): return causal, causal_align\n"
    )
    shape = {"batch": 2, "seq_len": 6, "d_model": 16, "heads": 4, "kv_heads": 2, "d_k": 3, "d_v": 5}
    p = Problem(**shape | changes)
    backend, inputs = load("attend@returning"), make_inputs(p, CPU, 0)
    keys = (2, 2, p.kv_seq_len)
    sizes = (2, 4, p.seq_len, 3), (*keys, 3), (*keys, 5)
    assert backend.prepare(p, inputs, None)() == (*sizes, causal, p.scale)
    given = p.causal, p.causal_align or "top_left"
    assert load("with_one@returning").prepare(p, inputs, None)() == given
    assert backend.why_not(p, CPU) is None
    assert not backend.compiles
    assert backend.pinned_kernel is None
