"""The Triton kernels without a GPU: correct in Triton's interpreter, compiled for GPUs that are not
here; and, where one is, on it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pytest
import torch

from attnbench import impls
from attnbench.harness.measure.correctness import LIMIT_RATIO, Gate, leaves
from attnbench.impls import Problem, load, make_inputs
from attnbench.impls._triton.configs import (
    FEW,
    FP32,
    KERNELS,
    SMALLEST_BLOCK,
    SPECIALIZING,
    WARP,
    WARPGROUP,
    Config,
    Kernel,
    candidates,
    padded,
)
from tests.conftest import ROOT, environment
from tests.impls.conftest import PROBLEMS

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SHAPE = Problem(batch=2, seq_len=64, d_model=128, heads=2)

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs triton: pip install triton"
)


def child(module: str, *arguments: str, **variables: str) -> Any:
    """What a process with a Triton of its own printed; this one never imports it."""
    extra = {"PYTHONPATH": os.pathsep.join([str(ROOT / ".package"), str(ROOT)]), **variables}
    command = [sys.executable, "-m", f"tests.impls.{module}", *arguments]
    done = subprocess.run(
        command,
        env=environment(extra),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs_triton
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_kernels_are_as_close_as_an_honest_implementation(dtype: str) -> None:
    found = child("interpreted", "shared_list", dtype)
    assert set(found) == {*PROBLEMS, *(f"{name} described" for name in PROBLEMS)}
    assert {
        name: verdict["complaint"] for name, verdict in found.items() if verdict["complaint"]
    } == {}
    assert max(verdict["ratio"] for verdict in found.values()) <= LIMIT_RATIO
    assert all(found[f"{name} described"]["described"] == [True] * 3 for name in PROBLEMS)


@needs_triton
def test_a_layer_of_the_kernels_is_as_close() -> None:
    assert {verdict["complaint"] for verdict in child("interpreted", "layers").values()} == {""}


@needs_triton
def test_kernels_are_as_close_on_shapes_that_hypothesis_draws() -> None:
    found = child("interpreted", "drawn_shapes")
    assert found["examples"] >= 30
    assert 0 < found["ratio"] <= LIMIT_RATIO


@needs_triton
def test_the_judge_notices_every_broken_kernel() -> None:
    found = child("interpreted", "canaries")
    assert found.pop("whole") == [""] * 8
    assert len(found) >= 17
    assert [name for name, complaint in found.items() if not complaint] == []


@needs_triton
def test_padded_batches_are_as_close() -> None:
    found = child("interpreted", "padded_batches")
    assert len(found) == 6
    assert {
        name: verdict["complaint"] for name, verdict in found.items() if verdict["complaint"]
    } == {}


@needs_triton
def test_key_masks_are_as_close() -> None:
    assert max(child("interpreted", "masks").values()) <= LIMIT_RATIO


@needs_triton
def test_what_stands_in_masked_keys_changes_no_bit() -> None:
    found = child("interpreted", "hidden_keys")
    assert len(found) == 4
    assert all(found.values()), found


@needs_triton
def test_queries_that_see_no_key_give_zeros_and_zero_gradients() -> None:
    found = child("interpreted", "blind_queries")
    assert len(found) == 4
    assert all(found.values()), found


@needs_triton
def test_results_do_not_depend_on_strides() -> None:
    found = child("interpreted", "strides")
    assert len(found) == 7
    assert all(found.values()), found


@needs_triton
def test_descriptors_are_used_where_they_fit_and_change_no_bit() -> None:
    found = child("interpreted", "descriptors")
    assert found.pop("masked and summed") == [False, False, False, True, True, False]
    assert {name for name, (used, _) in found.items() if used == [True] * 3} == {
        "merged heads",
        "every second row",
    }
    assert all(same for _, same in found.values()), found


@needs_triton
def test_the_operator_fits_into_torch() -> None:
    found = child("interpreted", "operator")
    assert set(found["opcheck"].values()) == {"SUCCESS"}
    assert found["compiles"]
    assert found["repeats"]
    assert found["merged"]
    assert all(found["layouts"])
    assert not found["lse_has_gradient"]
    assert found["lse_error"] < 1e-5
    pairs = 2 * 2 * 2 * 37 * 50  # two operations, batch, heads, queries, keys
    assert found["flops"] == [pairs * (24 + 20), pairs * (3 * 24 + 2 * 20)]


@needs_triton
def test_the_operator_refuses_what_it_would_read_wrongly() -> None:
    said = child("interpreted", "refusals")
    assert all("wanted" in refusal for refusal in said), said
    assert "q [2, 37, 24]" in said[0]
    assert said[-1] == "scale is 0.0; wanted a positive number"


@needs_triton
def test_peak_bytes_are_as_predicted_to_the_byte() -> None:
    found = child("interpreted", "peaks")
    known = {
        name: (formula, measured)
        for name, (formula, measured) in found.items()
        if formula is not None
    }
    assert len(known) >= len(found) - 1
    assert [name for name, (formula, measured) in known.items() if formula != measured] == []


@needs_triton
@pytest.mark.long
def test_kernels_compile_for_gpus_that_are_not_here_without_spilling(tmp_path: Path) -> None:
    found = child("compiled", "compiled", TRITON_CACHE_DIR=str(tmp_path))
    instructions = {(8, 0): "mma.sync", (9, 0): "wgmma.mma", (10, 0): "tcgen05.mma"}
    assert {tuple(job["capability"]) for job in found} == set(instructions)
    for job in found:
        tensor_cores = job["dtype"] != "fp32" or job["tf32"]
        wanted = (
            instructions[tuple(job["capability"])]
            if job["dtype"] != "fp32"
            else "mma.sync"
            if tensor_cores
            else "fma"
        )
        assert job["instruction"] == wanted, job
        assert job["copies_tiles"] == job["config"]["descriptors"], job
        assert job["specializes"] == job["config"]["specialize"], job
        assert job["shared_bytes"] <= 227 << 10, job
        assert job["masked"] or job["stack_bytes"] == 0, job
    described = {
        (tuple(job["capability"]), job["kernel"]) for job in found if job["config"]["descriptors"]
    }
    assert described == {
        (capability, kernel) for capability in ((9, 0), (10, 0)) for kernel in KERNELS
    }
    assert {
        (tuple(job["capability"]), job["kernel"]) for job in found if job["config"]["specialize"]
    } == {((10, 0), "forward")}


@needs_triton
def test_a_training_step_compiles_what_the_jobs_say(tmp_path: Path) -> None:
    found = child("compiled", "launched", TRITON_CACHE_DIR=str(tmp_path))
    assert found["loaded"] == ["forward_kernel", "grad_q_kernel", "grad_kv_kernel"] * 2
    assert len(found["launch"]) == 6
    assert found["launch"] == found["job"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The stand-in for a GPU has 100 KiB of shared memory, and says of each candidate that it is
    faster than those before.
    """
    found: dict[str, Any] = child(
        "compiled", "tuned", TRITON_CACHE_DIR=str(tmp_path_factory.mktemp("cache"))
    )
    return found


