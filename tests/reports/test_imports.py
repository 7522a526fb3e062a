"""Reports read files: they work without torch."""

import sys

from tests.conftest import ran


def test_a_report_needs_neither_torch_nor_pyplot() -> None:
    imports = (
        "import sys, attnbench.reports.pages.html; from attnbench.reports.exports import load,"
        " names; list(map(load, names()))"
    )
    code = imports + "; print([m for m in ('torch', 'matplotlib.pyplot') if m in sys.modules])"
    assert ran([sys.executable, "-c", code], check=True).stdout == "[]\n"
