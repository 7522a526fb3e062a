"""Which device a run here would measure, by the system and the driver alone."""

import os
import subprocess
import sys

import pytest
import torch

from attnbench.harness.devices import environment, host, nvml
from attnbench.harness.devices import this_device as module
from attnbench.harness.devices.host import MemoryLimit, cpu_name
from attnbench.harness.devices.nvml import Reading
from attnbench.harness.devices.this_device import this_device
from attnbench.harness.files.errors import EnvironmentUnmet


@pytest.fixture
def with_cuda(monkeypatch):
    monkeypatch.setattr(module, "version", lambda _: "2.13.0+cu130")


class FakeGpu:
    def query(self, function: str, **_) -> Reading:
        return Reading({"nvmlDeviceGetUUID": b"GPU-1", "nvmlDeviceGetName": "Imaginary"}[function])


def test_a_cpu_build_of_torch_measures_the_host(monkeypatch):
    monkeypatch.setattr(module, "version", lambda _: "2.13.0+cpu")
    found = this_device("auto")
    assert (found.kind, found.name) == ("cpu", cpu_name())
    assert found.facts == {"cpu": cpu_name(), "torch": "2.13.0+cpu"}
    assert 0 < found.memory_bytes < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_a_control_group_with_less_free_memory_counts(monkeypatch, tmp_path):
    limit = MemoryLimit(limit_bytes=2000, free_bytes=1000, file=tmp_path)
    monkeypatch.setattr(host, "memory_limit", lambda: limit)
    assert this_device("cpu").memory_bytes == 1000


def test_the_only_gpu_is_known_by_the_driver_alone(monkeypatch, with_cuda):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(module, "each_gpu", lambda: Reading([Reading(FakeGpu())]))
    monkeypatch.setattr(module, "memory_info", lambda _: Reading(type("M", (), {"total": 7})()))
    found = this_device(None)
    assert (found.kind, found.name, found.memory_bytes) == ("cuda", "Imaginary", 7)
    assert found.facts == {"device_uuid": "GPU-1", "torch": "2.13.0+cu130"}


def test_without_a_gpu_cuda_is_refused_and_auto_takes_the_host(monkeypatch, with_cuda):
    monkeypatch.setattr(module, "each_gpu", lambda: Reading(None, "no driver"))
    monkeypatch.setattr(environment, "has_gpu", lambda: False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert this_device("auto").kind == "cpu"
    with pytest.raises(EnvironmentUnmet, match=r"^no cuda device: .*--device cpu"):
        this_device("cuda")


@pytest.mark.parametrize(
    ("kind", "hip", "named"),
    [
        ("cuda", "6.4.2", "an AMD GPU (ROCm 6.4.2)"),
        ("xpu", None, "an Intel GPU (XPU)"),
        ("mps", None, "an Apple GPU (MPS)"),
        ("hpu", None, "a device of type hpu"),
    ],
)
def test_an_accelerator_that_cannot_be_measured_is_named_and_not_passed_over(
    monkeypatch, with_cuda, kind, hip, named
):
    monkeypatch.setattr(module, "each_gpu", lambda: Reading(None, "no driver"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: kind == "cuda")
    monkeypatch.setattr(torch.version, "hip", hip)
    found = torch.device(kind)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: found)
    for requested in (None, "auto", "cuda"):
        with pytest.raises(EnvironmentUnmet) as caught:
            this_device(requested)
        said = (
            f"torch computes on {named} here, and attnbench measures NVIDIA GPUs and CPUs only; try"
            " with --device cpu"
        )
        assert str(caught.value) == ("no cuda device: " if requested == "cuda" else "") + said
    assert this_device("cpu").kind == "cpu"


def test_a_gpu_that_torch_cannot_use_is_not_passed_over_unless_the_user_hid_it(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(module, "version", lambda _: "2.13.0+cpu")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(nvml, "each_gpu", lambda: Reading([Reading(FakeGpu())]))
    with pytest.raises(EnvironmentUnmet, match="NVIDIA GPU here cannot be used: torch was"):
        this_device("auto")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert this_device("auto").kind == "cpu"


def test_torch_is_not_imported_for_the_host():
    code = (
        "import sys; from attnbench.harness.devices.this_device import this_device;"
        " this_device('cpu');"
        " sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