def listed(kernel: Kernel) -> list[list[int]]:
    return [
        config.numbers()
        for config in candidates(
            kernel, capability=(9, 0), item_bytes=2, width=64, n_q=256, causal=True
        )
    ]


def skipped(facts: dict[str, Any]) -> dict[tuple[str, tuple[int, ...]], str]:
    fields = Config.__dataclass_fields__
    return {
        (one["kernel"], tuple(int(one[field]) for field in fields)): one["reason"]
        for one in facts["skipped"]
    }


@needs_triton
@pytest.mark.long
def test_prepare_times_what_fits_into_the_gpu_and_the_call_uses_the_fastest(
    prepared: dict[str, Any],
) -> None:
    found = prepared["timed"]
    too_large = skipped(found["facts"])
    assert set(too_large) == {("forward", (128, 128, 8, 3, described, 0)) for described in (0, 1)}
    assert all(
        reason.startswith("OutOfResources: out of resource: shared memory, Required: ")
        for reason in too_large.values()
    )
    assert found["tried"] == [
        config
        for kernel in KERNELS
        for config in listed(kernel)
        if (kernel, tuple(config)) not in too_large
    ]
    assert found["used"] == [listed(kernel)[-1] for kernel in KERNELS]
    assert found["shape"] == [1, 256, 128]
    assert found["gradients"]


@needs_triton
def test_the_call_says_how_it_is_configured_and_what_that_took(prepared: dict[str, Any]) -> None:
    facts = prepared["timed"]["facts"]
    assert list(facts) == ["configuration", "configuration_source", "tune_ms", "skipped"]
    assert facts["configuration"] == {
        kernel: asdict(Config.of(listed(kernel)[-1])) for kernel in KERNELS
    }
    assert facts["configuration_source"] == "timed"
    assert facts["tune_ms"] > 0


