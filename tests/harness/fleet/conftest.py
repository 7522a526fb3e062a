"""A Ray cluster on this machine; its hosts share cores, so no time counts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT, command_line, environment

READY_S = 300.0
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}")


class Nodes:
    """`env`: as the driver needs it."""

    def __init__(self, process: subprocess.Popen[str], env: dict[str, str], folder: Path) -> None:
        self.process = process
        self.env = env
        self.folder = folder
        self.address = self._line("address")

    def do(self, what: str) -> str:
        """As tests/fakes/ray_nodes.py says; the last line that it prints."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        printed: list[str] = []
        for line in self.process.stdout or ():
            if line.startswith("did "):
                return printed[-1] if printed else ""
            printed.append(line)
        raise AssertionError(f"the cluster ended: {printed}")

    def start(self, *arguments: object, here: bool = False) -> subprocess.Popen[str]:
        """`attnbench run ARGUMENTS... --on ray`; `here`: without Ray."""
        on_ray = () if here else ("--on", "ray", "--address", self.address)
        with self.said.open("w") as said:
            return subprocess.Popen(
                command_line("run", *arguments, *on_ray),
                env=self.env,
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    @property
    def said(self) -> Path:
        """What the last command wrote to stderr."""
        return self.folder / "said.txt"

    def run(self, *arguments: object, here: bool = False, code: int = 0) -> Path:
        """The run's folder."""
        return self.ended(self.start(*arguments, here=here), code)

    def ended(self, process: subprocess.Popen[str], code: int = 0) -> Path:
        out, _ = process.communicate(timeout=600)
        assert process.returncode == code, self.said.read_text()
        return self.folder / out.strip()

    def workers(self) -> list[psutil.Process]:
        """Processes of attnbench that the nodes' processes have started: workers, their guards."""
        found = []
        for one in below(self.folder):
            with suppress(psutil.Error):
                if "attnbench.harness" in " ".join(one.cmdline()):
                    found.append(one)
        return found

    def beside_devices(self) -> set[int]:
        """The numbers of the processes that Ray has started beside devices, and that have workers
        now.
        """
        found, workers = set(), self.workers()
        for one in workers:
            with suppress(psutil.Error):
                found.add(one.ppid())
        return found - {one.pid for one in workers} - {1}

    def _line(self, begin: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(begin):
                return line[len(begin) :].strip()
        raise AssertionError("the cluster ended: " + (self.process.stderr or sys.stderr).read())


def below(folder: Path) -> Iterator[psutil.Process]:
    """All that a cluster of a test has started."""
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.environ().get("ATTNBENCH_NODES") == str(folder):
                yield one


@pytest.fixture
def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Nodes]:
    """Nodes without OMP_NUM_THREADS, of which each has a device; the driver's setting counts. Two,
    if a test asks for no others: the arguments of tests/fakes/ray_nodes.py.

    Skips where Ray is not installed.
    """
    if find_spec("ray") is None:
        if "ray" in os.environ.get("ATTNBENCH_REQUIRE", "").split(","):
            pytest.fail("ray is required here and missing: pip install 'attnbench[ray]'")
        pytest.skip("needs Ray: pip install 'attnbench[ray]'")
    (tmp_path / "pace").mkdir()
    (tmp_path / "pace" / "attnbench_test_pace.py").write_text("SLEEP_S = 0.2")
    env = environment({"PYTHONPATH": f"{ROOT / '.package'}{os.pathsep}{tmp_path / 'pace'}"})
    env |= {"ATTNBENCH_TEST_SHARED_CORES": "1", "ATTNBENCH_NODES": str(tmp_path)}
    of_nodes = {name: value for name, value in env.items() if name != "OMP_NUM_THREADS"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.ray_nodes", *getattr(request, "param", ("2",))],
        env=of_nodes,
        cwd=ROOT,  # where tests are
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield Nodes(process, env, tmp_path)
    finally:
        process.stdin.close() if process.stdin else None
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for one in below(tmp_path):  # also nodes that an autoscaler has started
            with suppress(psutil.Error):
                one.kill()
        process.stdout.close() if process.stdout else None


@pytest.fixture
def until() -> Callable[..., None]:
    """Wait for something, or fail."""

    def wait(what: Callable[[], object], seconds: float = READY_S) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, f"not within {seconds:g} s"
            time.sleep(0.1)

    return wait
