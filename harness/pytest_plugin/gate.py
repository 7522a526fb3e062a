"""`--attnbench-fail-slower`: is a case slower than in a stored run?

Comparison, intervals and words are those of `attnbench compare --gate`.
"""

import shlex
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..files.errors import BadInput, Refusal
from ..rows.names import find, number_of_last
from ..rows.run_files import read_meta
from ..verbs.compare import compared_with
from ..verbs.margins import Margins, read_margins

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison

FAILED = 1  # as of tests
MOST_SLOWER = 10  # cases with their numbers; the command that is named has all


def margins_of(text: str) -> Margins:
    """Of "5%" or "noise". Raises BadInput."""
    try:
        return read_margins(f"latency: {text}")
    except BadInput as error:
        said = str(error).replace("--gate: latency:", "--attnbench-fail-slower:")
        raise BadInput(said) from None


def base_of(scenario: str, against: Sequence[str], root: Path) -> str:
    """The run of a scenario among the stored ones that the user names; or last:N, as it is named.
    Raises BadInput.
    """
    for name in against:
        if number_of_last(name):
            return name
        if read_meta(run := find(name, root))["scenario"].get("name") == scenario:
            return str(run)
    given = ", ".join(against) or "nothing"
    raise BadInput(
        f"--attnbench-fail-slower: --attnbench-against names {given}; wanted a stored run of the"
        f" scenario {scenario}: measure it once without these options, name that run with"
        " `attnbench compare latest --save main`, and add --attnbench-against main; or last:5"
    )


def judged(
    base: str, new: Path, root: Path, margins: Margins, paths: Sequence[str]
) -> tuple[int, list[str]]:
    """The session's exit code, and what is said about a run. `paths`: of both, as shown."""
    from ...reports.comparison.gate import Gate
    from ..verbs.compare import EXIT_CODES, NOTHING_DECIDED

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # of packages that are imported here
            found = compared_with(base, new, root, Gate(margins=margins))
    except Refusal as refusal:
        return NOTHING_DECIDED, [f"not compared with {paths[0]}: {refusal}"]
    assert found.gate_result is not None
    more = f"every case: attnbench compare {shlex.join(paths)}"
    outcome = found.gate_result.outcome
    return FAILED if outcome == "failed" else EXIT_CODES[outcome], [*_said(found), more]


def _said(found: "Comparison") -> Iterator[str]:
    from ...reports.comparison.text import gate_text
    from ...reports.comparison.verdict_text import verdict_text

    assert found.gate_result is not None
    yield gate_text(found.gate_result)
    for one in found.gate_result.regressions[:MOST_SLOWER]:
        yield f"{one.shown['case']}: {verdict_text(one)}"