@needs_triton
def test_one_candidate_is_not_chosen_but_taken(prepared: dict[str, Any]) -> None:
    """Short sequences leave no choice; without gradients only the forward kernel is needed."""
    facts = prepared["only"]["facts"]
    assert facts["configuration_source"] == "only"
    assert facts["configuration"] == {"forward": asdict(Config.of(listed("forward")[-1]))}
    assert facts["skipped"] == []


@needs_triton
def test_descriptors_are_not_tried_on_tensors_that_they_do_not_fit(
    prepared: dict[str, Any],
) -> None:
    found = prepared["narrow"]
    assert found["tried"] == [config for config in listed("forward") if not config[4]]
    reasons = {cut: reason for (_, cut), reason in skipped(found["facts"]).items() if cut[4]}
    assert {tuple(config) for config in listed("forward") if config[4]} == set(reasons)
    assert all(reason.startswith("no descriptor fits these tensors") for reason in reasons.values())


@needs_triton
def test_a_candidate_that_does_not_compile_or_computes_wrongly_is_skipped(
    prepared: dict[str, Any],
) -> None:
    reasons = skipped(prepared["broken"]["facts"])
    assert reasons["grad_q", tuple(prepared["failing"])] == "RuntimeError: PassManager::run failed"
    assert (
        reasons["grad_kv", tuple(prepared["lying"])]
        == "gives another result than the candidates without descriptors"
    )
    assert prepared["broken"]["used"] == prepared["timed"]["used"]


@needs_triton
def test_what_a_run_chose_before_is_taken_without_timing_others(prepared: dict[str, Any]) -> None:
    found = prepared["table"]
    assert found["used"] == prepared["timed"]["used"]
    assert found["tried"] == [config for config, _ in groupby(found["used"])]
    assert found["facts"]["configuration_source"] == "table"
    assert found["facts"]["configuration"] == prepared["timed"]["facts"]["configuration"]


@needs_triton
def test_a_choice_that_no_longer_works_is_made_anew(prepared: dict[str, Any]) -> None:
    found = prepared["stale"]
    assert found["facts"]["configuration_source"] == "timed"
    assert found["used"] == [listed("forward")[-2], *prepared["timed"]["used"][1:]]
    assert "RuntimeError: PassManager::run failed" in skipped(found["facts"]).values()


def test_every_problem_has_candidates_and_the_likeliest_come_first() -> None:
    for capability, item_bytes in (
        ((8, 0), 2),
        ((8, 9), 2),
        ((9, 0), 2),
        ((10, 0), 2),
        ((12, 0), 2),
        ((9, 0), 4),
    ):
        for width in (1, 16, 64, 65, 128, 200, 256):
            for n_q, causal in product((1, 16, 17, 10**6), (False, True)):
                for kernel in KERNELS:
                    found = candidates(
                        kernel,
                        capability=capability,
                        item_bytes=item_bytes,
                        width=width,
                        n_q=n_q,
                        causal=causal,
                    )
                    assert 1 <= len(found) <= 6
                    assert not found[0].descriptors  # what is taken unseen runs everywhere,
                    assert not found[-1].descriptors  # and so does the smallest
                    for config in found:
                        assert (
                            config.by_pointers() in found
                        )  # for tensors that descriptors do not fit
                        assert config.descriptors <= (capability >= (9, 0))
                        assert config.specialize <= (
                            config.descriptors
                            and kernel == "forward"
                            and capability >= (10, 0)
                            and not causal
                        )
                    if n_q <= 16 and kernel != "grad_kv":
                        assert all(config.block_q == 16 for config in found)
    assert (
        candidates("forward", capability=(9, 0), item_bytes=2, width=65, n_q=99, causal=True)
        == WARPGROUP["forward"][128]
    )


def test_every_configuration_is_one_that_the_kernels_can_take() -> None:
    tables = (SPECIALIZING, WARPGROUP, WARP, FP32, *FEW.values())
    configs = [
        config
        for table in tables
        for widths in table.values()
        for listed in widths.values()
        for config in listed
    ]
    for config in configs:
        for block in (config.block_q, config.block_kv):
            assert block >= SMALLEST_BLOCK
            assert block & (block - 1) == 0
        assert config.warps in (4, 8)
    assert [padded(width) for width in (1, 16, 17, 64, 96, 129)] == [16, 16, 32, 64, 128, 256]
    assert Config(16, 32, 4, 2, descriptors=True).numbers() == [16, 32, 4, 2, 1, 0]
    assert Config.of([16, 32, 4, 2, 1, 0]) == Config(16, 32, 4, 2, descriptors=True)


