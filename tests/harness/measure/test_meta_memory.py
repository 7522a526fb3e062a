"""The prediction by following tensors without memory: equal to what is measured, cheap, and silent
where it would be wrong.
"""

import resource
from dataclasses import replace
from functools import partial

import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.measure import meta_memory as meta
from attnbench.harness.measure.meta_memory import meta_peak_bytes
from attnbench.harness.scenario.preflight import preflight
from attnbench.impls import Problem, load
from tests.counted_calls import calls
from tests.harness.measure.test_peak_memory import weighed

CPU = torch.device("cpu")
# bytes beside the numbers of 8 bytes, one per head, that autograd keeps and the meta device does
# not show
KEPT_NUMBERS = 64
SMALL = Problem(batch=2, seq_len=64, d_model=64, heads=4)
ALIGNED = {"causal": True, "causal_align": "bottom_right"}
OWN_KERNELS = ("sdpa", "sdpa:math", "sdpa:flash")
SHAPES = [
    replace(SMALL, batch=1, seq_len=200, kv_seq_len=200),
    replace(SMALL, kv_heads=2),
    replace(SMALL, seq_len=48, kv_seq_len=80, **ALIGNED),
    replace(SMALL, seq_len=80, kv_seq_len=48, kv_heads=1, **ALIGNED),
    Problem(batch=2, seq_len=33, d_model=64, heads=4, causal=True, d_k=8, d_v=24),
    Problem(batch=1, seq_len=8, d_model=256, heads=64, kv_heads=8),
    Problem(batch=1, seq_len=1, d_model=4, heads=1),
    replace(SMALL, batch=3, kv_heads=2, mask="padding", causal=True),
    replace(SMALL, mask="random"),
    Problem(batch=1, seq_len=150, d_model=64, heads=4, mask="blocks", window=2),
    replace(SMALL, kv_heads=1, mask="local", window=8, causal=True),
    replace(SMALL, kv_heads=2, mask="chunked", window=16, causal=True, softcap=2.0),
    replace(SMALL, kv_heads=1, sinks=True, softcap=2.0),
    replace(SMALL, batch=3, mask="padding", sinks=True),
    Problem(batch=1, lengths="q150_q33_2q1", d_model=64, heads=4, kv_heads=2, causal=True),
    Problem(batch=1, lengths="q40_2q3s70_4q1s9", d_model=64, heads=4, causal=True, softcap=2.0),
    replace(SMALL, seq_len=16, kv_seq_len=80, mask="tree", window=3, **ALIGNED),
]


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
@pytest.mark.parametrize("name", ["naive", "fused"])
def test_the_meta_device_predicts_what_is_measured(name, scope, passes):
    for shape in SHAPES:
        problem = replace(shape, scope=scope, passes=passes)
        predicted, reason = meta_peak_bytes(problem, load(name), CPU)
        assert reason == ""
        allowed = KEPT_NUMBERS + 8 * problem.heads if problem.backward else 16
        assert 0 <= weighed(name, problem).peak_bytes - predicted <= allowed, problem


@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
@pytest.mark.parametrize("name", ["naive", "fused"])
def test_sizes_beyond_any_memory_cost_nothing(name, passes):
    problem = Problem(batch=1, seq_len=65536, d_model=2048, heads=16, dtype="bf16", passes=passes)
    cuda = torch.device("cuda")  # half precision is plain there; nothing runs on it
    small = replace(problem, seq_len=512)
    meta_peak_bytes(small, load(name), cuda)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    predicted, reason = meta_peak_bytes(problem, load(name), cuda)
    work = [calls(partial(meta_peak_bytes, one, load(name), cuda)) for one in (small, problem)]
    assert work[1] < 1.1 * work[0]
    assert reason == ""
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident < 8 << 10
    assert 0 <= load(name).peak_bytes(problem, cuda, 2) - predicted <= 8 * problem.heads


@pytest.mark.parametrize(
    ("name", "dtype", "why"),
    [
        *((name, "fp32", f"{name} is not made of plain operations only") for name in OWN_KERNELS),
        ("fused", "bf16", "bf16 operations on cpu use buffers of their own"),
    ],
)
def test_kernels_and_buffers_of_their_own_are_not_followed(name, dtype, why):
    problem = Problem(batch=1, seq_len=16, d_model=16, heads=2, dtype=dtype)
    assert meta_peak_bytes(problem, load(name), CPU) == (None, why)


def test_what_fails_or_takes_too_long_on_the_meta_device_is_a_reason(tmp_path, monkeypatch):
    (tmp_path / "reads_numbers.py").write_text(
        "PLAIN_OPERATIONS = True\n"
        "def prepare(problem, inputs, weights):\n"
        "    return lambda: inputs.value if inputs.query.sum().item() > 0 else inputs.value * 2\n"
    )
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    problem = Problem(batch=1, seq_len=16, d_model=16, heads=2)
    predicted, reason = meta_peak_bytes(problem, load("reads_numbers"), CPU)
    assert predicted is None
    assert reason.startswith("not on the meta device: ")
    monkeypatch.setattr(meta, "MAX_OPERATIONS", 10)
    assert meta_peak_bytes(problem, load("naive"), CPU) == (
        None,
        "not on the meta device: more than 10 operations",
    )


SUMS = """
PLAIN_OPERATIONS = True
def prepare(problem, inputs, weights):
    def call():
        q, k, v = inputs
        s = (q @ k.mT) * problem.scale
        # sums of our own, in both passes; s is used four times
        p = (s + s.exp() - s).softmax(-1) + s * 0
        return p @ v + (p @ v) * 0
    return call
"""


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
def test_only_the_sums_of_the_autograd_engine_are_in_place(passes, tmp_path, monkeypatch):
    (tmp_path / "sums.py").write_text(SUMS)
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    problem = Problem(batch=1, seq_len=64, d_model=32, heads=2, passes=passes)
    predicted, reason = meta_peak_bytes(problem, load("sums"), CPU)
    assert reason == ""
    assert abs(weighed("sums", problem).peak_bytes - predicted) <= KEPT_NUMBERS


def memory_fields(backend: str, **changes: object) -> dict:
    problem = Problem(**{"batch": 1, "seq_len": 64, "d_model": 32, "heads": 4, **changes})
    return preflight(Case(backend=backend, problem=problem), CPU, 1 << 40, meta="always").fields


def test_the_formula_counts_and_the_meta_device_stands_in_where_there_is_none():
    both = memory_fields("fused")
    assert both["predicted_source"] == "formula"
    assert both["predicted_peak_bytes"] == both["meta_peak_bytes"]
    assert (both["predicted_reason"], both["meta_reason"]) == ("", "")
    alone = memory_fields("naive", scope="layer", passes="forward+backward")
    assert alone["predicted_source"] == "meta"
    assert alone["predicted_peak_bytes"] == alone["meta_peak_bytes"] > 0
    assert alone["predicted_reason"] == ""
    neither = memory_fields("sdpa:math", passes="forward+backward")
    names = ("predicted_source", "predicted_peak_bytes", "meta_peak_bytes")
    assert {neither[name] for name in names} == {None}
    assert "no formula" in neither["predicted_reason"]
    assert "plain operations" in neither["meta_reason"]
