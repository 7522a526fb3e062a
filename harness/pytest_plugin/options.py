"""Options of pytest: `--attnbench-NAME`, and `attnbench_NAME` in its ini file.

Every pytest session reads these declarations, so nothing heavy is imported here.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest

from ..files.errors import BadInput, Spelling, option
from ..verbs import fields
from ..verbs.request import Option, checked, declared

ENTRY_POINT = "attnbench"  # in the group pytest11 of pyproject.toml
Expectable = Literal["oom", "predicted_oom", "crashed", "error", "incorrect", "timeout"]


def percentage(value: str) -> str:
    """Raises ValueError."""
    from ..verbs.compare import NOISE, PERCENT

    if value != NOISE and not PERCENT.fullmatch(value):
        raise ValueError("wanted a percentage from 0%, or noise; write it as 5%")
    return value


def own(value: str, parse: Callable[[Any], Any]) -> Option:
    """What `attnbench run` has not."""
    return Option(value, parse=parse, of=Spelling.PYTEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestRequest(fields.HowMeasured):
    """How the scenarios of a session are measured, and what fails it."""

    plan: fields.Plan = None
    measure: fields.Measures = None
    set: Annotated[fields.Several, Option("A.B=C", parse=fields.listed)] = ()
    """Change a field of every scenario; repeatable."""
    scenarios: Annotated[fields.Several, own("PATTERN", fields.listed)] = ()
    """Shell patterns of scenario files, relative to the root folder; repeatable."""
    expect: Annotated[tuple[Expectable, ...], own("STATUS,...", fields.separated)] = ()
    """Statuses that count as expected failures, such as oom where a scenario reaches the wall; also
    timeout, crashed, incorrect, error.
    """
    fail_slower: Annotated[str | None, own("PERCENT", percentage)] = None
    """Fail the session if a case is slower by more than PERCENT than in a stored run; exit code 6:
    nothing is decided.
    """
    against: Annotated[fields.Several, own("RUN,...", fields.separated)] = ()
    """The stored run: folder, name or baseline, one for each scenario; or last:5, the five runs
    before.
    """

    @property
    def of_run(self) -> dict[str, Any]:
        """What `attnbench run` has too."""
        known = declared(PytestRequest).items()
        return {name: getattr(self, name) for name, one in known if one.of is None}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if pluginmanager.get_name(sys.modules[__package__]) != ENTRY_POINT:
        pluginmanager.set_blocked(ENTRY_POINT)  # loaded with -p: it must not come twice
    group = parser.getgroup("attnbench", "scenarios of attnbench")
    for name, one in declared(PytestRequest).items():
        names = (name, *one.also)
        settings: dict[str, Any] = {"action": "append" if one.is_many else "store"}
        settings |= {"action": "store_true"} if one.is_switch else {"metavar": one.value}
        flags = [f"--attnbench-{also.replace('_', '-')}" for also in names]
        help_ = one.help.replace("%", "%%")
        group.addoption(*flags, dest=f"attnbench_{name}", help=help_, **settings)
        kind: Any = "bool" if one.is_switch else "linelist" if one.is_many else "string"
        for also in names:
            parser.addini(f"attnbench_{also}", one.help, type=kind)


def given(config: pytest.Config) -> dict[str, Any]:
    """What the user has set: on the command line, else in the ini file."""
    found = {}
    for name, one in declared(PytestRequest).items():
        of_ini = [config.getini(f"attnbench_{also}") for also in (name, *one.also)]
        values = [value for value in (config.getoption(f"attnbench_{name}"), *of_ini) if value]
        if name == "set":  # fields that the command line does not set stay as in the ini file
            texts = {text.partition("=")[0]: text for some in values[::-1] for text in some}
            values = [list(texts.values())] if texts else []
        if values:
            found[name] = values[0]
    return found


def requested(config: pytest.Config) -> PytestRequest:
    """Raises UsageError."""
    try:
        request = checked(PytestRequest, given(config), Spelling.PYTEST)
        if config.getoption("attnbench_against") and not request.fail_slower:
            raise BadInput(f"{option('against')} needs {option('fail_slower')}")
    except BadInput as error:
        raise pytest.UsageError(*error.spelled(Spelling.PYTEST).splitlines()) from None
    root = config.invocation_params.dir if config.getoption("attnbench_runs") else config.rootpath
    return replace(request, runs=root / request.runs)
