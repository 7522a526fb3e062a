"""The Triton backend: what it refuses, its formula for peak bytes, and its kernels on a real GPU.

tests/impls/_triton checks the kernels without a GPU.
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnbench.impls import Problem, load, make_inputs
from attnbench.impls._triton.configs import KERNELS, Kind, candidates
from attnbench.impls.backend import Inputs
from tests.conftest import ran
from tests.impls._triton.conftest import needs_triton
from tests.impls.conftest import complaints, shaped

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SHAPE = Problem(batch=2, seq_len=64, d_model=128, heads=2)
BOTH = "forward+backward"
CAUSAL: dict[str, Any] = {"causal": True, "passes": BOTH}
DECODE: dict[str, Any] = {"causal": True, "causal_align": "bottom_right"}


@pytest.mark.long
def test_listing_and_refusing_import_no_triton() -> None:
    code = (
        "import sys, torch\n"
        "from attnbench.impls import load, missing, names, Problem\n"
        "names(), missing('triton')\n"
        "problem = Problem(batch=1, seq_len=8, d_model=16, heads=1)\n"
        "reason = load('triton').why_not(problem, torch.device('cpu'))\n"
        "print(reason, 'triton' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code]
    done = ran(command, check=True)
    assert done.stdout == "needs a CUDA device; this is cpu False\n"


def test_the_interpreter_does_not_make_the_backend_available(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert load("triton").unavailable(CPU) == "needs a CUDA device; this is cpu"
    assert load("fused").unavailable(CPU) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"d_k": 257}, "heads are 257 wide; the kernels hold up to 256"),
        ({"d_v": 512}, "heads are 512 wide; the kernels hold up to 256"),
        (
            {"seq_len": 2**31, "kv_seq_len": 2**31},
            "sequences are 2147483648 long; the kernels count up to 1073741824",
        ),
        (
            {"batch": 2**20, "seq_len": 2**15},
            "may need 4294967296 programs in one launch; CUDA starts up to 2147483647",
        ),
        (
            {"batch": 1, "lengths": "2q32", "page": 16},
            "packed sequences whose keys lie in pages are not implemented; leave lengths out",
        ),
        ({"page": 16}, None),
        ({"batch": 2**17, "seq_len": 512, "heads": 8}, None),
        ({"seq_len": 2**20}, None),
        ({"d_k": 256, "d_v": 72, "causal": True}, None),
    ],
)
def test_problems_that_the_kernels_cannot_compute_are_refused(
    changes: dict[str, Any], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))
    assert load("triton").why_not(replace(SHAPE, **changes), CUDA) == reason


def test_bytes_grow_with_n_and_not_with_its_square() -> None:
    backend = load("triton")
    assert backend.peak_bytes(SHAPE, CPU, 1) is None
    short, long = (replace(SHAPE, seq_len=n, kv_seq_len=n, dtype="bf16") for n in (1024, 4096))
    for passes, per_token in (
        ("forward", 2 * (128 * 2 + 2 * 4)),
        ("forward+backward", 2 * (4 * 128 * 2 + 2 * 2 * 4)),
    ):
        assert backend.peak_bytes(replace(short, passes=passes), CUDA, 1) == 1024 * per_token
        assert backend.peak_bytes(replace(long, passes=passes), CUDA, 1) == 4096 * per_token


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize(
    "problem",
    [
        Problem(batch=1, seq_len=16384, d_model=128, heads=2, dtype="bf16", **CAUSAL),
        shaped(
            1, 5000, 256, 2, d_k=128, d_v=96, kv_heads=1, dtype="fp16", passes="forward+backward"
        ),
        Problem(batch=1, seq_len=2000, d_model=512, heads=2, dtype="bf16", **CAUSAL),
        Problem(batch=1, seq_len=2000, d_model=160, heads=2, dtype="fp32", **CAUSAL),
        Problem(batch=1, seq_len=1, kv_seq_len=2**20, d_model=128, heads=1, dtype="bf16"),
        Problem(batch=1, seq_len=2**20, kv_seq_len=512, d_model=128, heads=1, dtype="bf16"),
        shaped(3, 1, 1024, 8, kv_seq_len=70001, kv_heads=2, dtype="bf16", page=16, **DECODE),
        shaped(2, 1999, 512, 4, kv_seq_len=5000, dtype="bf16", page=48, **DECODE),
        Problem(batch=70000, seq_len=3, d_model=16, heads=1, dtype="bf16", **CAUSAL),
    ],
    ids=lambda problem: (
        f"{problem.batch}x{problem.seq_len}x{problem.kv_seq_len}_{problem.d_k}_{problem.dtype}"
    ),
)
def test_long_wide_and_many_problems_are_as_close_on_a_gpu(problem: Problem) -> None:
    assert complaints(problem, ["triton"], 1, "cuda") == {"triton": ""}


def attended(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    place: int = -1,
    offset: int = 0,
    mask: torch.Tensor | None = None,
    causal: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and log-sum-exp in the candidates at this place of their lists: the first, or the
    smallest.
    """
    from attnbench.impls._triton.launch import Setting
    from attnbench.impls._triton.op import attention

    sizes: dict[str, Any] = {"batch": 2, "heads": 2, "d_k": q.shape[3], "d_v": v.shape[3]}
    dtype: Any = {torch.bfloat16: "bf16", torch.float16: "fp16"}[q.dtype]
    problem = Problem(**sizes, d_model=1, seq_len=1024, dtype=dtype, causal=causal)
    kind = Kind.of(problem, gpu="", capability=90)
    configs = {kernel: candidates(kernel, kind)[place] for kernel in KERNELS}
    setting = Setting.of(problem, Inputs(q, k, v), configs)
    more = {"offset": offset, "key_mask": mask if mask is None else mask.view(torch.uint8)}
    return attention(q, k, v, setting._replace(arguments=setting.arguments | more))


