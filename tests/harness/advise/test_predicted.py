"""What formulas say of a call's bytes is what the backends say, and costs no import of torch."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnbench.harness.advise.predicted import peak
from attnbench.harness.advise.shapes import implementations
from attnbench.impls import Problem, load, missing
from attnbench.impls.discovery.loading import described
from tests.conftest import environment, ran
from tests.impls.conftest import MASKED, PROBLEMS, SCORED

ASKED = [
    replace(one, dtype=dtype, passes=passes)
    for one in (*PROBLEMS.values(), *SCORED.values(), *MASKED.values())
    if one.mask in ("none", "local", "chunked") and not one.lengths
    for dtype in ("fp32", "bf16")
    for passes in ("forward", "forward+backward")
]
NAMES = [one.backend for own in (True, False) for one in implementations(by_transformers=not own)]
LAYER = Problem(batch=1, seq_len=64, d_model=128, heads=4, kv_heads=2, causal=True)
WITHOUT_A_GPU = ("hf:eager", "hf:sdpa", "hf:flash_attention_2", "fused", "sdpa")
FORMULAS_ONLY = """
import sys
sys.argv = ["attnbench", "advise", *sys.argv[1:]]
from attnbench.harness.verbs.app import main
try:
    main()
finally:
    print(*({"torch", "pandas", "transformers"} & sys.modules.keys()), file=sys.stderr)
"""
THREADS = """
from attnbench.harness.advise.predicted import usual_threads
from attnbench.harness.devices.environment import fix_threads
import torch
fix_threads()
print(usual_threads(), torch.get_num_threads())
"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_backend_refuses_and_predicts_as_described(name: str, device: str) -> None:
    if missing(name) or (device == "cuda" and name not in WITHOUT_A_GPU):
        pytest.skip("cannot be asked here")
    there, own, described_one = torch.device(device), load(name), described(name)
    for problem in ASKED:
        assert described_one.why_not(problem, there) == own.why_not(problem, there)
        told = described_one.peak_bytes(problem, there, 2)
        assert told == own.peak_bytes(problem, there, 2)


@pytest.mark.parametrize(
    ("backend", "dtype", "value", "words"),
    [
        ("sdpa", "fp32", 4 * (64 * 128 + 4 * 64), "by the formula"),  # and tiles of each thread
        ("hf:sdpa", "bf16", 4 * (64 * 128 + 4 * 64), "at most what sdpa needs in fp32"),
        (
            "hf:flash_attention_2",
            "bf16",
            None,
            "flash_attention_2 needs a CUDA device; this is cpu",
        ),
        (
            "hf:flex_attention",
            "fp32",
            None,
            "no formula for hf:flex_attention on cpu",
        ),
    ],
)
def test_it_says_whose_formula_it_is(
    backend: str, dtype: str, value: int | None, words: str
) -> None:
    if missing(backend):
        pytest.skip("transformers is not installed")
    found = peak(backend, replace(LAYER, dtype=dtype), "cpu")
    assert (found.words, found.at_most) == (words, words.startswith("at most"))
    assert found.value == value or (value is not None and (found.value or 0) > value)


@pytest.mark.long
def test_formulas_alone_need_no_torch(tmp_path: Path) -> None:
    asked = ["gemma-3-4b", "--context=32k", "--phase=prefill,chunk,decode,verify,training"]
    command = [sys.executable, "-c", FORMULAS_ONLY, *asked, f"--out={tmp_path}", "--device=cpu"]
    done = ran(command, check=True)
    assert "memory below is computed" in done.stdout
    assert done.stderr.strip() == ""


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "7"}])
def test_threads_are_those_of_a_worker(given: dict[str, str]) -> None:
    kept = {name: value for name, value in environment().items() if name != "OMP_NUM_THREADS"}
    done = ran([sys.executable, "-c", THREADS], env=kept | given, check=True)
    assert len(set(done.stdout.split())) == 1
