"""The page in a real browser: offline, accessible, at every width, printed, light and dark."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from attnbench.reports.drawing.picture import Drawn
from attnbench.reports.pages import html
from tests.reports.fake_cards import fake_cards, with_cards
from tests.reports.fake_runs import quickstart
from tests.reports.rendering import write_page

pytestmark = pytest.mark.long

LIGHT, DARK = ("rgb(246, 246, 244)", "rgb(27, 31, 36)"), ("rgb(18, 21, 24)", "rgb(233, 235, 238)")
WHITE = "rgb(255, 255, 255)"
CARDS = ("wall", "heads")
FIRST_PANEL = 360  # pixels: of a drawing for narrow pages
Open = Callable[..., Any]


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_width_overflows(opened: Open, width: int) -> None:
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate(
        "document.querySelectorAll('details').forEach(details => { details.open = true })"
    )
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("table.all tbody a").first.click()
    assert page.evaluate("document.querySelector('dialog').getBoundingClientRect().width") <= width
    assert page.evaluate(
        "document.querySelector('dialog').scrollWidth <="
        " document.querySelector('dialog').clientWidth"
    )


@pytest.mark.parametrize(("scheme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_light_and_dark_follow_the_reader_and_so_do_the_figures(
    opened: Open, scheme: str, colours: tuple[str, str]
) -> None:
    page = opened(color_scheme=scheme)
    paper, ink, text = page.evaluate(
        "[getComputedStyle(document.documentElement).backgroundColor,"
        " getComputedStyle(document.documentElement).color,"
        " getComputedStyle(document.querySelector('figure svg text')).fill]"
    )
    assert (paper, ink, text) == (*colours, colours[1])


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 320)])
def test_axe_finds_no_violation(opened: Open, scheme: str, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe: pip install axe-playwright-python",
    )
    page = opened(width, color_scheme=scheme, bypass_csp=True)  # axe adds a script of its own
    # sections below the fold too
    page.add_style_tag(content="section { content-visibility: visible !important }")
    page.evaluate(
        "document.querySelectorAll('details').forEach(details => { details.open = true })"
    )
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.locator("table.all tbody a").first.click()
    found = axe.Axe().run(page, context="dialog")
    assert found.violations_count == 0, found.generate_report()


def test_without_scripts_everything_is_there(opened: Open) -> None:
    plain, lively = opened(java_script_enabled=False), opened()
    lively.evaluate(
        "document.querySelectorAll('details').forEach(details => { details.open = true })"
    )
    lively.locator("noscript").first.wait_for(state="detached")
    for selector in (
        "figure svg",
        "table tbody tr",
        ".findings li",
        "#trust-list li",
        ".legend li",
        ".points circle",
    ):
        assert plain.locator(selector).count() == lively.locator(selector).count() > 0
    assert plain.locator(".tools").is_hidden()
    assert plain.locator("button").filter(visible=True).count() == 0
    assert plain.locator(".points circle title").first.text_content() == lively.locator(
        ".points circle"
    ).first.get_attribute("aria-label")
    details = plain.locator("#rows details")
    details.locator("summary").click()
    assert details.locator("td").first.is_visible()
    assert details.locator("td").first.inner_text().startswith("attnbench run --backends naive")
    plain.locator("#summary table a").first.click()
    assert plain.url.endswith("#row-0")


def test_a_page_whose_scripts_its_server_blocks_has_everything_too(
    chromium: Any, page_file: Path, tmp_path: Path
) -> None:
    blocking = '<meta http-equiv="Content-Security-Policy" content="script-src \'none\'">'
    blocked_file = tmp_path / "blocked.html"
    text = page_file.read_text().replace(
        '<meta charset="utf-8">', f'<meta charset="utf-8">{blocking}'
    )
    blocked_file.write_text(text)
    off = chromium.new_page(java_script_enabled=False)
    off.goto(page_file.as_uri())
    blocked = chromium.new_page(bypass_csp=False)
    blocked.goto(blocked_file.as_uri())
    try:
        assert blocked.locator("noscript").count() == 0
        assert blocked.locator("main").text_content() == off.locator("main").text_content()
        last = blocked.locator("main > section").last
        assert last.locator("table").first.is_visible()
        details = blocked.locator("#rows details")
        details.locator("summary").click()
        assert details.locator("td").first.is_visible()
    finally:
        off.close()
        blocked.close()


def test_sections_are_elements_once_the_browser_is_idle_and_folded_tables_once_they_open(
    opened: Open,
) -> None:
    page = opened()
    assert page.locator("main > section > noscript").count() == 0
    assert page.locator("table.all tbody tr").count() > 0
    folded = page.locator("main details:has(> noscript)")
    count = folded.count()
    assert count > 2
    assert page.locator(".card details.numbers table").count() == 0
    folded.first.locator("summary").click()
    page.locator(".card details.numbers table button").first.wait_for()
    assert folded.count() == count - 1


def test_an_address_with_an_anchor_has_every_section_at_once(visit: Open, page_file: Path) -> None:
    page = visit(page_file, state="#row-3")
    assert page.locator("#row-3").is_visible()
    assert 0 <= page.locator("#row-3").bounding_box()["y"] <= 900


def test_a_printed_page_is_answers_findings_and_figures_on_white(opened: Open) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.locator("nav, .tools, .caption button, #rows, figure table")
    assert hidden.filter(visible=True).count() == 0
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == WHITE
    for selector in ("h1", "#trust-list li", ".findings li", "figure svg", "#summary table"):
        assert page.locator(selector).first.is_visible(), selector
    assert len(page.pdf(format="A4")) > 50_000


def test_no_heading_is_the_last_line_of_a_printed_page(opened: Open) -> None:
    pypdf = pytest.importorskip("pypdf", reason="needs pypdf: pip install pypdf")
    page = opened()

    def plain(text: str) -> str:
        return "".join(normalize("NFKC", text).split())

    headings = {plain(text) for text in page.locator("h2, h3").all_text_contents()} - {""}
    pages = pypdf.PdfReader(BytesIO(page.pdf(format="A4"))).pages
    texts = [plain(one.extract_text()) for one in pages]
    assert len(texts) > 3
    assert sum(heading in "".join(texts) for heading in headings) > 8
    assert not [text[-60:] for text in texts if text.endswith(tuple(headings))]


def with_answers(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """A page with two cards side by side, drawn in the sizes of the wall and of heads."""
    with_cards(monkeypatch, *fake_cards())
    sizes = {"wall": ((632, 352), (326, 716)), "heads": ((472, 332), (326, 488))}

    def svg(look: str, width: int, height: int) -> str:
        box = f'viewBox="0 0 {width} {height}"'
        return f'<svg class="pic {look}" {box} role="img" aria-label="Drawn"></svg>'

    def drawn(picture: object, backends: object, name: str) -> Drawn:
        wide, narrow = sizes[name.removeprefix("card-")]
        return Drawn(svg("wide", *wide), svg("narrow", *narrow))

    monkeypatch.setattr(html, "drawn", drawn)
    return write_page(quickstart(folder, lengths=(512, 2048)), out=folder / "page.html")


def test_on_a_wide_screen_two_answers_are_side_by_side_on_the_first_screen(
    visit: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = visit(with_answers(monkeypatch, tmp_path))
    wall, heads = (page.locator(f"#card-{name} svg.wide").bounding_box() for name in CARDS)
    assert wall["x"] + wall["width"] < heads["x"]
    for box in (wall, heads):
        assert box["y"] + box["height"] <= 900
    assert page.locator("svg.narrow, table.down").filter(visible=True).count() == 0
    fastest = page.locator("#card-fastest").bounding_box()
    assert fastest["x"] == page.locator("#card-wall").bounding_box()["x"]
    assert fastest["y"] < 900


@pytest.mark.parametrize("width", [375, 768])
def test_on_a_narrow_screen_answers_are_stacked_and_the_first_picture_begins_on_it(
    visit: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int
) -> None:
    page = visit(with_answers(monkeypatch, tmp_path), width=width)
    look = "narrow" if width < 700 else "wide"
    wall, heads = (page.locator(f"#card-{name} svg.{look}").bounding_box() for name in CARDS)
    assert wall["y"] + FIRST_PANEL <= 900
    assert wall["x"] + wall["width"] <= width
    assert heads["y"] > wall["y"] + wall["height"]
    assert page.locator("table.across").filter(visible=True).count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (768, 900), (375, 667)])
def test_both_answers_are_read_without_scrolling_and_once(
    visit: Open, tmp_path: Path, width: int, height: int
) -> None:
    page = visit(write_page(quickstart(tmp_path), out=tmp_path / "page.html"), width=width)
    for name in CARDS:
        sentence = page.locator(f"#card-{name} .say").text_content()
        shown = page.get_by_text(sentence, exact=False).filter(visible=True)
        assert shown.count() == 1
        box = shown.bounding_box()
        assert 0 <= box["y"] < box["y"] + box["height"] <= height
    assert page.evaluate("scrollY") == 0


def test_the_navigation_stays_on_top_in_one_line_of_a_phone(
    visit: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = visit(with_answers(monkeypatch, tmp_path), width=375)
    links = page.locator("nav.top a")
    boxes = [links.nth(place).bounding_box() for place in range(links.count())]
    assert len(boxes) == 6
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[-1]["x"] + boxes[-1]["width"] <= 375
    page.evaluate("scrollTo(0, 2000)")
    assert page.locator("nav.top").bounding_box()["y"] == 0
    page.locator("nav.top a", has_text="Rows").click()
    top = page.locator("#rows").bounding_box()["y"]
    assert top >= page.locator("nav.top").bounding_box()["height"] - 1


def test_the_first_tab_skips_to_the_answers(opened: Open) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "answers"


def test_checks_open_from_the_navigation(opened: Open) -> None:
    page = opened()
    assert page.locator("#trust-list").is_hidden()
    page.locator("nav.top a", has_text="Checks").click()
    assert page.locator("#trust-list li").first.is_visible()


def test_a_table_that_scrolls_has_a_shade_where_there_is_more(opened: Open) -> None:
    page = opened(width=375)
    scroll = page.locator(".scroll:has(table.all)")
    assert scroll.evaluate("at => at.scrollWidth > at.clientWidth")
    scroll.scroll_into_view_if_needed()
    edge = """at => {
        const { right, top } = at.getBoundingClientRect();
        return [right, Math.max(top, 0) + 200];
    }"""
    x, y = scroll.evaluate(edge)
    clip = {"x": x - 12, "y": y, "width": 12, "height": 40}
    shaded = page.screenshot(clip=clip)
    scroll.evaluate("at => { at.scrollLeft = at.scrollWidth }")
    page.wait_for_timeout(100)
    assert page.screenshot(clip=clip) != shaded


@pytest.mark.parametrize("width", [320, 1280])
def test_a_screenshot_can_be_taken(opened: Open, width: int, tmp_path: Path) -> None:
    shot = opened(width).screenshot(path=tmp_path / "shot.png", full_page=True)
    assert shot.startswith(b"\x89PNG")
    assert len(shot) > 50_000


def test_every_control_is_reached_by_keyboard_and_shows_it(opened: Open) -> None:
    page = opened()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        tag, outline = page.evaluate(
            "(({activeElement: at}) => [at.tagName, getComputedStyle(at).outlineStyle +"
            " getComputedStyle(at).stroke])(document)"
        )
        reached.add(tag.lower())
        assert outline != "nonenone", tag
    assert reached >= {"a", "button", "div"}
