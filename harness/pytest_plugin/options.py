"""Options of pytest: `--attnbench-NAME`, and `attnbench_NAME` in its ini file.

Every pytest session reads these declarations, so nothing heavy is imported here.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import pytest

from ..files.errors import BadInput, Spelling, instead_of, option, shown
from ..verbs.fields import (
    DEFAULT_ROOT,
    AllowImport,
    Device,
    Measures,
    MemoryGib,
    Plan,
    Runs,
    Set,
    Several,
    Timeout,
    Wait,
    listed,
    separated,
)
from ..verbs.request import Option, checked, declared

GROUP = "attnbench"


def failing(value: Any) -> Any:
    """Statuses; oom includes predicted_oom. Raises BadInput."""
    from ..rows.status import FAILURES, Status

    names, known = separated(value), (Status.OOM, Status.PREDICTED_OOM, *sorted(FAILURES))
    if wrong := [name for name in names if name not in known]:
        raise BadInput(
            f"{option('expect')}: no failing status {shown(wrong[0])};"
            f" {instead_of(wrong[0], known)}"
        )
    return (*names, *([Status.PREDICTED_OOM] if Status.OOM in names else []))


def margins(value: Any) -> Any:
    """Of the latency, from "5%" or "noise". Raises BadInput."""
    from ..api.margins import NOISE, PERCENT

    found = PERCENT.fullmatch(value)
    if not found and value != NOISE:
        raise BadInput(
            f"{option('fail_slower')}: found {shown(value)}; wanted a percentage from 0%, or noise;"
            " write it as 5%"
        )
    return {"latency": float(found[1]) / 100 if found else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestRequest:
    """How the scenarios of a session are measured, and what fails it."""

    plan: Plan = None
    measure: Measures = None
    device: Device = None
    timeout: Timeout = None
    memory_gib: MemoryGib = None
    set: Set = ()
    runs: Runs = DEFAULT_ROOT
    wait: Wait = False
    allow_import: AllowImport = False
    scenarios: Annotated[
        Several,
        Option(
            "Shell patterns of scenario files, as paths from the root folder.",
            "PATTERN",
            parse=listed,
        ),
    ] = ()
    expect: Annotated[
        Several,
        Option(
            "Statuses that are expected failures, for scenarios that reach the wall: oom, timeout,"
            " crashed, incorrect, error.",
            "STATUS,...",
            parse=failing,
        ),
    ] = ()
    fail_slower: Annotated[
        dict[str, float | None] | None,
        Option(
            "Fail the session if a case is slower than in a stored run, named by against, by more"
            " than this; exit code 6 if nothing is decided.",
            "PERCENT",
            parse=margins,
        ),
    ] = None
    against: Annotated[
        Several,
        Option(
            "Stored run to compare with: folder, name or baseline; several scenarios: one of each."
            " Or last:5, the five before.",
            "RUN,...",
            parse=separated,
        ),
    ] = ()


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup(GROUP, "scenarios of attnbench")
    for name, one in declared(PytestRequest).items():
        about, names = one.option, (name, *one.option.also)
        settings: dict[str, Any] = {"action": "append" if one.is_many else "store"}
        settings |= {"action": "store_true"} if one.is_switch else {"metavar": about.value}
        flags = [f"--attnbench-{also.replace('_', '-')}" for also in names]
        text = about.help.replace("%", "%%")
        group.addoption(*flags, dest=f"attnbench_{name}", help=text, **settings)
        for also in names:
            kind: Any = "bool" if one.is_switch else "linelist" if one.is_many else "string"
            parser.addini(f"attnbench_{also}", about.help, type=kind)


def given(config: pytest.Config) -> dict[str, Any]:
    """What the user has set: on the command line, else in the ini file."""
    found = {}
    for name, one in declared(PytestRequest).items():
        of_ini = [config.getini(f"attnbench_{also}") for also in (name, *one.option.also)]
        values = list(filter(None, [config.getoption(f"attnbench_{name}"), *of_ini]))
        if name == "set" and values:  # the other fields of the ini file stay changed
            fields = {text.partition("=")[0]: text for some in reversed(values) for text in some}
            found[name] = list(fields.values())
        elif values:
            found[name] = values[0]
    return found


def requested(config: pytest.Config) -> PytestRequest:
    """Raises UsageError."""
    try:
        request = checked(PytestRequest, given(config), Spelling.PYTEST)
        if config.getoption("attnbench_against") and request.fail_slower is None:
            raise BadInput(f"{option('against')} belongs to {option('fail_slower')}")
    except BadInput as error:
        raise pytest.UsageError(*error.spelled(Spelling.PYTEST).splitlines()) from None
    root = config.invocation_params.dir if config.getoption("attnbench_runs") else config.rootpath
    return replace(request, runs=root / request.runs)
