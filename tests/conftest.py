"""What tests share: the command line as a user runs it, backends that misbehave, and what must not
be missing in CI.
"""

import atexit
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import budget
from tests.fakes.nvml import driver
from tests.search_path import searched

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeGpu

ROOT = Path(__file__).parent.parent
FAKE_BACKENDS = ROOT / "tests" / "fakes" / "backends"
# before torch starts its threads in this process; see environment()
os.environ.setdefault("OMP_NUM_THREADS", "1")
# locks of their own: no real run is waited for
os.environ["ATTNBENCH_LOCKS"] = tempfile.mkdtemp(prefix="attnbench-tests-")
atexit.register(shutil.rmtree, os.environ["ATTNBENCH_LOCKS"], ignore_errors=True)
os.environ["ATTNBENCH_CACHE"] = os.environ["ATTNBENCH_LOCKS"]  # and a list of backends of their own
# A shell starts what runs in the background with Ctrl-C ignored, and our programs respect that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "gcc": ("gcc",),
    "g++": ("g++",),
}


@pytest.fixture
def attnbench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `attnbench ARGS...` in an empty folder, where the test then stands too; the fake backends
    are known to it.
    """
    monkeypatch.chdir(tmp_path)

    def run(
        *args: object, env: dict[str, str] | None = None, **how: Any
    ) -> subprocess.CompletedProcess[str]:
        return ran(command_line(*args), env=environment(env), **how)

    return run


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same in this process: for what starts no worker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(FAKE_BACKENDS))

    def run(
        *args: object, env: Mapping[str, str] = {}, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        from attnbench.harness.verbs.app import main

        words = ["attnbench", *map(str, args)]
        monkeypatch.setattr(sys, "argv", words)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        gc.enable()  # `compare` turns it off for the rest of its process
        for name in env:
            monkeypatch.delenv(name)
        printed = capfd.readouterr()
        assert isinstance(code, int)
        assert not check or code == 0, printed.out + printed.err
        return subprocess.CompletedProcess(words, code, printed.out, printed.err)

    return run


def ran(
    command: Sequence[object], *, check: bool = False, timeout: float | None = 240, **where: Any
) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with exit code 0 if `check`, and what it printed; `where`: its
    `cwd`, and its `env` if that is not the tests' own.
    """
    settings = {"env": environment(), "timeout": timeout} | where
    words = [*map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **settings)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def wait_for(condition: Callable[[], Any], timeout_s: float = 120) -> Any:
    """The condition's value, once it is true; a busy machine may take long."""
    ends_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < ends_s, "did not come true in time"
        time.sleep(0.02)
    return found


def command_line(*args: object) -> list[str]:
    return [sys.executable, "-m", "attnbench", *map(str, args)]


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """One thread: OpenMP's waiting threads spin, and on a busy machine that makes a call of 1 ms
    last 100 ms. A pytest that it starts is no worker of ours: as one it would write no benchmarks.
    """
    ours = {
        "PYTHONPATH": str(ROOT / ".package"),
        "ATTNBENCH_BACKENDS": str(FAKE_BACKENDS),
        "OMP_NUM_THREADS": "1",
    } | (extra or {})
    users = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**users, **ours, "PYTHONPATH": searched(*ours["PYTHONPATH"].split(os.pathsep))}


@pytest.fixture(scope="session")
def require() -> Callable[[str], str]:
    """The path of a program, or a skip; a failure where ATTNBENCH_REQUIRE names it, so that CI
    cannot skip by accident.
    """

    def find(name: str) -> str:
        path = next((found for program in PROGRAMS[name] if (found := shutil.which(program))), None)
        if path is None:
            if name in os.environ.get("ATTNBENCH_REQUIRE", "").split(","):
                pytest.fail(f"{name} is required here and missing: apt-get install {name}")
            pytest.skip(f"needs {name}: apt-get install {name}")
        return path

    return find


@pytest.fixture(scope="session")
def nvml_library(require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fake NVIDIA driver library."""
    require("gcc")
    return driver.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_nvml_library(
    require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same without GPM and other newer functions."""
    require("gcc")
    return driver.build(tmp_path_factory.mktemp("old_nvml"), old=True)


@pytest.fixture
def fake_nvml(nvml_library: Path, tmp_path: Path) -> driver.FakeDriver:
    """A driver with one idle H100 until the test writes another script."""
    fake = driver.FakeDriver(library=nvml_library, script=tmp_path / "nvml.txt")
    fake.write(driver.H100)
    return fake


@pytest.fixture
def old_fake_nvml(old_nvml_library: Path, tmp_path: Path) -> driver.FakeDriver:
    fake = driver.FakeDriver(library=old_nvml_library, script=tmp_path / "nvml.txt")
    fake.write(driver.H100)
    return fake


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> "Iterator[FakeGpu]":
    """A GPU behind torch.cuda whose clock, and attnbench's with it, the test turns."""
    from attnbench.harness.measure import clock
    from tests.fakes.cuda import HandClock, fake_cuda, turned_by_hand
    from tests.fakes.cuda.gpu import FakeGpu

    by_hand = HandClock()
    turned_by_hand(by_hand, monkeypatch, "attnbench.")
    monkeypatch.setattr(clock, "L2_FLUSH_BYTES", 1 << 20)
    with fake_cuda(FakeGpu(by_hand)) as gpu:
        yield gpu


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(budget.Budget(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked gpu skip by themselves where torch finds no CUDA device."""
    budget.mark_packs(items)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked:
        import torch

        if not torch.cuda.is_available():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(scope="session")
def chromium(require: Callable[[str], str]) -> Iterator[Any]:
    program = require("chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install playwright"
    )
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
