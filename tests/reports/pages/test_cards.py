"""The answers of the first screen: sentences with names in colour, pictures drawn twice."""

import re
from pathlib import Path

import pytest

from attnbench.reports.elements import (
    Card,
    Dot,
    DotPlot,
    DotRow,
    Table,
    WallChart,
    WallLine,
    WallPoint,
)
from attnbench.reports.pages import html
from tests.made_runs import quickstart
from tests.reports.pages.test_hostile import HOSTILE, Tags
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture
from tests.reports.rendering import openers, page_of

NUMBERS = Table(
    title="Memory needed", columns=("N", "fused", "sdpa"), rows=(("1k", "64 MiB", "8 MiB"),)
)


def fake_cards(backends: tuple[str, str] = ("fused", "sdpa")) -> tuple[Card, ...]:
    """The wall, heads and the fastest, of a run that has these two backends."""
    first, second = backends
    points = tuple(
        WallPoint(seq_len=n, need_bytes=64 * n * n, end="ok" if n < 4096 else "oom")
        for n in (1024, 2048, 4096)
    )
    wall = WallChart(
        panels=(("8 heads", (WallLine(backend=first, points=points, stop_n=2848),)),),
        budget_bytes=1 << 29,
        description="Memory over N.",
        table=NUMBERS,
    )
    dots = DotPlot(
        rows=(
            DotRow(group=first, label="time", dot=Dot(ratio=1.6, low=1.5, high=1.7, word="more")),
            DotRow(group=second, label="time", dot=None, missing="no pair"),
        ),
        x_label="ratio",
        band_ratio=0.05,
        table=Table(title="Ratios", columns=("backend", "time"), rows=((first, "×1.60"),)),
    )
    fastest = Table(
        title="Who is fastest",
        columns=("heads", "N = 1k", "N = 2k", "N = 4k"),
        rows=(
            ("1", f"tie: {first} = {second} · 1.2 ms", f"{second} · 4 ms", f"{second} · 9 ms"),
            ("8", f"{second} · 2 ms · then {first} ×1.31", f"{second} · 5 ms", "none"),
        ),
    )
    return (
        Card(
            name="wall",
            title="The wall",
            sentence=(
                f"{first} with 8 heads needs 64 N² bytes and stops at N = 2 848; {second} grows"
                " linearly."
            ),
            picture=wall,
            subtitle="memory needed",
            note="Crosses: out of memory.",
        ),
        Card(
            name="heads",
            title="8 heads against 1",
            sentence=f"Same FLOPs; time grows ×1.60 in {first}.",
            picture=dots,
        ),
        Card(
            name="fastest",
            title="Who is fastest",
            sentence=f"{second} with 8 heads.",
            picture=fastest,
            wide=True,
        ),
    )


def with_cards(monkeypatch: pytest.MonkeyPatch, *cards: Card) -> None:
    """Reports have these cards."""
    monkeypatch.setattr("attnbench.reports.pages.report.cards", lambda rows: list(cards))


DRAWN = '<svg class="pic wide"></svg><svg class="pic narrow"></svg>'


def cards_of(page: str) -> dict[str, str]:
    return dict(re.findall(r'(?s)<section class="card[^"]*" id="card-(\w+)"(.*?)</section>', page))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    with_cards(monkeypatch, *fake_cards())
    monkeypatch.setattr(html, "drawn", lambda *_: DRAWN)
    return page_of(quickstart(tmp_path, lengths=(128, 256)))


@pytest.mark.long
def test_both_drawings_are_put_in_and_the_numbers_behind_them_are_there(page: str) -> None:
    found = cards_of(page)
    assert f'<div class="picture">{DRAWN}</div>' in found["wall"]
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
