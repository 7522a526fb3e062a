"""reports/pages/html.py: one self-contained file with the findings, whatever data is missing."""

import re
from html import unescape
from pathlib import Path

import pytest

from attnbench.harness.store import run_store as store
from attnbench.reports.elements import Card
from attnbench.reports.sections import sections
from tests.reports.fake_cards import fake_cards, with_cards
from tests.reports.fake_runs import (
    grid,
    head_sweep,
    many_problems,
    quickstart,
    row,
    write_run,
)
from tests.reports.rendering import (
    NO_VALUE,
    page_of,
    section_of,
    text_of,
    without_scripts,
    write_page,
)

MOST_BYTES_500_CASES = 1_500_000  # ecosystem.md, C


def test_the_page_answers_the_question_with_findings(tmp_path: Path) -> None:
    page = text_of(page_of(quickstart(tmp_path)))
    assert "How does the N x N score matrix hit the memory wall" in page
    assert (
        "For h = 8: fused runs out of memory at N = 8k; naive at N = 16k (predicted); sdpa still"
        " fits at N = 16k" in page
    )
    assert (
        "For h = 8: sdpa is fastest at N = 8k: 58.7 ms; naive takes 3.60 times as long (2.76 to"
        " 4.69)" in page
    )
    assert (
        "fused: 8 heads cost as many FLOPs as one head, 7.22 times the peak bytes and a time that"
        " may or may not be the same: 1.12 times" in page
    )
    assert "80 cases: 42 measured; 15 unsupported" in page
    assert "the worker died of signal 11 (SIGSEGV)" in page
    assert "Imaginary CPU 9000" in page


def test_a_quiet_run_has_no_cautions_and_a_disturbed_one_has_them_in_latency_and_summary(
    tmp_path: Path,
) -> None:
    cases = grid(("fused", "sdpa"), (128,))
    quiet = page_of(write_run(tmp_path / "quiet", cases, [row(one) for one in cases]))
    rows = [row(cases[0], contended_blocks=5), row(cases[1])]
    busy = page_of(write_run(tmp_path / "busy", cases, rows))
    assert "timed cases other work" not in text_of(quiet)
    assert "good contention: In none of 16 blocks other work competed for the same cores" in (
        text_of(quiet)
    )
    assert "caution contention: In 5 of 16 blocks" in text_of(busy)
    assert "In 1 of 2 timed cases other work competed for the same cores" in text_of(
        section_of(busy, "latency")
    )
    assert (
        "During more than half of the blocks of 1 of 2 timed cases other work competed for the same"
        " cores" in text_of(section_of(busy, "summary"))
    )


@pytest.mark.parametrize(
    ("mode", "text"),
    [("warm_heap", "freed memory is kept"), ("default", "latencies include their page faults")],
)
def test_the_environment_says_how_memory_was_kept(tmp_path: Path, mode: str, text: str) -> None:
    cases = grid(("fused",), (128,))
    run = write_run(
        tmp_path, cases, [row(one) for one in cases], scenario={"plan": {"allocator": mode}}
    )
    assert text in text_of(page_of(run))


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    page = without_scripts(page_of(quickstart(tmp_path)))
    addresses = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', page)
    assert addresses
    assert all((a or b).startswith("#") for a, b in addresses)
    assert "@import" not in page
    assert "default-src 'none'" in unescape(page)


def test_every_id_is_unique_and_every_reference_has_its_target(tmp_path: Path) -> None:
    page = without_scripts(page_of(quickstart(tmp_path)))
    ids = re.findall(r'\sid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)|aria-labelledby="([^"]*)"', page)
    assert {name for found in used for name in " ".join(found).split()} <= set(ids)


def test_every_figure_has_a_name_a_description_and_its_numbers(tmp_path: Path) -> None:
    page = page_of(quickstart(tmp_path))
    figures = re.findall(r"<figure.*?</figure>", page, flags=re.DOTALL)
    assert len(figures) >= 6
    for figure in figures:
        assert re.search(
            r'<svg [^>]*role="img" aria-labelledby="\S+ \S+"><title id="[^"]+">[^<]+</title><desc'
            r' id="[^"]+">[^<]+</desc>',
            figure,
        )
        assert re.search(r"<details><summary>.*<table.*</details>", figure, flags=re.DOTALL)
        assert re.search(r'<ul class="legend">\s*<li data-look="0">', figure)
        assert "scenario quickstart" in figure


