"""Doctor's findings as tables for the terminal."""

from ...reports.pages.terminal_table import TerminalTable
from ..doctor import Finding, Findings
from .tables import table


def tables(found: Findings) -> list[TerminalTable]:
    """One for the machine, and one for each GPU."""
    titles = {"": ""} | {finding.gpu: finding.gpu for finding in found.findings}
    used = {gpu["short_uuid"] for gpu in found.gpus if gpu["torch_uses"]}
    return [
        table(
            title + (", the one that torch uses" if gpu in used else ""),
            ("about", "", "found"),
            [_cells(one) for one in found.findings if one.gpu == gpu],
        )
        for gpu, title in titles.items()
    ]


def _cells(one: Finding) -> tuple[str, ...]:
    """Advice stands below the finding: three columns fit 80 characters, four do not."""
    return one.about, one.grade, f"{one.found}\n-> {one.advice}" if one.advice else one.found