@pytest.mark.gpu
@needs_triton
def test_offsets_beyond_32_bits_are_followed_on_a_gpu() -> None:
    """More than 2**32 elements per tensor; the last head is compared with the same head alone."""
    if torch.cuda.get_device_properties(CUDA).total_memory < 60 << 30:
        pytest.skip("needs 60 GiB of GPU memory")
    heads, n = 2**14, 2**12
    q = torch.empty(1, heads, n, 80, dtype=torch.bfloat16, device=CUDA)
    assert q.numel() > 2**32
    q.normal_(generator=torch.Generator(CUDA).manual_seed(3))
    k = v = q[:, :1]
    whole, _ = attended(q, k, v)
    alone, _ = attended(q[:, -1:], k, v)
    assert torch.equal(whole[:, -1:], alone)


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
def test_peak_bytes_are_as_predicted_on_a_gpu(passes: str) -> None:
    """All tensors here are multiples of 512 bytes, the granularity of torch's allocator."""
    shape: dict[str, Any] = {"batch": 2, "seq_len": 1024, "d_model": 512, "heads": 4}
    problem = Problem(**shape, kv_heads=2, dtype="bf16", causal=True, passes=passes)
    inputs = make_inputs(problem, CUDA, seed=1)
    call = load("triton").prepare(problem, inputs, None)
    gradient = torch.ones(2, 4, 1024, 128, dtype=torch.bfloat16, device=CUDA)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    with torch.set_grad_enabled(problem.backward):
        output = call()
        gradients = torch.autograd.grad(output, inputs, gradient) if problem.backward else ()
    measured = torch.cuda.max_memory_allocated() - before
    del output, gradients
    assert measured == load("triton").peak_bytes(problem, CUDA, 1)