def test_two_renders_are_the_same_bytes(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    assert page_of(run) == page_of(run)


def sparse(tmp_path: Path, name: str) -> Path:
    """Runs in which something that a section uses is missing."""
    backends = ("naive", "fused", "sdpa")
    if name == "empty plan":
        return write_run(tmp_path, [], [], environment={}, scenario={}, memory_bytes=None)
    if name == "nothing reached":
        return write_run(tmp_path, grid(backends, (128, 256)), [])
    if name == "one backend":
        return write_run(
            tmp_path, cases := grid(("sdpa",), (128, 256), (1, 8)), [row(one) for one in cases]
        )
    if name == "every case failed":
        statuses = (
            "oom",
            "timeout",
            "crashed",
            "error",
            "incorrect",
            "interrupted",
            "unsupported",
            "unavailable",
            "predicted_oom",
        )
        cases = grid(backends, (128, 256, 512), (1, 8))
        return write_run(
            tmp_path, cases, [row(one, statuses[place % 9]) for place, one in enumerate(cases)]
        )
    if name == "one N, one h":
        return write_run(tmp_path, cases := grid(backends, (128,)), [row(one) for one in cases])
    if name == "no h = 1":
        return write_run(
            tmp_path, cases := grid(backends, (128, 256), (2, 8)), [row(one) for one in cases]
        )
    if name == "only nulls":
        nothing = dict.fromkeys(
            (
                "block_ms",
                "peak_bytes",
                "predicted_peak_bytes",
                "input_bytes",
                "session",
                "kernel",
                "spent_s",
                "error_ratio",
            )
        )
        return write_run(
            tmp_path,
            cases := grid(backends, (128, 256), (1, 8)),
            [row(one, **nothing) for one in cases],
            memory_bytes=None,
        )
    if name == "bytes alone":
        return write_run(
            tmp_path,
            cases := grid(backends, (128, 256), (1, 8)),
            [row(one, block_ms=None) for one in cases],
        )
    if name == "one block":
        return write_run(
            tmp_path,
            cases := grid(backends, (128, 256), (1, 8)),
            [row(one, block_ms=[[[1.0]]]) for one in cases],
        )
    if name == "empty blocks":
        return write_run(
            tmp_path,
            cases := grid(backends, (128, 256), (1, 8)),
            [row(one, block_ms=[[[]], []]) for one in cases],
        )
    if name == "zeros":
        return write_run(
            tmp_path,
            cases := grid(backends, (128, 256), (1, 8)),
            [row(one, peak_bytes=0, work_flops=0) for one in cases],
        )
    return {"many problems": many_problems, "head sweep": head_sweep}[name](tmp_path)


SPARSE = (
    "empty plan",
    "nothing reached",
    "one backend",
    "every case failed",
    "one N, one h",
    "no h = 1",
    "only nulls",
    "bytes alone",
    "one block",
)


@pytest.mark.parametrize("name", [*SPARSE, "empty blocks", "zeros", "many problems", "head sweep"])
def test_a_section_that_is_there_says_something_and_no_nan(tmp_path: Path, name: str) -> None:
    page = page_of(sparse(tmp_path, name))
    for there in re.findall(r'<section id="(\w+)"', page):
        assert re.search(r"<(p class=.caption|li|td|figure)[ >]", section_of(page, there))
    assert not re.search(NO_VALUE, text_of(page))


def test_a_section_about_what_a_card_answers_comes_before_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = quickstart(tmp_path)
    with_cards(monkeypatch)
    usual = re.findall(r'<section id="(\w+)"', page_of(run))
    with_cards(monkeypatch, Card(name="claims", title="Claims", sentence="Yes.", picture=None))
    asked = re.findall(r'<section id="(\w+)"', page_of(run))
    assert usual[0] == "summary"
    assert usual[1] != "claims"
    assert asked == ["summary", "claims", *(name for name in usual[1:] if name != "claims")]


def test_the_header_says_what_was_measured_where_and_when(tmp_path: Path) -> None:
    head = text_of(page_of(quickstart(tmp_path)).split("<nav")[0])
    assert "quickstart Imaginary CPU 9000 (cpu), 2 threads" in head
    assert "fp32, batch 1, d_model 512 · 21 Nov 2026" in head
    assert "Trust: 5 good, 1 caution, 2 unknown" in head
    assert "what do 8 heads cost against one?" in head


def test_the_navigation_has_few_short_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = quickstart(tmp_path)
    with_cards(monkeypatch, *fake_cards())
    page = page_of(run)
    top = re.search(r'<nav class="top".*?</nav>', page, flags=re.DOTALL)
    assert top is not None
    links = re.findall(r'href="#([\w-]+)">(\w+)<', top.group())
    assert [word for _, word in links] == ["Wall", "Heads", "Fastest", "Checks", "Details", "Rows"]
    assert all(f'id="{name}"' in page for name, _ in links)


def test_numbers_are_aligned_right_and_words_are_not(tmp_path: Path) -> None:
    page = page_of(quickstart(tmp_path))
    classes, columns = re.search(
        r'<table id="rows-table-1-1"[^>]*class="([^"]*)".*?<tr>(.*?)</tr>', page, re.DOTALL
    ).groups()  # type: ignore[union-attr]
    titles = re.findall(r"<th[^>]*>([^<]*)", columns)
    right = {titles[int(place) - 1] for place in re.findall(r"\br(\d+)", classes)}
    assert {"N", "h", "latency", "peak"} <= right
    assert not right & {"backend", "status", "reason"}


def test_verdicts_on_claims_have_a_look_and_a_word(tmp_path: Path) -> None:
    claims = section_of(page_of(quickstart(tmp_path)), "claims")
    found = set(re.findall(r'<td class="v (good|bad|mixed|open)">([a-z]+)', claims))
    words = {"good": "supported", "bad": "refuted", "mixed": "depends", "open": "inconclusive"}
    assert found
    assert all(words[look] == word for look, word in found)


def test_problems_are_never_mixed_and_what_is_not_drawn_is_named(tmp_path: Path) -> None:
    page = page_of(many_problems(tmp_path))
    latency = section_of(page, "latency")
    assert latency.count("<figure") == 1  # of two points each: small multiples
    assert latency.count("sequence length N") >= 4
    assert text_of(latency).count("layer") >= 8
    assert "8 more problems not drawn" in latency


def test_several_runs_are_beside_each_other(tmp_path: Path) -> None:
    page = page_of(*(quickstart(tmp_path / name, lengths=(128, 256)) for name in "ab"))
    assert len(re.findall(r'class="run"', page)) == 2


def test_a_torn_tail_is_mentioned_on_the_page(tmp_path: Path) -> None:
    run = quickstart(tmp_path, lengths=(128,))
    (run / "rows.jsonl").write_bytes((run / "rows.jsonl").read_bytes()[:-9])
    assert "was torn off in the middle" in page_of(run)


def test_the_page_of_500_cases_is_small(tmp_path: Path) -> None:
    cases = grid(
        ("naive", "fused", "sdpa"), tuple(2**n for n in range(6, 12)), (1, 2, 4, 8), dtype="fp32"
    )
    cases += [
        one
        for b in range(2, 9)
        for one in grid(
            ("fused", "sdpa", "sdpa:math"), (128, 256, 512, 1024, 2048), (1, 2, 4, 8), batch=b
        )
    ]
    assert len(cases) > 490
    page = page_of(write_run(tmp_path, cases, [row(one) for one in cases]))
    assert len(page.encode()) < MOST_BYTES_500_CASES


def test_a_report_that_fails_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = quickstart(tmp_path, lengths=(128,))
    target = write_page(run)
    assert target == run / "report.html"
    old = target.read_bytes()

    def die(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store.os, "fsync", die)
    with pytest.raises(KeyboardInterrupt):
        write_page(run)
    assert target.read_bytes() == old
    assert sorted(path.name for path in run.iterdir()) == ["report.html", "rows.jsonl", "run.json"]


def test_the_report_is_written_where_requested(tmp_path: Path) -> None:
    out = write_page(quickstart(tmp_path, lengths=(128,)), out=tmp_path / "page.html")
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert out.stat().st_mode & 0o044 == 0o044


def test_a_section_is_one_file_with_a_title_an_order_and_its_needs() -> None:
    found = sections()
    assert [section.ORDER for section in found] == sorted(section.ORDER for section in found)
    assert len({section.TITLE for section in found}) == len(found)
    assert found[0].TITLE == "Summary"
    assert found[-1].TITLE == "All rows"
    ours = [section.TITLE for section in found]
    wanted = [
        "Speed-up",
        "Latency",
        "Utilization",
        "Failed and skipped cases",
        "Correctness",
        "Environment",
        "Method",
        "All rows",
    ]
    assert [title for title in ours if title in wanted] == wanted
    for section in found:
        assert all(isinstance(column, str) for column in section.NEEDS)
        assert callable(section.render)
