"""One run at a time on a device; nobody else can keep a user from measuring."""

import os
from pathlib import Path

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.process.device_lock import device_lock, lock_folder

UID = os.geteuid()


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)


def taken() -> Path:
    """Where the lock of a device is now."""
    with lock_folder() as (folder, _):
        return folder


def hold() -> None:
    with device_lock("cpu", wait=False, check=lambda: None):
        pass


def test_a_second_run_names_the_process_that_measures() -> None:
    with device_lock("cpu", wait=False, check=lambda: None):
        with pytest.raises(EnvironmentUnmet, match=rf"process {os.getpid()}\) is measuring"):
            hold()
        with device_lock("GPU-1", wait=False, check=lambda: None):
            pass
    hold()


def test_who_waits_is_asked_and_can_end_the_wait() -> None:
    def stop() -> None:
        raise InterruptedError

    with (
        device_lock("cpu", wait=False, check=lambda: None),
        pytest.raises(InterruptedError),
        device_lock("cpu", wait=True, check=stop),
    ):
        pass


@pytest.mark.parametrize("what", ["link", "pipe", "file", "open to others"])
def test_something_else_in_its_place_is_passed_over(tmp_path: Path, what: str) -> None:
    place = tmp_path / "tmp" / f"attnbench-{UID}"
    (tmp_path / "victim").mkdir()
    if what == "link":
        place.symlink_to(tmp_path / "victim")
    elif what == "pipe":
        os.mkfifo(place)
    elif what == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod(0o777)
    hold()
    assert taken() == tmp_path / "cache" / f"attnbench-{UID}"
    assert not list((tmp_path / "victim").iterdir())


def test_a_link_in_place_of_the_lock_is_refused_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("content")
    (taken() / "attnbench-cpu.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(EnvironmentUnmet, match="links are not followed"):
        hold()
    assert (tmp_path / "victim").read_text() == "content"
