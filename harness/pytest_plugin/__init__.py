"""pytest's way in: scenario files become tests, and what they measured goes through
pytest-benchmark (docs/pytest.md).

This file and session.py are loaded in every pytest session of an environment that has attnbench, so
they import nothing but the standard library and pytest; the rest comes with the first scenario
file.
"""

import re
import sys
from collections.abc import Generator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .session import NOT_UNDER_XDIST, runs_key

if TYPE_CHECKING:
    from .items import ScenarioFile, ScenarioItem

ENTRY_POINT = "attnbench"  # in the group pytest11 of pyproject.toml
OWN_SUFFIXES = (".scenario.yaml", ".scenario.yml")
MOST_BYTES = 1 << 20  # of a scenario
FEWEST_KEYS = (
    3  # one may be missing or misspelt: then the file is collected, and the mistake is told
)
TOP_KEYS = rb"""["']?(name|question|backends|grid)["']?[ \t]*:"""
IN_BLOCK_STYLE, IN_FLOW_STYLE = (
    re.compile(rb"^" + TOP_KEYS, re.MULTILINE),
    re.compile(rb"[{,]\s*" + TOP_KEYS),
)
OPTIONS = {
    "plan": ("NAME", "Measure scenarios by this plan: quick, standard or rigorous."),
    "device": ("KIND", "Measure scenarios on auto, cpu or cuda."),
    "out": ("DIR", "Folder for the runs of scenarios; results in the root folder if not given."),
    "expect": (
        "STATUS,...",
        (
            "Statuses that are expected failures, for scenarios whose point is the wall: oom,"
            " timeout, crashed, incorrect, error."
        ),
    ),
}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if pluginmanager.get_name(sys.modules[__name__]) != ENTRY_POINT:
        pluginmanager.set_blocked(
            ENTRY_POINT
        )  # asked for with -p: the entry point, which is read later, would be a second registration
    group = parser.getgroup("attnbench", "scenarios of attnbench")
    for name, (metavar, text) in OPTIONS.items():
        group.addoption(f"--attnbench-{name}", metavar=metavar, help=text)
        parser.addini(f"attnbench_{name}", text)
    text = "Change a field of every scenario, as limits.memory_gib=2; repeatable."
    group.addoption("--attnbench-set", metavar="A.B=C", action="append", default=[], help=text)
    parser.addini("attnbench_set", text, type="linelist")
    group.addoption(
        "--attnbench-timeout", metavar="SECONDS", help="Time limit of one step of a case."
    )
    group.addoption(
        "--attnbench-wait", action="store_true", help="Wait for another run on this device to end."
    )
    parser.addini(
        "attnbench_scenarios",
        "Shell patterns of scenario files, as paths from the root folder.",
        type="linelist",
    )


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "gpu: measured on a GPU",
        "backend(name): the backend that a case measures",
        "dtype(name): fp32, bf16 or fp16",
    ):
        config.addinivalue_line("markers", line)
    if config.getoption("attnbench_expect") or config.getini("attnbench_expect"):
        from .settings import settings_of

        settings_of(config)  # a misspelt status is told before anything is collected


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    if file_path.suffix not in (".yaml", ".yml") or not wanted(file_path, parent):
        return None
    from .items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


def wanted(path: Path, parent: pytest.Collector) -> bool:
    """Whether a YAML file is ours to collect: a stranger's must go to whoever can read it."""
    given, own = parent.session.isinitpath(path), path.name.endswith(OWN_SUFFIXES)
    if given or own:
        return (given and own) or looks_like_a_scenario(path)
    root = parent.config.rootpath
    patterns = parent.config.getini("attnbench_scenarios")
    return (
        bool(patterns)
        and path.is_relative_to(root)
        and any(fnmatchcase(path.relative_to(root).as_posix(), one) for one in patterns)
    )


def looks_like_a_scenario(path: Path) -> bool:
    """By its top-level keys, without parsing it: a broken scenario is still one."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return False
    pattern = IN_FLOW_STYLE if content.lstrip().startswith(b"{") else IN_BLOCK_STYLE
    return len(set(pattern.findall(content))) >= FEWEST_KEYS


def case_behind(item: pytest.Item) -> "ScenarioItem | None":
    if runs_key not in item.config.stash:
        return None
    from .items import ScenarioItem

    return item if isinstance(item, ScenarioItem) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and case_behind(item):
        report.longrepr = (
            str(item.path),
            1,
            report.longrepr[2],
        )  # what is skipped stands there, and not in our own code
    return report


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if case := case_behind(item):
        case.file.run.turn_over(
            case.case.id
        )  # a test that was skipped before its setup has no teardown of its own


def pytest_sessionfinish(session: pytest.Session) -> None:
    if runs_key in session.config.stash:
        session.config.stash[runs_key].close()


def pytest_terminal_summary(
    terminalreporter: "pytest.TerminalReporter", config: pytest.Config
) -> None:
    lines = config.stash[runs_key].summary() if runs_key in config.stash else []
    skipped = [
        report.longrepr
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    ]
    unmeasured = sum(NOT_UNDER_XDIST in reason for *_, reason in skipped)
    if unmeasured:  # this process then only hears of the others' tests
        lines = [f"{NOT_UNDER_XDIST} ({unmeasured} skipped)"]
    if lines:
        terminalreporter.ensure_newline()
        terminalreporter.section("attnbench", sep="-")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.hookimpl(optionalhook=True)  # the hook is there only with pytest-benchmark
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Where the numbers come from.

    Not in machine_info: pytest-benchmark compares that before anything ran, and would warn of a
    difference every time.
    """
    if runs_key in config.stash and (origins := config.stash[runs_key].origins()):
        output_json["attnbench"] = origins