@pytest.mark.gpu
@needs_triton
def test_results_repeat_to_the_bit_on_a_gpu() -> None:
    problem = shaped(2, 1000, 256, 4, kv_heads=1, dtype="bf16", **CAUSAL)
    inputs = make_inputs(problem, CUDA, seed=1)
    call = load("triton").prepare(problem, inputs, None)
    gradient = torch.randn(2, 4, 1000, 64, device=CUDA).bfloat16()
    first, again = (
        [output := call(), *torch.autograd.grad(output, inputs, gradient)] for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.gpu
@needs_triton
def test_a_thread_without_a_context_gets_one_on_a_gpu() -> None:
    """As autograd's, with all memory from torch's cache and tiles by descriptors."""
    q, k, v = (torch.randn(1, 2, 256, 64, device=CUDA).bfloat16() for _ in range(3))

    def outputs() -> torch.Tensor:
        return attended(q, k, v, place=0)[0]

    here = outputs().clone()
    outputs()  # its memory is in the cache now
    with ThreadPoolExecutor(1) as pool:
        assert torch.equal(pool.submit(outputs).result(), here)


@needs_triton
def test_each_thread_makes_a_context_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnbench.impls._triton import op

    made: list[int] = []

    class Event:
        def record(self) -> None:
            made.append(threading.get_ident())

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "device_of", lambda tensor: nullcontext())
    on_gpu, on_cpu = SimpleNamespace(is_cuda=True), torch.empty(1)
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            for tensor in (on_cpu, on_gpu, on_gpu):
                pool.submit(op._device_of, tensor).result()
    assert len(made) == 2


@pytest.mark.gpu
@needs_triton
def test_masked_keys_do_not_leak_on_a_gpu() -> None:
    q, k, v = (torch.randn(2, heads, 300, 64, device=CUDA).bfloat16() for heads in (4, 2, 2))
    mask = torch.rand(2, 300, device=CUDA) > 0.5

    def passes(poison: float) -> list[torch.Tensor]:
        tensors = [q.clone(), *(torch.where(mask[:, None, :, None], x, poison) for x in (k, v))]
        o, _ = attended(*(x.requires_grad_() for x in tensors), mask=mask)
        return [o.detach(), *torch.autograd.grad(o, tensors, torch.ones_like(o))]

    clean = passes(0.0)
    assert all(bool(torch.isfinite(x).all()) for x in clean)
    assert all(torch.equal(a, b) for a, b in zip(clean, passes(torch.nan), strict=True))


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("n_q", "n_kv", "d_k", "d_v", "causal", "offset"),
    [
        (1, 1, 64, 64, False, 0),
        (128, 4096, 128, 128, False, 0),
        (1000, 1000, 128, 128, True, 0),
        (1000, 3000, 64, 64, True, 2000),
        (2000, 500, 128, 64, True, -1500),
        (777, 555, 40, 72, False, 0),
        (8192, 8192, 64, 64, True, 0),
    ],
)
def test_the_kernel_in_gluon_agrees_with_the_portable_one_on_a_gpu(
    n_q: int, n_kv: int, d_k: int, d_v: int, causal: bool, offset: int, dtype: torch.dtype
) -> None:
    """Log-sum-exp too, and again: a race would not show each time."""
    if torch.cuda.get_device_capability(CUDA)[0] != 9:
        pytest.skip("needs compute capability 9.x")

    def tensor(heads: int, n: int, width: int) -> torch.Tensor:
        return torch.randn(2, heads, n, width, device=CUDA).to(dtype)

    q, k, v = tensor(8, n_q, d_k), tensor(4, n_kv, d_k), tensor(4, n_kv, d_v)
    how: dict[str, Any] = {"causal": causal, "offset": offset}
    expected, expected_lse = attended(q, k, v, **how)
    for _ in range(20):
        o, lse = attended(q, k, v, place=0, **how)
        assert torch.allclose(o.float(), expected.float(), atol=2e-2, rtol=2e-2)
        assert torch.allclose(lse, expected_lse, atol=1e-3)
