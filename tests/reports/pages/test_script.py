"""reports/pages/report.js: sorting, filter, values at an N, samples, downloads, address."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.exports import export
from attnbench.reports.formatting import count_text, size_text
from attnbench.reports.subjects._memory_over_n import families, memory_curves
from attnbench.reports.subjects._over import n_text
from attnbench.reports.subjects._squares import areas_of, lengths_within, longest
from tests.made_runs import case, problem, quickstart, row, write_run
from tests.reports.rendering import rows_and_meta, write_page

Open = Callable[..., Any]
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>[red]x|`a`\x1b[31m\u202e"


def with_rows(page: Any) -> Any:
    """With the table of all rows unfolded."""
    page.locator("#rows > summary").click()
    page.locator("table.all tbody tr").first.wait_for()
    return page


def column(page: Any, place: int, table: str = "table.all") -> list[str]:
    return page.locator(
        f"{table} tbody tr:not([hidden]) > :nth-child({place + 1})"
    ).all_text_contents()


def titles(page: Any, table: str = "table.all") -> list[str]:
    return page.locator(f"{table} thead th").all_text_contents()


@pytest.mark.long
def test_a_column_sorts_by_size_and_not_by_letters(opened: Open) -> None:
    page = with_rows(opened())
    place = titles(page).index("latency")
    head = page.locator("table.all thead th").nth(place)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    texts = [text for text in column(page, place) if text]
    factor = {"μs": 1e-3, "ms": 1.0, "s": 1e3}
    values = [float(text.split()[0]) * factor[text.split()[1]] for text in texts]
    assert values == sorted(values)
    assert {text.split()[1] for text in texts} == {"ms", "μs"}
    assert column(page, place)[-1] == ""  # what has no value stands below
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [text for text in column(page, place) if text] == texts[::-1]
    assert column(page, place)[-1] == ""
    page.locator("table.all thead button").first.click()
    assert page.locator("table.all [aria-sort]").count() == 1


def test_the_filter_wants_every_word_and_also_knows_what_all_rows_have_in_common(
    opened: Open,
) -> None:
    page = with_rows(opened())
    total = page.locator("table.all tbody tr").count()
    page.locator("#filter").fill("FUSED  8192")
    assert page.locator("#count").inner_text() == f"2 of {total} rows"
    assert set(column(page, 0)) == {"fused"}
    page.locator("#filter").fill("fp32 forward")  # equal in all rows, so in no column
    assert page.locator("#count").inner_text() == f"{total} of {total} rows"
    page.locator("#filter").fill("nothing like this")
    assert page.locator("#count").inner_text() == f"0 of {total} rows"


def test_all_values_at_an_n_show_on_hover_touch_and_focus(opened: Open) -> None:
    page = opened(has_touch=True)
    strips = page.locator("#card-fastest .chart.wide >> nth=0 >> .at")
    first, last = strips.first, strips.last
    said = first.get_attribute("aria-label")
    assert said.startswith("sequence length N = 512\n")
    assert re.search(r"^naive \d+ μs \(\d+ μs to \d+ μs\)$", said, flags=re.MULTILINE)
    tip = page.locator(".tip")
    first.scroll_into_view_if_needed()
    # Sections take their height when they come into view, and what is below moves.
    for act in (first.hover, first.tap):
        page.wait_for_timeout(100)
        act()
        assert tip.inner_text() == said
        page.keyboard.press("Escape")
        assert tip.is_hidden()
        page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    first.focus()
    assert tip.inner_text() == said
    for _ in range(strips.count() - 1):
        page.keyboard.press("ArrowRight")
    assert tip.inner_text() == last.get_attribute("aria-label")
    page.evaluate("document.activeElement.blur()")
    assert tip.is_hidden()


def test_a_case_opens_with_its_command_and_samples_and_closes_by_escape(opened: Open) -> None:
    page = opened()
    page.locator("#card-fastest table a").first.click()
    dialog = page.locator("dialog")
    assert dialog.locator("h2").inner_text() == "sdpa-b1-n512-d512-h1-fp32-forward-core"
    command = f"attnbench run quickstart --only {dialog.locator('h2').inner_text()}"
    assert dialog.locator("pre").inner_text() == command
    assert "24 calls in 8 blocks of 1 process" in dialog.inner_text()
    assert dialog.locator("svg.samples").count() == 2
    assert dialog.locator("svg.samples").first.locator("circle").count() == 24
    page.keyboard.press("Escape")
    assert dialog.is_hidden()
    page.locator("#card-wall + .numbers > summary").click()
    page.locator("#card-wall-numbers a", has_text="out of memory").first.click()
    assert "This case has no samples" in dialog.inner_text()
    dialog.get_by_role("button", name="Close").click()
    assert dialog.is_hidden()


def test_choices_are_in_the_address_and_restored_from_it(opened: Open) -> None:
    page = with_rows(opened())
    place = titles(page).index("latency")
    page.locator("#filter").fill("sdpa")
    page.locator("table.all thead button").nth(place).click()
    page.locator("table.all tbody tr:not([hidden]) a").first.click()
    state = page.url[page.url.index("#") :]
    again = opened(state=state)
    assert again.locator("#filter").input_value() == "sdpa"
    assert column(again, 0) == column(page, 0)
    assert column(again, place) == column(page, place)
    assert again.locator("table.all thead th").nth(place).get_attribute("aria-sort") == "ascending"
    assert again.locator("dialog h2").inner_text() == page.locator("dialog h2").inner_text()
    again.keyboard.press("Escape")
    again.locator("nav a", has_text="Time").click()
    # the page adds its choices once the browser has told it of the new fragment
    again.wait_for_url(lambda url: "q=sdpa" in url and "at=time" in url)


def test_downloads_have_the_rows_shown_in_their_order(opened: Open, tmp_path: Path) -> None:
    page = with_rows(opened(accept_downloads=True))
    page.locator("#filter").fill("sdpa 2k")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").click()
    same = json.loads(download.value.path().read_text())
    wanted = json.loads(
        export(quickstart(tmp_path, lengths=(512, 2048, 8192)), "json-rows").content
    )
    for of_csv, of_json in zip(rows, same, strict=True):
        (exact,) = (one for one in wanted if one["case"] == of_csv["case"])
        assert of_json["case"] == of_csv["case"]
        assert set(of_json) - {"run"} == set(exact)
        for name, value in exact.items():
            assert of_json[name] == (
                pytest.approx(value, rel=1e-4) if isinstance(value, float) else value
            )
            assert of_csv[name] == ("" if value is None else of_csv[name])


def test_hostile_names_stay_inert_in_downloads_in_markdown_and_in_the_dialog_of_a_case(
    visit: Open, tmp_path: Path
) -> None:
    cases = [case(backend, problem(n)) for n in (128, 256) for backend in (HOSTILE, "=cmd()")]
    rows = [row(one) for one in cases]
    rows[1] = row(cases[1], "error", reason="=1+1")
    page = visit(
        write_page(write_run(tmp_path, cases, rows), out=tmp_path / "page.html"),
        accept_downloads=True,
        permissions=["clipboard-read"],
    )
    with_rows(page).locator("table.all tbody a").first.click()
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    text = download.value.path().read_text()
    cells = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
    assert "'=cmd()" in cells
    assert "'=1+1" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "@", "\t", "\r")]
    assert not re.search("[\x1b\u202e]", text)
    page.locator("#rows .caption button").first.click()
    page.get_by_role("button", name="Copied").first.wait_for()
    markdown = page.evaluate("navigator.clipboard.readText()")
    assert "<" not in markdown
    assert re.search(r"\\\[red\\\]x\\\|\\`a\\`", markdown)
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in markdown.strip().splitlines()}) == 1


def test_another_budget_is_calculated_as_exactly_as_the_page_was(
    opened: Open, tmp_path: Path
) -> None:
    rows, meta = rows_and_meta(quickstart(tmp_path, lengths=(512, 1024, 2048, 8192)))
    (family,) = families(rows)
    curves = {one.backend: one for one in memory_curves(family[8], meta)}
    drawn = areas_of([family[8], family[1]], meta)
    needs = {one.backend: curves[one.backend].need for one in drawn.rows if one.need}
    page = opened()
    slider, mine = page.get_by_role("slider", name="Budget"), page.get_by_label("mine")
    shown = page.locator(".squares")
    slider.press("Home")
    for budget in (*drawn.budgets, 387_973_120):
        while slider.get_attribute("aria-valuetext") != size_text(budget):
            if budget in drawn.budgets:
                slider.press("ArrowRight")
            else:
                mine.fill(str(budget / 2**30))
        lengths = lengths_within(drawn.longest, [*needs.values()], budget)
        assert shown.locator(".n").all_text_contents() == [
            f"{'' if place else 'N = '}{count_text(n)}" for place, n in enumerate(lengths)
        ]
        areas = [one.area(n, budget) for one in drawn.rows for n in lengths]
        assert shown.locator(".area span").all_text_contents() == [one.text for one in areas]
        sides = shown.locator(".area").evaluate_all(
            "all => all.map(one => ['--w', '--h'].map(name => +one.style.getPropertyValue(name)))"
        )
        assert sides == [pytest.approx(one[:2]) for one in areas]
        ends = {name: longest(need, budget) for name, need in needs.items()}
        assert shown.locator(".ends").all_text_contents() == [
            f"up to {n_text(ends[one.backend])}" for one in drawn.rows
        ]


def test_medians_stand_for_calls_where_the_page_would_be_too_large(
    visit: Open, tmp_path: Path
) -> None:
    cases = [case("fused", problem(n)) for n in (128, 256)]
    calls_ms = [1.0 + call / 1e5 for call in range(30_000)]
    rows = [row(one, block_ms=[[calls_ms] * 8]) for one in cases]
    file = write_page(write_run(tmp_path, cases, rows), out=tmp_path / "page.html")
    assert file.stat().st_size < 1_500_000
    page = visit(file)
    with_rows(page).locator("table.all tbody a").first.click()
    assert "8 block medians in 8 blocks" in page.locator("dialog").inner_text()
    assert "would make this page too large" in page.locator("dialog").inner_text()