def test_listing_and_refusing_import_no_triton() -> None:
    code = (
        "import sys, torch; from attnbench.impls import load, missing, names, Problem; names();"
        " missing('triton'); b = load('triton');print(b.why_not(Problem(batch=1, seq_len=8,"
        " d_model=16, heads=1), torch.device('cpu')), 'triton' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "needs a CUDA device; this is cpu False\n"


def test_interpreting_makes_no_backend_available(monkeypatch: pytest.MonkeyPatch) -> None:
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
        ({"batch": 2**17, "seq_len": 512, "heads": 8}, None),
        ({"seq_len": 2**20}, None),
        ({"d_k": 256, "d_v": 72, "causal": True}, None),
    ],
)
def test_what_the_kernels_cannot_do_is_refused_in_words(
    changes: dict[str, Any], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))
    assert load("triton").why_not(replace(SHAPE, **changes), CUDA) == reason


def test_old_gpus_and_other_makers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (7, 5))
    assert (
        load("triton").unavailable(CUDA)
        == "needs a GPU of compute capability 8.0 or newer; this one has 7.5"
    )
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert load("triton").unavailable(CUDA) == "needs a CUDA device; this is ROCm"


@pytest.mark.skipif(torch.cuda.is_available(), reason="tests what is said without a GPU")
def test_without_a_gpu_the_row_is_unavailable_and_the_run_complete(
    attnbench: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    flags = (
        "--batch",
        "1",
        "--seq-len",
        "64",
        "--d-model",
        "32",
        "--heads",
        "2",
        "--device",
        "cpu",
        "--plan",
        "quick",
    )
    done = attnbench("run", "--backends", "triton,sdpa", *flags)
    assert done.returncode == 0, done.stderr
    rows = [
        json.loads(line)
        for line in (Path(done.stdout.strip()) / "rows.jsonl").read_text().splitlines()
    ]
    assert {row["backend"]: row["status"] for row in rows} == {
        "triton": "unavailable",
        "sdpa": "ok",
    }
    reason = next(row["reason"] for row in rows if row["backend"] == "triton")
    assert reason == (impls.missing("triton") or "needs a CUDA device; this is cpu")


def test_a_backend_may_say_that_the_machine_lacks_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "picky.py").write_text(
        "VARIANTS = ('left',)\n"
        "def unavailable(device, *, variant): return f'no {variant or device.type} here'\n"
        "def why_not(problem, device, *, variant): return 'never asked'\n"
        "def prepare(problem, inputs, weights, *, variant): ...\n"
    )
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    assert load("picky").unavailable(CPU) == "no cpu here"
    assert load("picky:left").why_not(SHAPE, CPU) == "no left here"


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


def judge_on_gpu(problem: Problem) -> float | None:
    inputs = make_inputs(problem, CUDA, seed=1)
    gate = Gate(problem, inputs, None, seed=2)
    output = load("triton").prepare(problem, inputs, None)()
    gradients = (
        torch.autograd.grad(output, leaves(inputs, None), gate.grad_output)
        if problem.backward
        else ()
    )
    verdict = gate.judge(output, gradients)
    assert verdict.complaint == ""
    return verdict.error_ratio


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize(
    "problem",
    [
        Problem(
            batch=1,
            seq_len=16384,
            d_model=128,
            heads=2,
            dtype="bf16",
            causal=True,
            passes="forward+backward",
        ),
        Problem(
            batch=1,
            seq_len=5000,
            d_model=256,
            heads=2,
            d_k=128,
            d_v=96,
            kv_heads=1,
            dtype="fp16",
            passes="forward+backward",
        ),
        Problem(
            batch=1,
            seq_len=2000,
            d_model=512,
            heads=2,
            dtype="bf16",
            causal=True,
            passes="forward+backward",
        ),
        Problem(
            batch=1,
            seq_len=2000,
            d_model=160,
            heads=2,
            dtype="fp32",
            causal=True,
            passes="forward+backward",
        ),
        Problem(batch=1, seq_len=1, kv_seq_len=2**20, d_model=128, heads=1, dtype="bf16"),
        Problem(batch=1, seq_len=2**20, kv_seq_len=512, d_model=128, heads=1, dtype="bf16"),
        Problem(
            batch=70000,
            seq_len=3,
            d_model=16,
            heads=1,
            dtype="bf16",
            causal=True,
            passes="forward+backward",
        ),
    ],
    ids=lambda problem: (
        f"{problem.batch}x{problem.seq_len}x{problem.kv_seq_len}_{problem.d_k}_{problem.dtype}"
    ),
)
def test_long_wide_and_many_problems_are_as_close_on_a_gpu(problem: Problem) -> None:
    judge_on_gpu(problem)


