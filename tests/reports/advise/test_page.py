"""Advice as a page: the answers first, then the numbers; whole without any run too."""

from attnbench.reports.advise.answer import advise
from attnbench.reports.advise.page import render
from attnbench.reports.advise.stored import StoredRows
from tests.reports.fake_advice import inquiry


def test_foreign_text_is_escaped():
    asked = inquiry(model="<script>alert(1)</script>", config="<b>")
    assert "<script>alert" not in render(advise(asked, StoredRows()))
