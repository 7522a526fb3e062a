"""The page in a real browser: offline, accessible, at every width, printed, light and dark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

LIGHT, DARK = ("rgb(255, 255, 255)", "rgb(26, 28, 31)"), ("rgb(18, 18, 18)", "rgb(230, 231, 233)")
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
    for selector in (
        "figure svg",
        "table tbody tr",
        ".findings li",
        ".badges li",
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


def test_a_printed_page_has_no_controls_and_every_number(opened: Open) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("nav, .tools, .caption button").filter(visible=True).count() == 0
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == LIGHT[0]
    assert (
        page.evaluate(
            "document.querySelector('figure details table').getBoundingClientRect().height"
        )
        > 50
    )
    assert len(page.pdf(format="A4")) > 50_000


def test_the_first_screen_has_the_question_the_answers_the_badges_and_the_map(opened: Open) -> None:
    page = opened()
    for selector in (
        "#summary .question",
        "#summary .findings li >> nth=0",
        ".badges li >> nth=0",
        "#summary table thead",
    ):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900, selector


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
