"""One run at a time on a device; nobody else can keep a user from measuring."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.process import device_lock as module
from attnbench.harness.process.device_lock import device_lock
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of a machine of its own."""
    monkeypatch.delenv("ATTNBENCH_LOCKS")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(module, "MEETING", tmp_path / "tmp" / "meeting")
    monkeypatch.setattr("pwd.getpwuid", lambda _: type("User", (), {"pw_dir": tmp_path / "home"}))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)


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


def test_a_device_that_the_caller_holds_is_not_locked_again_and_any_other_is() -> None:
    with device_lock("GPU-1", wait=False, check=lambda: None):
        with device_lock("GPU-1", wait=False, check=lambda: None, held="GPU-1"):
            pass
        with (
            pytest.raises(EnvironmentUnmet, match="is measuring on this"),
            device_lock("GPU-1", wait=False, check=lambda: None, held="cpu"),
        ):
            pass


HOLD = """
import sys
from attnbench.harness.process.device_lock import device_lock
with device_lock(sys.argv[1], wait=False, check=lambda: None):
    print("held", flush=True)
    sys.stdin.read()
"""
BARE = {"PYTHONPATH": str(ROOT / ".package"), "PATH": os.environ["PATH"]}


def holding(device: str, env: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, device],
        env={**BARE, **env},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ["XDG_RUNTIME_DIR", "TMPDIR", "XDG_CACHE_HOME", "HOME"])
def test_runs_of_a_user_meet_whatever_their_environment(tmp_path: Path, name: str) -> None:
    """As a login session, and a job of cron or of `docker exec`, which has no such variable."""
    device = f"test-{secrets.token_hex(8)}"
    (tmp_path / "own").mkdir(mode=0o700)
    with holding(device, {name: str(tmp_path / "own")}) as login:
        assert login.stdout.readline() == "held\n"
        for env in ({}, {name: str(tmp_path)}):
            with holding(device, env) as other:
                said = other.communicate("")[1]
            assert f"another run (process {login.pid}) is measuring on this {device}" in said
        login.communicate("")


def test_the_user_can_choose_where_runs_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNBENCH_LOCKS", str(tmp_path / "shared" / "locks"))
    with device_lock("cpu", wait=False, check=lambda: None):
        assert (tmp_path / "shared" / "locks" / "attnbench-cpu.lock").exists()
    assert not module.MEETING.exists()


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
    place = module.MEETING
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
    assert (tmp_path / "home" / ".cache" / module.OWN / "attnbench-cpu.lock").exists()
    assert not list((tmp_path / "victim").iterdir())


def test_a_link_in_place_of_the_lock_is_refused_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("content")
    hold()
    lock = module.MEETING / "attnbench-cpu.lock"
    lock.unlink()
    lock.symlink_to(tmp_path / "victim")
    with pytest.raises(EnvironmentUnmet, match="links are not followed"):
        hold()
    assert (tmp_path / "victim").read_text() == "content"
