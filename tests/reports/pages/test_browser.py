"""The page in a real browser: offline, accessible, at every width, printed, light and dark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

WHITE = "rgb(255, 255, 255)"
CARDS = ("wall", "heads")
Open = Callable[..., Any]
OPEN_DETAILS = "document.querySelectorAll('details').forEach(details => { details.open = true })"


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_width_overflows(opened: Open, width: int) -> None:
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate(OPEN_DETAILS)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("table.all tbody a").first.click()
    assert page.evaluate("document.querySelector('dialog').getBoundingClientRect().width") <= width
    assert page.evaluate(
        "document.querySelector('dialog').scrollWidth <="
        " document.querySelector('dialog').clientWidth"
    )


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 320)])
def test_axe_finds_no_violation(opened: Open, scheme: str, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe: pip install axe-playwright-python",
    )
    page = opened(width, color_scheme=scheme, bypass_csp=True)  # axe adds a script of its own
    # sections below the fold too
    page.add_style_tag(content="section { content-visibility: visible !important }")
    page.evaluate(OPEN_DETAILS)
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.locator("table.all tbody a").first.click()
    found = axe.Axe().run(page, context="dialog")
    assert found.violations_count == 0, found.generate_report()


def test_without_scripts_everything_is_there(opened: Open) -> None:
    plain, lively = opened(java_script_enabled=False), opened()
    lively.evaluate(OPEN_DETAILS)
    lively.locator("noscript").first.wait_for(state="detached")
    lists = (".findings li", "#trust-list li")
    for selector in ("figure svg", "table tbody tr", *lists, ".at"):
        assert plain.locator(selector).count() == lively.locator(selector).count() > 0
    assert plain.locator(".tools").is_hidden()
    assert plain.locator("button").filter(visible=True).count() == 0
    assert plain.locator(".at title").first.text_content() == lively.locator(
        ".at"
    ).first.get_attribute("aria-label")
    details = plain.locator("#rows details")
    details.locator("summary").click()
    assert details.locator("td").first.is_visible()
    assert details.locator("td").first.inner_text().startswith("attnbench run --backends naive")
    plain.locator("#fastest table a").first.click()
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
    with (
        chromium.new_page(java_script_enabled=False) as off,
        chromium.new_page(bypass_csp=False) as blocked,
    ):
        off.goto(page_file.as_uri())
        blocked.goto(blocked_file.as_uri())
        assert blocked.locator("noscript").count() == 0
        assert blocked.locator("main").text_content() == off.locator("main").text_content()
        last = blocked.locator("main > section").last
        assert last.locator("table").first.is_visible()
        details = blocked.locator("#rows details")
        details.locator("summary").click()
        assert details.locator("td").first.is_visible()


def test_a_printed_page_is_answers_findings_and_figures_on_white(opened: Open) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.locator("nav, .tools, .caption button, #rows, figure table")
    assert hidden.filter(visible=True).count() == 0
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == WHITE
    for selector in ("h1", "#trust-list li", ".findings li", "figure svg", "#fastest table"):
        assert page.locator(selector).first.is_visible(), selector
    assert len(page.pdf(format="A4")) > 50_000


def test_on_a_wide_screen_two_answers_are_side_by_side_on_the_first_screen(opened: Open) -> None:
    page = opened()
    wall, heads = (page.locator(f"#card-{name} svg.wide").first.bounding_box() for name in CARDS)
    assert wall["x"] + wall["width"] < heads["x"]
    for box in (wall, heads):
        assert box["y"] + box["height"] <= 900
    assert page.locator("svg.narrow, table.down").filter(visible=True).count() == 0
    fastest = page.locator("#card-fastest").bounding_box()
    assert fastest["x"] == page.locator("#card-wall").bounding_box()["x"]
    assert fastest["y"] < 900


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
