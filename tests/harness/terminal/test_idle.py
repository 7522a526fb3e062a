"""harness/terminal/idle.py: waiting ends once the machine is idle, or once the time is up."""

import pytest

from attnbench.harness.devices.load import Load, LoadMeter
from attnbench.harness.files.errors import BadInput
from attnbench.harness.terminal import idle


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def waited_s(monkeypatch: pytest.MonkeyPatch, longest: str, busy_s: float) -> float:
    """On a machine that is busy for so long."""
    clock = Clock()
    monkeypatch.setattr(idle, "time", clock)
    busy = Load(1.6, 2)
    monkeypatch.setattr(LoadMeter, "busy", lambda _: busy if clock.now <= busy_s else None)
    idle.wait_until_idle(longest)
    return clock.now


def test_it_waits_until_the_machine_is_idle_and_no_longer_than_was_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert waited_s(monkeypatch, "10m", busy_s=0.0) == idle.IDLE_READINGS
    assert waited_s(monkeypatch, "10m", busy_s=60.0) == 60 + idle.IDLE_READINGS
    assert capsys.readouterr().err == ""
    assert waited_s(monkeypatch, "90s", busy_s=600.0) == 90
    assert "still busy after 2 min: other programs use 1.6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("means", "says"),
    [
        ("", "only differences above 1.5x will show; memory is exact"),
        ("noise comes out too large", "too large"),
    ],
)
def test_what_takes_minutes_says_once_that_the_machine_is_busy_and_what_that_means(
    means: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(idle, "time", Clock())
    monkeypatch.setattr(LoadMeter, "busy", lambda _: Load(1.6, 2))
    idle.await_idle(None, quiet=True, means=means)
    assert capsys.readouterr().err == ""
    idle.await_idle(None, quiet=False, means=means)
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("other programs use 1.6 of its 2 cores") == 1
    assert says in told
    monkeypatch.setattr(LoadMeter, "busy", lambda _: None)
    idle.await_idle(None, quiet=False, means=means)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["", "soon", "-1", "10 minutes", "1.5m"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--wait-idle"):
        idle.wait_until_idle(text)
