"""The page in a real browser: offline, accessible, at every width, printed, light and dark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.budget import first

pytestmark = pytest.mark.long

WHITE = "rgb(255, 255, 255)"
Open = Callable[..., Any]
OPEN_DETAILS = """async () => {
    for (let round = 0; round < 4; round++) {  // what is folded may have more inside
        for (const folded of document.querySelectorAll("details")) folded.open = true;
        await new Promise(done => setTimeout(done, 50));
    }
}"""


SMALLEST_PX = """Math.min(...[...document.querySelectorAll("svg.pic text")].map(text => {
    const { width } = text.ownerSVGElement.getBoundingClientRect();
    const size = parseFloat(getComputedStyle(text).fontSize);
    return width ? size * width / text.ownerSVGElement.viewBox.baseVal.width : Infinity;
}))"""


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_width_overflows_and_every_text_is_legible(opened: Open, width: int) -> None:
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(SMALLEST_PX) > 11
    page.evaluate(OPEN_DETAILS)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("table.all tbody a").first.click()
    assert page.evaluate("document.querySelector('dialog').getBoundingClientRect().width") <= width
    assert page.evaluate(
        "document.querySelector('dialog').scrollWidth <="
        " document.querySelector('dialog').clientWidth"
    )


@pytest.mark.parametrize("seen", first(2, [("dark", 1280), ("light", 320), ("light", 1280)]))
def test_axe_finds_no_violation(opened: Open, seen: tuple[str, int]) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe: pip install axe-playwright-python",
    )
    scheme, width = seen
    page = opened(width, color_scheme=scheme, bypass_csp=True)  # axe adds a script of its own
    page.evaluate(OPEN_DETAILS)
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.locator("table.all tbody a").first.click()
    found = axe.Axe().run(page, context="dialog")
    assert found.violations_count == 0, found.generate_report()


def test_without_scripts_everything_is_there(opened: Open) -> None:
    plain, lively = opened(java_script_enabled=False), opened()
    lively.evaluate(OPEN_DETAILS)
    assert lively.locator("noscript").count() == 0
    for selector in (".picture svg", "table tbody tr", "#trust-list li", ".at"):
        assert plain.locator(selector).count() == lively.locator(selector).count() > 0
    assert plain.locator(".tools").is_hidden()
    assert plain.locator("button, .areas input").filter(visible=True).count() == 0
    assert (
        plain.locator(".area span").all_text_contents()
        == lively.locator(".area span").all_text_contents()
    )
    assert plain.locator(".at title").first.text_content() == lively.locator(
        ".at"
    ).first.get_attribute("aria-label")
    details = plain.locator("#rows details")
    plain.locator("#rows > summary").click()
    details.locator("summary").click()
    assert details.locator("td").first.is_visible()
    command = details.locator("td").first.inner_text()
    assert command.startswith("attnbench run quickstart --only naive-")
    plain.locator("#card-fastest table a").first.click()
    assert plain.url.endswith("#row-2")


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
        blocked.locator("#rows > summary").click()
        assert blocked.locator("table.all").is_visible()
        details = blocked.locator("#rows details")
        details.locator("summary").click()
        assert details.locator("td").first.is_visible()


def test_a_printed_page_is_the_answer_pictures_and_trust_on_white(opened: Open) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.locator("nav, .tools, .caption button, #rows, .numbers")
    assert hidden.filter(visible=True).count() == 0
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == WHITE
    for selector in ("h1", "p.answer", "#trust-list li", "svg:visible", "#card-fastest table"):
        assert page.locator(selector).first.is_visible(), selector
    assert len(page.pdf(format="A4")) > 50_000


def test_the_first_screen_has_the_answer_and_a_picture_as_wide_as_its_card(opened: Open) -> None:
    page = opened()
    card = page.locator("#card-wall").bounding_box()
    first = page.locator("#card-wall .squares").bounding_box()
    last = page.locator("#card-wall svg:visible").bounding_box()
    assert last["x"] + last["width"] - first["x"] > 0.95 * card["width"]
    assert first["y"] + first["height"] <= 900
    for selector in ("p.answer", ".sure", "table.regret tbody tr"):
        assert page.locator(selector).first.bounding_box()["y"] < first["y"]
    assert page.locator("table.down").filter(visible=True).count() == 0


def test_every_control_is_reached_by_keyboard_and_shows_it(opened: Open) -> None:
    page = opened()
    reached = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        tag, outline = page.evaluate(
            "(({activeElement: at}) => [at.tagName, getComputedStyle(at).outlineStyle +"
            " getComputedStyle(at).stroke])(document)"
        )
        reached.add(tag.lower())
        assert outline != "nonenone", tag
    assert reached >= {"a", "summary", "div"}
