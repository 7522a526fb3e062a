"""Findings on torch, driver, CUDA and cuDNN."""

import torch

from attnbench.harness.devices.nvml import Reading
from attnbench.harness.doctor import facts
from attnbench.harness.doctor.facts import try_torch
from attnbench.harness.doctor.host_rules import SOFTWARE_RULES
from attnbench.harness.doctor.rules import findings

KNOWN = {
    "torch": "2.11",
    "cuda": "12.8",
    "built": "for CUDA 12.8",
    "why_not": "",
    "has_gpu": True,
    "listed": Reading(["a GPU"]),
    "driver_version": "550",
    "knows_driver": True,
    "driver_cuda": Reading(12080),
    "loaded_cudnn": Reading((91900, "/x/libcudnn.so.9")),
    "other": "",
    "missing_compiler": ("", "", ""),
    "kernels": "",
    "device_name": "NVIDIA H100",
}


def found(**changed):
    return {one.about: one for one in findings(SOFTWARE_RULES, KNOWN | changed)}


def test_a_gpu_that_is_listed_and_does_not_work_is_bad():
    reason = "CUDA error: no kernel image is available for execution on the device"
    said = found(why_not=reason)
    assert said["torch"].grade == "bad"
    assert "compute capability" in said["torch"].advice


def test_kernels_of_ours_that_no_gpu_has_run_are_named_where_one_could_run_them():
    kernels = "55 of 55 kernels not yet run on a GPU with Triton 3.9.0"
    assert found(kernels=kernels)["triton"].found == kernels
    assert "triton" not in found()
    assert "triton" not in found(kernels=kernels, why_not="CUDA error")


def test_a_working_gpu_with_a_silent_driver_costs_counters_only():
    named = {
        "device_name": "NVIDIA H100",
        "compute_capability": "9.0",
        "device_memory_bytes": 80 << 30,
    }
    no_compiler = ("Triton needs a C compiler, and there is no gcc", ": ", "apt-get install gcc")
    silent = Reading(None, "this user may not read it")
    said = found(listed=silent, missing_compiler=no_compiler, **named)
    assert not any(one.grade == "bad" for one in said.values())
    assert said["driver"].grade == "note"
    assert "NVIDIA H100" in said["gpu"].found
    assert said["cudnn"].found == "91900 from /x/libcudnn.so.9"
    compilers = said["compilers"]
    assert (compilers.grade, compilers.advice) == ("note", "apt-get install gcc")
    assert compilers.found == "Triton needs a C compiler, and there is no gcc"


def test_an_accelerator_that_is_not_measured_is_named():
    other = "an AMD GPU (ROCm 6.4)"
    said = found(why_not="no", has_gpu=False, listed=Reading(None, "no driver"), other=other)
    assert (said["gpu"].grade, said["gpu"].found) == ("note", "an AMD GPU (ROCm 6.4), not measured")
    assert said["gpu"].advice.startswith("with --device cpu runs use the CPU")


def test_torch_is_tried_on_the_gpu_and_its_kernels_and_cudnn_are_found_missing(
    fake_gpu, monkeypatch
):
    monkeypatch.setattr(facts, "cudnn_path", lambda: None)  # CUDA builds of torch are linked to it
    device, why, cudnn = try_torch()
    assert device == torch.device("cuda", 0)
    assert "mm" in fake_gpu.launched
    assert any("conv" in name for name in fake_gpu.launched)
    assert cudnn == Reading(None, "a convolution ran without it")
    fake_gpu.broken = "CUDA error: no kernel image is available for execution on the device\nmore"
    device, why, cudnn = try_torch()
    assert (device, why) == (torch.device("cpu"), fake_gpu.broken.splitlines()[0])
