"""A telemetry timeline of the host or of a scripted GPU, and the lines that it writes."""

import pytest

from attnbench.harness.telemetry.timeline import Timeline
from tests.fakes.nvml.driver import UUID


@pytest.fixture
def timeline(tmp_path):
    """Of the host, into an empty folder."""
    timeline = Timeline(tmp_path, None)
    yield timeline
    timeline.close()


@pytest.fixture
def gpu_timeline(tmp_path, fake_nvml, monkeypatch):
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    timeline = Timeline(tmp_path, UUID)
    yield timeline
    timeline.close()
