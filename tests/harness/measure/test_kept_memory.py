"""What is kept between calls counts, whoever allocated it; what is not known is null."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from attnbench.harness.measure.clock import clock_for
from attnbench.harness.measure.kept_memory import (
    NO_PAGES,
    Kept,
    kept_memory,
    mask_cost,
    memory_fields,
    too_small,
)
from attnbench.harness.measure.peak_memory import UNCACHED, Peak, peak, release
from attnbench.harness.measure.warm_heap import WarmHeap
from attnbench.impls import Problem, load, sdpa

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
MIB = 1 << 20
# Of pages: what is touched and freed again stays resident. 1.7 MiB were seen after other tests.
NOISE = 8 * MIB
PROBLEM = Problem(batch=1, seq_len=512, d_model=32, heads=2)
counts_malloc = pytest.mark.skipif(
    WarmHeap().used_bytes() is None, reason="this C library has no mallinfo2"
)


def kept_by(prepare, problem=PROBLEM, *, compiles=False):
    memory = kept_memory(problem, CPU, compiles=compiles)
    held = memory.of(prepare)
    found = memory.read()
    del held
    return found


def test_a_peak_that_leaves_out_buffers_of_onednn_is_said_to_be_at_least():
    found = Peak(peak_bytes=9, output_bytes=9, peak_source="allocator events")
    kept = Kept(workspace_bytes=0, outside_bytes=0)
    assert memory_fields(found, kept, CPU)["peak_source"] == "allocator events"
    said = memory_fields(found, kept, CPU, by_onednn=True)["peak_source"]
    assert said == "allocator events, at least: buffers of oneDNN are not among them"
    pages = replace(found, peak_source="resident pages")
    assert memory_fields(pages, kept, CPU, by_onednn=True)["peak_source"] == "resident pages"


def test_torch_memory_that_prepare_keeps_is_workspace():
    found = kept_by(lambda: torch.ones(64 * MIB, dtype=torch.uint8))
    assert found.workspace_bytes == 64 * MIB
    assert found.outside_bytes <= NOISE


@counts_malloc
def test_memory_that_torch_does_not_count_is_outside_also_if_it_is_never_touched():
    numpy = pytest.importorskip("numpy")
    found = kept_by(lambda: numpy.empty(64 * MIB, numpy.uint8))
    assert found.workspace_bytes == 0
    assert found.outside_bytes == pytest.approx(64 * MIB, abs=NOISE)


def test_a_tensor_that_moved_to_shared_memory_is_counted_once():
    def prepare():
        moved = torch.ones(64 * MIB, dtype=torch.uint8).share_memory_()
        release(CPU)  # earlier tests may have let glibc keep what is freed
        return moved

    found = kept_by(prepare)
    kept_bytes = found.workspace_bytes + found.outside_bytes
    assert kept_bytes == pytest.approx(64 * MIB, abs=NOISE)


def test_what_a_process_keeps_that_the_backend_has_started_is_outside():
    holds = "kept = b'x' * (64 << 20); print(flush=True); input()"
    started = []

    def prepare():
        command = [sys.executable, "-c", holds]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(child)
        child.stdout.readline()

    try:
        found = kept_by(prepare)
    finally:
        for child in started:
            child.communicate(b"\n")
    assert found.workspace_bytes == 0
    assert found.outside_bytes == pytest.approx(64 * MIB, abs=2 * NOISE)  # and its interpreter


def test_a_mask_that_counts_as_an_input_is_not_counted_again():
    masked = Problem(batch=1, seq_len=512, d_model=32, heads=2, mask="random")
    mask = 512 * 512
    assert kept_by(lambda: torch.ones(mask, dtype=torch.uint8), masked).workspace_bytes == 0
    assert kept_by(lambda: torch.ones(mask + 7, dtype=torch.uint8), masked).workspace_bytes == 7
    assert kept_by(lambda: torch.ones(mask, dtype=torch.uint8)).workspace_bytes == mask


def test_the_peak_of_the_set_up_is_what_it_had_at_once():
    memory = kept_memory(PROBLEM, CPU, compiles=True)

    def prepare():
        torch.ones(3 * MIB, dtype=torch.uint8)
        return torch.ones(MIB, dtype=torch.uint8), torch.ones(5 * MIB, dtype=torch.uint8)[0].clone()

    memory.of(prepare)
    assert memory.read().prepare_peak_bytes == pytest.approx(6 * MIB, abs=100)


# ---- with the peak of a call ---------------------------------------------------------------------


def test_what_a_call_takes_beside_torchs_peak_is_outside_too():
    kept = Kept(workspace_bytes=3, outside_bytes=5 * MIB)
    torchs = {"peak_bytes": 100 * MIB, "output_bytes": 50, "peak_source": "x"}
    fields = memory_fields(Peak(**torchs, resident_peak_bytes=140 * MIB), kept, CPU)
    assert (fields["workspace_bytes"], fields["outside_bytes"]) == (3, 45 * MIB)
    assert fields["memory_missing"] is None
    assert "result_bytes" not in fields
    untouched = memory_fields(Peak(**torchs, resident_peak_bytes=20), kept, CPU)
    assert untouched["outside_bytes"] == 5 * MIB


@pytest.mark.parametrize("outside", [0, 4 * MIB - 1])
def test_less_than_can_be_seen_is_null_and_not_zero(outside):
    found = Peak(peak_bytes=9, output_bytes=9, peak_source="x", resident_peak_bytes=9)
    fields = memory_fields(found, Kept(workspace_bytes=0, outside_bytes=outside), CPU)
    assert fields["outside_bytes"] is None
    assert fields["memory_missing"] == {"outside_bytes": "below what can be seen (4 MiB)"}


@pytest.mark.parametrize(
    ("pages", "peak_bytes", "source", "why"),
    [
        (98 * MIB, 98 * MIB, "resident pages", None),
        (3 * MIB, None, None, "below what can be seen (4 MiB)"),
        (None, None, None, NO_PAGES),
    ],
)
def test_the_peak_of_a_call_whose_result_is_not_torchs_memory_is_counted_by_pages(
    pages, peak_bytes, source, why
):
    found = Peak(
        peak_bytes=0,
        output_bytes=0,
        peak_source="allocator events",
        resident_peak_bytes=pages,
        result_bytes=MIB // 2,
        outside_result_bytes=MIB // 2,
    )
    fields = memory_fields(found, Kept(workspace_bytes=0, outside_bytes=0), CPU)
    assert (fields["peak_bytes"], fields["peak_source"]) == (peak_bytes, source)
    assert fields["output_bytes"] == MIB // 2
    assert fields["memory_missing"].get("peak_bytes") == why
    assert fields["outside_bytes"] is None


def test_without_the_count_of_pages_what_is_outside_is_null_and_not_zero():
    kept = Kept(workspace_bytes=3, outside_bytes=10)
    fields = memory_fields(Peak(peak_bytes=1, output_bytes=1, peak_source="x"), kept, CPU)
    assert fields["outside_bytes"] is None
    assert fields["memory_missing"] == {"outside_bytes": NO_PAGES}


def of_call(call):
    return too_small(peak(lambda: None, lambda _: call(), CPU))


@counts_malloc
def test_a_result_that_the_call_did_not_allocate_is_refused():
    kept = torch.ones(2 * MIB, dtype=torch.uint8)
    text = of_call(lambda: kept)
    assert text.startswith(
        "the call has a peak of 0 Bytes, less than the 2.0 MiB of its own result"
    )


@counts_malloc
def test_a_buffer_that_every_call_writes_into_is_refused_whatever_else_the_call_takes():
    kept = torch.ones(2 * MIB, dtype=torch.uint8)

    def call():
        return torch.add(torch.ones(4 * MIB, dtype=torch.uint8)[: 2 * MIB], 1, out=kept)

    assert of_call(call).startswith("the call leaves 0 Bytes, less than the 2.0 MiB of its own")


@counts_malloc
@pytest.mark.parametrize("size", [8 << 10, 2 * MIB])
def test_a_result_in_memory_of_numpy_is_not_refused(size):
    numpy = pytest.importorskip("numpy")
    assert of_call(lambda: torch.from_numpy(numpy.ones(size, numpy.uint8))) == ""


def test_results_that_torch_allocated_are_not_refused():
    x = torch.randn(2, 64, 32, requires_grad=True)
    assert of_call(lambda: x.detach() + 1) == ""
    assert of_call(lambda: torch.autograd.grad((x * x).sum(), [x])) == ""
    assert of_call(lambda: (x.detach() @ x.detach().mT).chunk(2, -1)) == ""
    assert of_call(lambda: torch.ones(1).expand(1000)) == ""


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------


def test_on_a_gpu_tensors_are_workspace_and_a_librarys_memory_is_outside(fake_gpu):
    memory = kept_memory(PROBLEM, CUDA, compiles=False)

    def prepare():
        torch.ones(9 * MIB, dtype=torch.uint8, device=CUDA)
        fake_gpu.memory.outside_bytes += 7 * MIB
        return torch.ones(5 * MIB, dtype=torch.uint8, device=CUDA)

    held = memory.of(prepare)
    found = memory.read()
    assert found == Kept(workspace_bytes=5 * MIB, outside_bytes=7 * MIB, prepare_peak_bytes=9 * MIB)
    assert memory_fields(peak(lambda: held, lambda ready: ready + 1, CUDA), found, CUDA) == {
        "peak_bytes": 5 * MIB,
        "output_bytes": 5 * MIB,
        "peak_source": "cuda requested bytes",
        "resident_peak_bytes": None,
        "allocated_peak_bytes": 5 * MIB,
        "reserved_peak_bytes": 4 * MIB,  # 10 MiB; 6 are reserved for what is held
        "device_used_bytes": None,
        "workspace_bytes": 5 * MIB,
        "prepare_peak_bytes": 9 * MIB,
        "outside_bytes": 7 * MIB,
        "memory_missing": None,
    }


def test_on_a_gpu_freed_memory_is_not_negative(fake_gpu):
    before = torch.ones(9 * MIB, dtype=torch.uint8, device=CUDA)
    fake_gpu.memory.outside_bytes += 7 * MIB
    memory = kept_memory(PROBLEM, CUDA, compiles=True)
    del before
    fake_gpu.memory.outside_bytes -= 7 * MIB
    assert memory.read() == Kept(workspace_bytes=0, outside_bytes=0, prepare_peak_bytes=0)


@pytest.mark.parametrize("setting", ["cudaMallocAsync", "pluggable", UNCACHED])
def test_an_allocator_that_does_not_count_gives_null_with_a_reason(fake_gpu, monkeypatch, setting):
    if setting == UNCACHED:
        monkeypatch.setenv(UNCACHED, "0")  # torch asks whether it is set
    else:
        monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: setting)
    kept = kept_memory(PROBLEM, CUDA, compiles=False).read()
    found = peak(lambda: None, lambda _: torch.ones(MIB, device=CUDA), CUDA)
    assert (found.peak_bytes, found.output_bytes, kept.workspace_bytes) == (None, None, None)
    missing = memory_fields(found, kept, CUDA)["memory_missing"]
    assert missing.keys() == {"peak_bytes", "workspace_bytes"}
    assert all(setting in why and "does not count" in why for why in missing.values())


CPU = torch.device("cpu")
SHAPE = {"batch": 1, "d_model": 16, "heads": 2}
N = 400


def cost(name: str, **more: object) -> dict[str, float | None]:
    return mask_cost(Problem(**SHAPE | more), load(name), CPU, clock_for(CPU))


@pytest.mark.parametrize(
    ("name", "pairs", "most_bytes"),
    [
        ("naive", N * N, 4),  # bytes of each pair: booleans alone
        ("fused", N * N, 4),
        ("sdpa", N * N, 4),
        ("padded", 4 * 250 * 250, 4),
        pytest.param("flex", N * N, 24, marks=pytest.mark.long),
    ],
)
def test_a_mask_of_all_pairs_has_a_time_and_the_bytes_of_its_pairs(
    name: str, pairs: int, most_bytes: int
) -> None:
    if why := load(name).unavailable(CPU):
        pytest.skip(why)
    found = cost(name, lengths="q250_q70_2q40", causal=True)
    assert found["mask_build_ms"] > 0
    assert pairs <= found["mask_build_peak_bytes"] <= most_bytes * pairs + (1 << 17)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("naive", {"seq_len": N}),
        ("sdpa", {"seq_len": N, "causal": True}),
        ("padded:maskless", {"lengths": "q250_q150", "causal": True}),
        ("sequence_loop", {"lengths": "q250_q150", "causal": True}),
    ],
)
def test_what_builds_no_mask_has_no_cost_of_one(name: str, more: dict[str, object]) -> None:
    assert cost(name, **more) == {}


@pytest.mark.parametrize(
    ("variant", "builds"), [("", False), ("flash", False), ("efficient", True)]
)
def test_sdpa_builds_no_triangle_that_a_kernel_has_built_in(
    variant: str, builds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flash on CUDA, which has the triangle from the lower right."""
    monkeypatch.setattr("attnbench.impls.shared.sdpa_kernels.refusal", lambda *_: None)
    monkeypatch.setattr("attnbench.impls.sdpa.matrix", lambda *_: torch.ones(1))
    later = Problem(**SHAPE, seq_len=8, kv_seq_len=64, causal=True, causal_align="bottom_right")
    mask = sdpa.build_mask(later, torch.device("cuda"), variant=variant)
    assert (mask is not None) == builds
