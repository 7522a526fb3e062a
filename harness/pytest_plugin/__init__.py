"""The pytest plugin: scenario files become tests, reported by pytest-benchmark (docs/pytest.md).

This file is loaded in every pytest session of an environment that has attnbench, so it imports
nothing but the standard library and pytest. The rest is imported with the first scenario file.
"""

import re
import sys
from collections.abc import Generator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .items import ScenarioFile, ScenarioItem
    from .runs import Runs

NOT_UNDER_XDIST = (
    "attnbench's cases need one worker of xdist; run with --dist loadgroup, or with -n 0, which"
    " also times them"
)
UNTIMED = "note: nothing is timed under xdist, which disables pytest-benchmark; -n 0 times"
ONE_WORKER = ("loadgroup", "loadscope", "loadfile")
"""What --dist may be: the cases of a file then stay together."""
DIST = "attnbench_dist"
"""What workers of xdist are told of --dist."""
OUTPUT = "attnbench"
"""What a worker of xdist tells: its lines at the end."""
runs_key: "pytest.StashKey[Runs]" = pytest.StashKey()
"""What the plugin keeps during a session."""
worker_lines_key: "pytest.StashKey[list[str]]" = pytest.StashKey()
"""What workers of xdist have told."""
ENTRY_POINT = "attnbench"  # in the group pytest11 of pyproject.toml
OWN_SUFFIXES = (".scenario.yaml", ".scenario.yml")
MAX_BYTES = 1 << 20  # of a scenario
MODELINE = re.compile(rb"^#[ \t]*yaml-language-server:[ \t]*\$schema=(\S+)", re.MULTILINE)
OUR_SCHEMA = b'"title": "attnbench scenario"'  # in the file that the line above names
FEWEST_KEYS = 3  # one may be missing or misspelt: the file is collected, and the mistake reported
TOP_KEYS = rb"""["']?(name|question|backends|grid)["']?[ \t]*:"""
IN_BLOCK_STYLE = re.compile(rb"^" + TOP_KEYS, re.MULTILINE)
IN_FLOW_STYLE = re.compile(rb"[{,]\s*" + TOP_KEYS)
EXPECT = (
    "Statuses that are expected failures, for scenarios that reach the wall: oom, timeout, crashed,"
    " incorrect, error."
)
SLOWER = (
    "Fail the session if a case is slower than in a stored run, named by --attnbench-against, by"
    " more than this; exit code 6 if nothing is decided."
)
AGAINST = (
    "Stored run to compare with: folder, name or baseline; several scenarios: one of each. Or"
    " last:5, the five before."
)
IMPORT = "Let workers import and run the modules that scenarios name, as this project's tests can."
OPTIONS = {
    "plan": ("NAME", "Measure scenarios by this plan: quick, standard or rigorous."),
    "measure": ("A,B", "What to measure of scenarios: latency,memory leaves out a GPU's counters."),
    "device": ("KIND", "Measure scenarios on auto, cpu or cuda."),
    "out": ("DIR", "Folder for the runs of scenarios; results in the root folder if not given."),
    "expect": ("STATUS,...", EXPECT),
    "fail-slower": ("PERCENT", SLOWER),
    "against": ("RUN,...", AGAINST),
}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if pluginmanager.get_name(sys.modules[__name__]) != ENTRY_POINT:
        # Loaded with -p: the entry point, which is read later, must not register it again.
        pluginmanager.set_blocked(ENTRY_POINT)
    group = parser.getgroup("attnbench", "scenarios of attnbench")
    for name, (metavar, text) in OPTIONS.items():
        group.addoption(f"--attnbench-{name}", metavar=metavar, help=text)
        parser.addini(f"attnbench_{name.replace('-', '_')}", text)
    group.addoption("--attnbench-allow-import", action="store_true", help=IMPORT)
    parser.addini("attnbench_allow_import", IMPORT, type="bool")
    text = "Change a field of every scenario, as limits.memory_gib=2; repeatable."
    group.addoption("--attnbench-set", metavar="A.B=C", action="append", default=[], help=text)
    parser.addini("attnbench_set", text, type="linelist")
    text = "Time limit of one step of a case."
    group.addoption("--attnbench-timeout", metavar="SECONDS", help=text)
    text = "Wait for another run on this device to end."
    group.addoption("--attnbench-wait", action="store_true", help=text)
    text = "Shell patterns of scenario files, as paths from the root folder."
    parser.addini("attnbench_scenarios", text, type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "gpu: measured on a GPU",
        "backend(name): the backend that a case measures",
        "dtype(name): fp32, bf16 or fp16",
    ):
        config.addinivalue_line("markers", line)
    checked = ("attnbench_expect", "attnbench_fail_slower", "attnbench_against")
    if any(config.getoption(name) or config.getini(name) for name in checked):
        from .runs import settings_of

        settings_of(config)  # refuses what is misspelt before anything is collected


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    if file_path.suffix not in (".yaml", ".yml") or not is_ours(file_path, parent):
        return None
    from .items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


