"""Reports read files: they work without torch."""

import subprocess
import sys


def test_a_report_needs_neither_torch_nor_pyplot() -> None:
    imports = (
        "import sys, attnbench.reports.pages.html; from attnbench.reports.exports import load,"
        " names; list(map(load, names()))"
    )
    code = imports + "; print([m for m in ('torch', 'matplotlib.pyplot') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
