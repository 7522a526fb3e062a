from collections.abc import Iterator

import pytest
import torch
from torch.nn import attention
from torch.nn.attention import _registry

from attnbench.impls import Problem, load, make_inputs
from attnbench.impls.shared import flash_attention
from attnbench.impls.shared.sdpa_kernels import NEWER, refusal

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SHAPE = Problem(batch=1, seq_len=8, d_model=16, heads=2)


@pytest.mark.parametrize("kernel", ["efficient", "cudnn"])
def test_cuda_kernels_are_refused_on_the_cpu(kernel: str) -> None:
    reason = f"torch has the {kernel} kernel for CUDA only, not for cpu"
    assert load(f"sdpa:{kernel}").why_not(SHAPE, CPU) == reason


def test_a_pinned_kernel_that_cannot_run_raises_instead_of_falling_back() -> None:
    wide = Problem(batch=1, seq_len=8, d_model=16, heads=2, d_v=24)
    backend = load("sdpa:flash")
    call = backend.prepare(wide, make_inputs(wide, CPU, 0), None)
    with (
        backend.context(wide),
        pytest.warns(UserWarning, match="Flash attention"),
        pytest.raises(RuntimeError, match="No available kernel"),
    ):
        call()


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["flash", "efficient", "cudnn"])
def test_the_pinned_kernel_is_the_one_that_runs(kernel: str) -> None:
    shape = Problem(batch=2, seq_len=128, d_model=128, heads=2, dtype="bf16")
    backend, cuda = load(f"sdpa:{kernel}"), torch.device("cuda")
    refusal = backend.why_not(shape, cuda)
    if refusal:
        pytest.skip(refusal)
    call = backend.prepare(shape, make_inputs(shape, cuda, 0), None)
    with (
        backend.context(shape),
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile,
    ):
        call()
    seen = {event.key for event in profile.key_averages()}
    assert f"aten::_scaled_dot_product_{kernel}_attention" in seen


# ---- FlashAttention 3 and 4 in the place of torch's own ------------------------------------------


class Handle:
    """What a package gives torch when it is activated."""

    def remove(self) -> None:
        pass


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Packages that register nothing, and a Hopper GPU."""
    monkeypatch.setattr(_registry, "_FLASH_ATTENTION_IMPLS", {"FA3": Handle, "FA4": Handle})
    monkeypatch.setattr(flash_attention, "version", lambda package: "1")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    yield
    attention.restore_flash_attention_impl(_raise_warn=False)


def test_torch_knows_what_is_to_be_activated() -> None:
    assert {impl for impl, *_ in NEWER.values()} <= {*attention.list_flash_attention_impls()}


@pytest.mark.parametrize("kernel", NEWER)
def test_a_newer_kernel_is_unavailable_with_what_installs_it(kernel: str) -> None:
    backend, package = load(f"sdpa:{kernel}"), NEWER[kernel][1]
    assert backend.unavailable(CPU) == f"{kernel} needs a CUDA device; this is cpu"
    said = f"needs {package}, which is not installed: pip install "
    assert (backend.unavailable(CUDA) or "").startswith(said)


def test_a_newer_kernel_needs_its_generation_of_gpus(
    installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load("sdpa:flash3").unavailable(CUDA) is None
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    for kernel, majors in (("flash3", "9.x"), ("flash4", "9.x or 10.x")):
        said = f"{kernel} needs a GPU of compute capability {majors}; this one has 8.6"
        assert load(f"sdpa:{kernel}").unavailable(CUDA) == said


@pytest.mark.parametrize("before", [None, "FA4"])
def test_a_newer_kernel_is_active_in_its_context_only(installed: None, before: str | None) -> None:
    if before:
        attention.activate_flash_attention_impl(before)
    backend = load("sdpa:flash3")
    with backend.context(SHAPE):
        assert attention.current_flash_attention_impl() == "FA3"
        with backend.context(SHAPE):
            assert attention.current_flash_attention_impl() == "FA3"
        assert attention.current_flash_attention_impl() == "FA3"
        assert torch.backends.cuda.flash_sdp_enabled()
        assert not torch.backends.cuda.math_sdp_enabled()
    assert attention.current_flash_attention_impl() == before
    with load("sdpa:flash").context(SHAPE):
        assert attention.current_flash_attention_impl() == before


def test_a_package_that_cannot_be_loaded_is_a_reason(
    installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise ImportError("libcudart.so.12: no such file")

    monkeypatch.setitem(_registry._FLASH_ATTENTION_IMPLS, "FA3", fails)
    said = refusal(SHAPE, CPU, "flash3")
    assert said == "torch refuses the flash3 kernel: libcudart.so.12: no such file"
    assert attention.current_flash_attention_impl() is None
