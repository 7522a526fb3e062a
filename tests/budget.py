"""What the default set of tests may cost: 2 s of processor time per test, 60 process starts in all.

Processor time, of the test and of the children that it waited for, so that a busy machine fails
nothing. Only sessions that leave out the long tests are held to it, as `make test` is: a test that
is run alone also pays for what it is the first to import.
"""

import gc
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

TEST_S = 2.0
PROCESS_STARTS = 60
OTHER_SETS = ("long", "nightly", "gpu")
# The packages that take a second to import, and would be paid by the first test that needs them.
HEAVY = (
    *("torch", "pandas", "scipy.stats", "matplotlib.figure"),
    *("transformers.modeling_utils", "transformers.models.llama.modeling_llama"),
    "attnbench.harness.verbs.app",
)
# Packages that the core does not know; their tests are in folders of these names.
PACKS = frozenset({"heads", "fleet", "advise"})
STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


def mark_packs(items: list[pytest.Item]) -> None:
    """The tests of packs are long, however short: `make test` is about the core."""
    for item in items:
        if not PACKS.isdisjoint(item.path.parts):
            item.add_marker(pytest.mark.long)


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of a test: so many each time, and the others in the nightly run."""
    return [
        pytest.param(one, marks=[pytest.mark.nightly] * (place >= count))
        for place, one in enumerate(values)
    ]


def processor_s() -> float:
    """Of this process, and of its children that have ended and were waited for."""
    return sum(os.times()[:4])


class Budget:
    """Counts in each process of pytest-xdist, and adds up in the one that prints."""

    def __init__(self, config: pytest.Config) -> None:
        self.applies = "not long" in str(config.option.markexpr)
        self.starts = 0
        workers = not hasattr(config, "workerinput") and config.getoption("numprocesses", None)
        if not workers:  # the starts of the workers themselves are not those of tests
            sys.addaudithook(self._count)

    def _count(self, event: str, _: object, starts: frozenset[str] = STARTS) -> None:
        self.starts += event in starts  # an argument, as the module is gone when Python ends

    def pytest_collection_finish(self) -> None:
        if self.applies:
            for name in HEAVY:
                with suppress(ModuleNotFoundError):  # optional
                    importlib.import_module(name)
        # Thousands of collected tests are no garbage; each gc.collect() would walk them, for 0.4 s.
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        before = processor_s()
        result = yield
        spent = processor_s() - before
        default = not any(map(item.get_closest_marker, OTHER_SETS))
        if self.applies and default and spent > TEST_S:
            pytest.fail(
                f"{spent:.1f} s of processor time, more than {TEST_S:g} s: mark it long or make it"
                " faster",
                pytrace=False,
            )
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["process_starts"] = self.starts
        elif self.applies and self.starts > PROCESS_STARTS and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.starts += getattr(node, "workeroutput", {}).get("process_starts", 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        limit = f"; at most {PROCESS_STARTS}, mark some long" if self.applies else ""
        terminalreporter.write_line(f"{self.starts} processes started by tests{limit}")
