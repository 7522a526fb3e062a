"""Findings on torch, driver, CUDA and cuDNN."""

import torch

from attnbench.harness.devices.nvml import Reading
from attnbench.harness.doctor import host
from attnbench.harness.doctor.host import TorchGpu, software_findings, try_torch

LISTED = Reading(("a GPU",))


def findings(torch_gpu, gpus, **environment):
    found = software_findings(torch_gpu, {"torch": "2.11", **environment}, gpus)
    return {one.about: one for one in found}


def test_a_gpu_that_is_listed_and_does_not_work_is_bad(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    reason = "CUDA error: no kernel image is available for execution on the device"
    found = findings(TorchGpu(device=None, reason=reason), LISTED)
    assert found["torch"].grade == "bad"
    assert "compute capability" in found["torch"].advice


def test_a_working_gpu_with_a_silent_driver_costs_counters_only(monkeypatch):
    no_compiler = "Triton needs a C compiler, and there is no gcc or clang: apt-get install gcc"
    monkeypatch.setattr(host, "missing_for_compile", lambda device: no_compiler)
    torch_gpu = TorchGpu(device=torch.device("cuda"), cudnn=Reading((91900, "/x/libcudnn.so.9")))
    named = {
        "device_name": "NVIDIA H100",
        "compute_capability": "9.0",
        "device_memory_bytes": 80 << 30,
    }
    found = findings(torch_gpu, Reading(None, "this user may not read it"), **named)
    assert not any(one.grade == "bad" for one in found.values())
    assert found["driver"].grade == "note"
    assert "NVIDIA H100" in found["gpu"].found
    assert found["cudnn"].found == "91900 from /x/libcudnn.so.9"
    compilers = found["compilers"]
    assert (compilers.grade, compilers.advice) == ("note", "apt-get install gcc")
    assert compilers.found == "Triton needs a C compiler, and there is no gcc or clang"


def test_an_accelerator_that_is_not_measured_is_named(monkeypatch):
    monkeypatch.setattr(host, "DRIVER_FILES", ())
    monkeypatch.setattr(host, "other_accelerator", lambda: "an AMD GPU (ROCm 6.4)")
    found = findings(TorchGpu(device=None, reason="no"), Reading(None, "no driver"))["gpu"]
    assert (found.grade, found.found) == ("note", "an AMD GPU (ROCm 6.4), not measured")
    assert found.advice.startswith("with --device cpu runs measure the CPU")


def test_torch_is_tried_on_the_gpu_and_its_kernels_and_cudnn_are_found_missing(
    fake_gpu, monkeypatch
):
    monkeypatch.setattr(host, "cudnn_path", lambda: None)  # CUDA builds of torch are linked to it
    found = try_torch()
    assert found.device == torch.device("cuda", 0)
    assert {"mm", "convolution"} & set(fake_gpu.launched) == {"mm", "convolution"} or (
        "mm" in fake_gpu.launched and any("conv" in name for name in fake_gpu.launched)
    )
    assert found.cudnn == Reading(None, "a convolution ran without it")
    fake_gpu.broken = "CUDA error: no kernel image is available for execution on the device\nmore"
    found = try_torch()
    assert (found.device, found.reason) == (None, fake_gpu.broken.splitlines()[0])
