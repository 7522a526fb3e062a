"""The answers of the first screen: sentences with names in colour, pictures drawn twice."""

import re
from pathlib import Path

import pytest

from attnbench.reports.drawing.picture import Drawn
from attnbench.reports.pages import html
from tests.reports.fake_cards import fake_cards, with_cards
from tests.reports.fake_runs import quickstart
from tests.reports.pages.test_hostile import HOSTILE, Tags
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture
from tests.reports.rendering import openers, page_of

DRAWN = Drawn('<svg class="pic wide"></svg>', '<svg class="pic narrow"></svg>')


def cards_of(page: str) -> dict[str, str]:
    return dict(re.findall(r'(?s)<section class="card[^"]*" id="card-(\w+)"(.*?)</section>', page))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    with_cards(monkeypatch, *fake_cards())
    monkeypatch.setattr(html, "drawn", lambda picture, backends, name: DRAWN)
    return page_of(quickstart(tmp_path, lengths=(128, 256)))


def test_both_drawings_are_put_in_and_the_numbers_behind_them_are_there(page: str) -> None:
    found = cards_of(page)
    assert f'<div class="picture">{DRAWN.wide}{DRAWN.narrow}</div>' in found["wall"]
    numbers = re.search(r'<details class="numbers">.*</details>', found["wall"], re.DOTALL)
    assert numbers is not None
    assert "64 MiB" in numbers.group()


def test_names_add_no_tag_to_cards(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_cards(monkeypatch, *fake_cards((HOSTILE, "sdpa")))
    page = page_of(run)
    found = Tags()
    found.feed(page)
    assert not found.tags & {"img", "iframe", "object", "embed", "link", "base", "form"}
    assert len(found.scripts) == 2 + openers(page)
    assert not [name for name in found.attributes if name.startswith("on")]
    assert '<b class="c-0">&lt;img src=x' in page
