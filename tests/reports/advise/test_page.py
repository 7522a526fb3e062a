"""Advice as a page: the answers first, then the numbers; whole without any run too."""

from pathlib import Path

from attnbench.reports.advise.answer import advise
from attnbench.reports.advise.page import render
from attnbench.reports.advise.stored import StoredRows
from tests.reports.fake_advice import SDPA, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024)


def test_the_same_rows_give_the_same_bytes(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(tmp_path, asked, LENGTHS)
    one, two = (render(advise(asked, rows_of(asked, folder))) for _ in range(2))
    assert one == two


def test_foreign_text_is_escaped():
    asked = inquiry(model="<script>alert(1)</script>", config="<b>")
    assert "<script>alert" not in render(advise(asked, StoredRows()))