def is_ours(path: Path, parent: pytest.Collector) -> bool:
    """Whether a YAML file is ours to collect; another plugin's file must go to that plugin.

    In a folder similar keys are not enough: what is no scenario would end the session.
    """
    own = path.name.endswith(OWN_SUFFIXES)
    if parent.session.isinitpath(path):
        return own or names_our_schema(path) or looks_like_a_scenario(path)
    if own and names_our_schema(path):
        return True
    root = parent.config.rootpath
    if not path.is_relative_to(root):
        return False
    name, patterns = path.relative_to(root).as_posix(), parent.config.getini("attnbench_scenarios")
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def names_our_schema(path: Path) -> bool:
    """By the comment that editors read: it names attnbench, or a file with our schema."""
    found = MODELINE.search(beginning(path))
    if found is None:
        return False
    name = found[1].decode(errors="replace")
    return "attnbench" in name or (
        "://" not in name and "\0" not in name and OUR_SCHEMA in beginning(path.parent / name)
    )


def beginning(path: Path) -> bytes:
    """Of a regular file; of anything else nothing, so that nobody waits for a FIFO."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(MAX_BYTES).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return b""


def looks_like_a_scenario(path: Path) -> bool:
    """By its top-level keys, without parsing it: a broken scenario is still one."""
    content = beginning(path)
    pattern = IN_FLOW_STYLE if content.lstrip().startswith(b"{") else IN_BLOCK_STYLE
    return len(set(pattern.findall(content))) >= FEWEST_KEYS


def as_scenario_item(item: pytest.Item) -> "ScenarioItem | None":
    if runs_key not in item.config.stash:
        return None
    from .items import ScenarioItem

    return item if isinstance(item, ScenarioItem) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if case := as_scenario_item(item):
        report.duration += case.moved_s
        case.moved_s = 0.0
        if report.skipped and isinstance(report.longrepr, tuple):
            # The place of a skip is the scenario file, not our own code.
            report.longrepr = (str(item.path), 1, report.longrepr[2])
    return report


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if case := as_scenario_item(item):  # called also for a test that was skipped before its setup
        case.file.run.case_done(case.case.id)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if runs_key not in session.config.stash:
        return
    runs = session.config.stash[runs_key]
    runs.close()
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        runs.judge()
        session.exitstatus = session.exitstatus or runs.exit_code
    if hasattr(session.config, "workeroutput"):
        lines = runs.summary()
        session.config.workeroutput[OUTPUT] = [*lines, UNTIMED] if lines else lines


@pytest.hookimpl(optionalhook=True, tryfirst=True)  # this and the next hooks exist with xdist only
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadgroup`, in which the cases of all scenarios are one group.

    A mark would not do: pytest 9.2 no longer hears of the groups of xdist 3.8.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    scheduler: Any = LoadGroupScheduling(config, log)
    group_of = scheduler._split_scope

    def group(nodeid: str) -> str:
        is_case = nodeid.partition("::")[0].endswith((".yaml", ".yml"))
        return OUTPUT if is_case else str(group_of(nodeid))

    scheduler._split_scope = group
    return scheduler


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput[DIST] = node.config.getoption("dist")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    told = getattr(node, "workeroutput", {}).get(OUTPUT, ())
    node.config.stash.setdefault(worker_lines_key, []).extend(told)


def pytest_terminal_summary(
    terminalreporter: "pytest.TerminalReporter", config: pytest.Config
) -> None:
    lines = list(dict.fromkeys(config.stash.get(worker_lines_key, ())))
    if runs_key in config.stash:
        lines = config.stash[runs_key].summary()
    if lines:
        terminalreporter.ensure_newline()
        terminalreporter.section("attnbench", sep="-")
        from ..files.printable import visible

        for line in lines:
            terminalreporter.write_line(visible(line))


@pytest.hookimpl(optionalhook=True)  # the hook exists only with pytest-benchmark
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Add where the numbers come from.

    Not to machine_info: pytest-benchmark compares that before anything ran, and would warn of a
    difference every time.
    """
    if runs_key in config.stash and (origins := config.stash[runs_key].origins()):
        output_json["attnbench"] = origins
