"""reports/pages/html.py: one self-contained file with the findings, whatever data is missing."""

import re
from html import unescape
from pathlib import Path

import pytest

from tests.made_runs import grid, row, write_run
from tests.reports.rendering import page_of, without_scripts

MOST_BYTES_500_CASES = 1_500_000  # ecosystem.md, C


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    page = without_scripts(page)
    addresses = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', page)
    assert addresses
    assert all((a or b).startswith("#") for a, b in addresses)
    assert "@import" not in page
    assert "default-src 'none'" in unescape(page)


def test_every_id_is_unique_and_every_reference_has_its_target(page: str) -> None:
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


@pytest.mark.long
def test_the_page_of_500_cases_is_small(tmp_path: Path) -> None:
    lengths, heads = (64, 128, 256, 512, 1024, 2048), (1, 2, 4, 8)
    batches = [grid(("naive", "fused", "sdpa"), lengths, heads, batch=b) for b in range(1, 8)]
    cases = [case for batch in batches for case in batch]
    assert len(cases) > 490
    page = page_of(write_run(tmp_path, cases, [row(one) for one in cases]))
    assert len(page.encode()) < MOST_BYTES_500_CASES
