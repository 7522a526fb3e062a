"""The answers of the first screen: sentences with names in colour, pictures drawn twice."""

import re
from pathlib import Path

import pytest

from attnbench.reports.drawing.picture import Drawn
from attnbench.reports.elements import Card
from attnbench.reports.pages import html
from tests.reports.fake_cards import fake_cards, figure_card, with_cards
from tests.reports.fake_contrasts import decode
from tests.reports.fake_inexact import inexact
from tests.reports.fake_runs import quickstart
from tests.reports.pages.test_hostile import HOSTILE, Tags
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture
from tests.reports.rendering import openers, page_of, text_of, without_scripts

DRAWN = Drawn('<svg class="pic wide"></svg>', '<svg class="pic narrow"></svg>')


def cards_of(page: str) -> dict[str, str]:
    return dict(re.findall(r'(?s)<section class="card[^"]*" id="card-(\w+)"(.*?)</section>', page))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    with_cards(monkeypatch, *fake_cards())
    monkeypatch.setattr(html, "drawn", lambda picture, backends, name: DRAWN)
    return page_of(quickstart(tmp_path, lengths=(128, 256)))


def test_cards_come_first_in_their_order_with_title_sentence_and_note(page: str) -> None:
    found = cards_of(page)
    assert list(found) == ["wall", "heads", "fastest"]
    assert page.index('id="card-fastest"') < page.index('<section id="summary"')
    assert "The wall<small>memory needed</small>" in found["wall"]
    assert "stops at N = 2 848" in text_of(found["wall"])
    assert '<p class="note">Crosses: out of memory.</p>' in found["wall"]
    assert re.search(r'<section class="card full" id="card-fastest"', page)


def test_of_two_cards_side_by_side_the_chart_of_memory_has_the_wider_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall, heads, fastest = fake_cards()
    with_cards(monkeypatch, heads, fastest, wall)
    page = page_of(quickstart(tmp_path, lengths=(128, 256)))
    places = re.findall(r'<section class="card ?(\w*)" id="card-(\w+)"', page)
    assert places == [("right", "heads"), ("full", "fastest"), ("left", "wall")]


def test_names_of_backends_have_the_colour_of_their_place(page: str) -> None:
    found = cards_of(page)
    assert '<b class="c-1">fused</b> with 8 heads' in found["wall"]
    assert '<b class="c-2">sdpa</b> grows' in found["wall"]
    assert '<b class="c-2">sdpa</b><small>' in found["fastest"]


@pytest.mark.long
def test_both_drawings_are_put_in_and_the_numbers_behind_them_are_there(page: str) -> None:
    found = cards_of(page)
    assert f'<div class="picture">{DRAWN.wide}{DRAWN.narrow}</div>' in found["wall"]
    numbers = re.search(r'<details class="numbers">.*</details>', found["wall"], re.DOTALL)
    assert numbers is not None
    assert "64 MiB" in numbers.group()


@pytest.mark.long
def test_a_table_across_is_put_in_again_for_narrow_pages_with_the_same_cells(page: str) -> None:
    across, down = re.findall(
        r'(?s)<table class="answer (?:across|down)".*?</table>', cards_of(page)["fastest"]
    )
    cell = r"<t[hd](?: [^>]*)?>(.*?)(?=</th>|<t[hd]|</tr>|\n)"
    cells = [re.findall(cell, part) for part in (across, down)]
    assert sorted(cells[0]) == sorted(cells[1])
    assert re.findall(r'scope="col"[^>]*>([^<]*)', down) == ["heads", "1", "8"]
    assert "<small>1.2 ms</small>" in across


def test_a_picture_without_drawings_is_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cards(monkeypatch, *fake_cards())
    monkeypatch.setattr(html, "drawn", lambda picture, backends, name: Drawn("", ""))
    wall = cards_of(page_of(quickstart(tmp_path, lengths=(128,))))["wall"]
    assert "<svg" not in wall
    assert '<table class="answer ' in wall
    assert "64 MiB" in wall


def test_a_card_may_have_a_figure_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cards(
        monkeypatch, figure_card(), Card(name="bare", title="Bare", sentence="So.", picture=None)
    )
    page = page_of(quickstart(tmp_path, lengths=(128,)))
    found = cards_of(page)
    assert 'aria-labelledby="card-growth-title' in found["growth"]
    assert "So." in found["bare"]
    ids = re.findall(r'\sid="([^"]*)"', without_scripts(page))
    assert len(ids) == len(set(ids))


@pytest.mark.long
def test_the_summary_does_not_repeat_what_a_card_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = quickstart(tmp_path)

    def summary(page: str) -> str:
        return text_of(
            page[page.index('<section id="summary"') :].split("</section>", maxsplit=1)[0]
        )

    with_cards(monkeypatch)
    alone = summary(page_of(run))
    with_cards(monkeypatch, *fake_cards())
    beside = summary(page_of(run))
    assert "sdpa is fastest at" in alone
    assert "sdpa is fastest at" not in beside
    assert "Who wins where" in alone
    assert "Who wins where" in beside


def test_inexact_backends_have_their_mark_on_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cards(monkeypatch, *fake_cards(("linformer", "rnn")))
    given = []
    monkeypatch.setattr(html, "drawn", lambda picture, *_: given.append(picture) or Drawn("", ""))
    found = cards_of(page_of(inexact(tmp_path)))
    assert re.search(r'<b class="c-\d">linformer ~</b> with 8 heads', found["wall"])
    wall, dots = given
    assert wall.panels[0][1][0].backend == "linformer ~"
    assert dots.rows[1].group == "rnn ≠"


def test_names_add_no_tag_to_cards(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_cards(monkeypatch, *fake_cards((HOSTILE, "sdpa")))
    page = page_of(run)
    found = Tags()
    found.feed(page)
    assert not found.tags & {"img", "iframe", "object", "embed", "link", "base", "form"}
    assert len(found.scripts) == 2 + openers(page)
    assert not [name for name in found.attributes if name.startswith("on")]
    assert '<b class="c-0">&lt;img src=x' in page


def test_a_card_with_a_figure_says_which_line_is_whose(tmp_path: Path) -> None:
    found = cards_of(page_of(decode(tmp_path)))
    legend = re.search(r'(?s)<ul class="legend">(.*?)</ul>', found["growth"])
    assert legend is not None
    assert re.findall(r'data-look="(\d)"', legend.group()) == ["0", "1"]
    assert text_of(f"<body>{legend.group()}").split()[-2:] == ["fused", "sdpa"]
