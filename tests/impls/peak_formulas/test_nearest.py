"""What stands in for a missing formula is a bound: no call takes more."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from attnbench.impls import Problem, load
from attnbench.impls.peak_formulas import FAMILIES, flash, nearest
from tests.budget import first
from tests.impls.peak_formulas.test_peak_bytes import measured_peak

pytestmark = pytest.mark.filterwarnings("ignore")  # the profiler's warnings without a GPU

CPU = torch.device("cpu")
SCALARS = 64  # bytes of scalars that torch wraps as tensors for a moment
PROBLEM = Problem(batch=1, seq_len=256, d_model=128, heads=4)
TRAINING = {"passes": "forward+backward"}
CHANGES: list[dict] = [{}, {"causal": True}, {"kv_heads": 1}, TRAINING, {**TRAINING, "kv_heads": 1}]
LARGE_TILES: list[dict] = [  # beside small inputs
    {"seq_len": 1, "kv_seq_len": 700},
    {"seq_len": 1, "kv_heads": 1},
    {"seq_len": 800, "d_model": 8, "heads": 1, "kv_heads": 1},
]
SCORES: list[dict] = [{"softcap": 2.0}, {"sinks": True}]
WINDOWS: list[dict] = [
    {"causal": True, "mask": mask, "window": 32, "kv_heads": kv_heads}
    for mask in ("local", "chunked")
    for kv_heads in (1, 4)
]
WINDOWS += [{"kv_seq_len": 512, "causal": True, "causal_align": "bottom_right", "kv_heads": 1}]
PLAIN = ["naive", "fused", "hf:eager"]
BACKENDS = [*PLAIN, "sdpa", "sdpa:math", "sdpa:flash", "hf:sdpa", "hf"]
CASES = [*product(BACKENDS, CHANGES)]
CASES += product(["sdpa", "sdpa:flash", "hf:sdpa", "hf"], LARGE_TILES)
CASES += product([*PLAIN, "sdpa", "hf:sdpa", "hf"], WINDOWS)
CASES += [(name, change | score) for name in PLAIN for change in ({}, TRAINING) for score in SCORES]


def bound(backend: str, problem: Problem) -> int | None:
    """The first that has a formula, as the prediction of a wall takes it."""
    for near in nearest(backend, problem, torch.get_num_threads()):
        found = load(near.backend).peak_bytes(near.problem, CPU, torch.get_num_threads())
        if found is not None:
            return found + near.more_bytes
    return None


@pytest.mark.parametrize(("backend", "changes"), CASES, ids=str)
@pytest.mark.parametrize("dtype", first(2, ["fp32", "bf16", "fp16"]))
def test_no_call_takes_more_than_its_bound(backend: str, dtype: str, changes: dict) -> None:
    if backend.startswith("hf"):
        pytest.importorskip("transformers")
    problem = replace(PROBLEM, dtype=dtype, **{"kv_heads": PROBLEM.heads, **changes})
    most = bound(backend, problem)
    if most is None:
        assert (dtype == "fp32" and backend not in FAMILIES) or backend == "sdpa:math"
        return
    assert measured_peak(backend, problem) <= most + SCALARS


def test_only_what_amx_copies_is_added_to_the_bound_in_bf16(monkeypatch) -> None:
    found = {}
    for flags in ("avx512_bf16", "amx_bf16"):
        monkeypatch.setattr(flash, "cpu_flags", lambda flags=flags: {flags})
        for dtype in ("bf16", "fp16"):
            problem = replace(PROBLEM, kv_heads=PROBLEM.heads, dtype=dtype)
            found[flags, dtype] = flash.flash_bytes_in_half(problem, 2)
    without, with_amx = found["avx512_bf16", "bf16"], found["amx_bf16", "bf16"]
    # keys and values of 4 heads, and a tile of keys of each thread, as torch 2.13 took them
    assert with_amx - without == 2 * 65536 + 32768
    assert found["avx512_bf16", "fp16"] == found["amx_bf16", "fp16"] == without
