"""reports/pages/html.py: one self-contained file with the findings, whatever data is missing."""

import re

from attnbench.reports.pages.html import coloured
from tests.reports.rendering import without_scripts


def test_every_id_is_unique_and_every_reference_has_its_target(page: str) -> None:
    check_references(page)


def check_references(page: str) -> None:
    page = without_scripts(page)
    ids = re.findall(r'\sid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)|aria-labelledby="([^"]*)"', page)
    assert {name for found in used for name in " ".join(found).split()} <= set(ids)


def test_every_picture_has_a_name_that_says_its_axes_and_its_numbers(page: str) -> None:
    pictures = re.findall(r"<svg [^>]*>", page)
    charts = [one for one in pictures if re.search(r'class="pic (chart|wall)', one)]
    assert charts
    assert all("sequence length N" in one for one in charts)
    assert all('role="img" aria-label="' in one for one in pictures)
    # cards: memory, time and heads
    assert page.count('<details class="part numbers">') == 3


def test_a_command_between_backticks_is_code_and_text() -> None:
    shown = coloured("sdpa: `attnbench run <x> --only sdpa` decides it", ["sdpa"])
    assert "<code>attnbench run &lt;x&gt; --only sdpa</code> decides it" in shown
    assert shown.startswith("<b ")
    assert coloured("one ` alone", []) == "one ` alone"
