"""Which device a run here would measure, by the system and the driver alone."""

import os
import subprocess
import sys

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.machine import free_memory
from attnbench.harness.machine import this_device as module
from attnbench.harness.machine.control_group import MemoryLimit
from attnbench.harness.machine.cpu import cpu_name
from attnbench.harness.machine.nvml import Reading
from attnbench.harness.machine.this_device import this_device


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
    monkeypatch.setattr(free_memory, "memory_limit", lambda: limit)
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
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert this_device("auto").kind == "cpu"
    with pytest.raises(EnvironmentUnmet, match="--device cpu"):
        this_device("cuda")


def test_torch_is_not_imported_for_the_host():
    code = (
        "import sys; from attnbench.harness.machine.this_device import this_device;"
        " this_device('cpu');"
        " sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
