import pytest
import torch

from attnbench.impls import Problem, load, make_inputs

CPU = torch.device("cpu")
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
