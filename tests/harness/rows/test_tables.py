"""docs/format.md shows what harness/rows/fields.py and other models say of their fields."""

import importlib.util
import os
from types import ModuleType

import pytest

from attnbench.harness.rows.model import FIELDS, KINDS
from tests.conftest import ROOT

MOST_BYTES = 24 << 10


@pytest.fixture(scope="module")
def page() -> ModuleType:
    found = importlib.util.spec_from_file_location("format_page", ROOT / "docs" / "format.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_document_shows_the_table(page: ModuleType) -> None:
    """To renew it: make approve."""
    text = page.PAGE.read_text()
    renewed = page.renewed(text)
    if os.environ.get("ATTNBENCH_APPROVE"):
        page.PAGE.write_text(renewed)
    else:
        assert text == renewed, "make approve renews it"
        assert len(text.encode()) <= MOST_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_stands_in_one_line_with_a_text(page: ModuleType, kind: str) -> None:
    lines = page.lines(KINDS[kind])
    assert [name for names, _, _ in lines for name in names] == list(FIELDS[kind])
    assert all(text and "|" not in text for _, _, text in lines)