def smallest(*, width: int) -> list[list[int]]:
    """Of half precision, as the operator takes it."""
    capability = torch.cuda.get_device_capability(CUDA)
    return [
        candidates(kernel, capability=capability, item_bytes=2, width=width, n_q=1000, causal=True)[
            -1
        ].numbers()
        for kernel in KERNELS
    ]


@pytest.mark.gpu
@needs_triton
def test_offsets_beyond_32_bits_are_followed_on_a_gpu() -> None:
    """More than 2**32 elements per tensor; the last head is compared with itself alone."""
    if torch.cuda.get_device_properties(CUDA).total_memory < 60 << 30:
        pytest.skip("needs 60 GiB of GPU memory")
    from attnbench.impls._triton.op import attention

    heads, n = 2**14, 2**12
    q = torch.empty(1, heads, n, 80, dtype=torch.bfloat16, device=CUDA)
    assert q.numel() > 2**32
    q.normal_(generator=torch.Generator(CUDA).manual_seed(3))
    k = v = q[:, :1]
    configs = [
        candidates(kernel, capability=(9, 0), item_bytes=2, width=80, n_q=n, causal=True)[
            -1
        ].numbers()
        for kernel in ("forward", "grad_q", "grad_kv")
    ]
    whole, _ = attention(q, k, v, None, 0.1, True, 0, False, *configs)
    alone, _ = attention(q[:, -1:], k, v, None, 0.1, True, 0, False, *configs)
    assert torch.equal(whole[:, -1:], alone)


@pytest.mark.gpu
@needs_triton
@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
def test_peak_bytes_are_as_predicted_on_a_gpu(passes: str) -> None:
    """All tensors here are multiples of 512 bytes, the granularity of torch's allocator."""
    problem = Problem(
        batch=2,
        seq_len=1024,
        d_model=512,
        heads=4,
        kv_heads=2,
        dtype="bf16",
        causal=True,
        passes=passes,
    )
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
    problem = Problem(
        batch=2,
        seq_len=1000,
        d_model=256,
        heads=4,
        kv_heads=1,
        dtype="bf16",
        causal=True,
        passes="forward+backward",
    )
    inputs = make_inputs(problem, CUDA, seed=1)
    call = load("triton").prepare(problem, inputs, None)
    gradient = torch.randn(2, 4, 1000, 64, device=CUDA).bfloat16()
    first, again = (
        [output := call(), *torch.autograd.grad(output, inputs, gradient)] for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.gpu
@needs_triton
def test_masked_keys_do_not_leak_on_a_gpu() -> None:
    from attnbench.impls._triton.op import attention

    q, k, v = (torch.randn(2, heads, 300, 64, device=CUDA).bfloat16() for heads in (4, 2, 2))
    mask = torch.rand(2, 300, device=CUDA) > 0.5
    configs = [
        candidates(kernel, capability=(9, 0), item_bytes=2, width=64, n_q=300, causal=True)[
            -1
        ].numbers()
        for kernel in ("forward", "grad_q", "grad_kv")
    ]

    def passes(poison: float) -> list[torch.Tensor]:
        tensors = [q.clone(), *(torch.where(mask[:, None, :, None], x, poison) for x in (k, v))]
        o, _ = attention(
            *(x.requires_grad_() for x in tensors), mask, 0.125, True, 0, False, *configs
        )
        return [o.detach(), *torch.autograd.grad(o, tensors, torch.ones_like(o))]

    clean = passes(0.0)
    assert all(bool(torch.isfinite(x).all()) for x in clean)
    assert all(torch.equal(a, b) for a, b in zip(clean, passes(torch.nan), strict=True))
