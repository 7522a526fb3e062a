"""`--attnbench-fail-slower`: is a case slower than in a stored run?

Comparison, intervals and words are those of `attnbench compare --gate`.
"""

import shlex
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..api.sides import against as compared_with
from ..files.errors import BadInput, Refusal, Spelling, option
from ..rows.names import find, number_of_last
from ..rows.run_files import read_meta

FAILED = 1  # as of tests
MOST_SLOWER = 10  # cases with their numbers; the command that is named has all


def base_of(scenario: str, against: Sequence[str], root: Path) -> str:
    """The run of a scenario among the stored ones that the user names; or last:N, as it is named.
    Raises BadInput.
    """
    for name in against:
        if number_of_last(name):
            return name
        if read_meta(run := find(name, root))["scenario"].get("name") == scenario:
            return str(run)
    names = ", ".join(against) or "nothing"
    raise BadInput(
        f"{option('fail_slower')}: {option('against')} names {names}; wanted a stored run of the"
        f" scenario {scenario}: measure it once without these options, name that run with"
        f" `attnbench compare latest --save main`, and add {option('against', 'main')}; or last:5"
    )


def judged(
    base: str, new: Path, root: Path, margins: Mapping[str, float | None]
) -> tuple[int, list[str]]:
    """The session's exit code, and what is said about a run."""
    from ...reports.comparison.gate import Gate
    from ...reports.comparison.text import gate_text
    from ...reports.comparison.verdict_text import verdict_text
    from ..api.gate import EXIT_CODES, NOTHING_DECIDED

    paths = [base if number_of_last(base) else shortest(Path(base)), shortest(new)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # of packages that are imported here
            found = compared_with(base, new, root, Gate(margins=margins))
    except Refusal as refusal:
        return NOTHING_DECIDED, [
            f"not compared with {paths[0]}: {refusal.spelled(Spelling.PYTEST)}"
        ]
    result = found.gate_result
    assert result is not None
    slower = result.regressions[:MOST_SLOWER]
    return FAILED if result.outcome == "failed" else EXIT_CODES[result.outcome], [
        gate_text(result),
        *(f"{one.shown['case']}: {verdict_text(one)}" for one in slower),
        f"every case: attnbench compare {shlex.join(paths)}",
    ]


def shortest(path: Path) -> str:
    """From the current folder, as messages name it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
