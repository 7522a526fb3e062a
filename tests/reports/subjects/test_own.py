"""A backend of the reader's own: the first card, with each of its cases and their ratios."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.reports.pages.markdown import render
from attnbench.reports.pages.report import open_report
from attnbench.reports.subjects import own
from tests.made_runs import case, problem, row, timed, write_run
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.rendering import subject_of

MINE = "attend@mine"
OTHERS = ("fused", "sdpa")


def run_of(folder: Path, mine: dict[int, dict[str, Any]], **meta: Any) -> Path:
    """fused takes 10 ms, sdpa 5 ms; `mine`, by N: the row's changes, or its time `ms`."""
    random, cases, rows = Random(3), [], []
    for n, changes in mine.items():
        for name, ms in zip(OTHERS, (10.0, 5.0), strict=True):
            cases.append(case(name, problem(n)))
            rows.append(timed(cases[-1], ms, random))
        cases.append(case(MINE, problem(n)))
        status = changes.get("status", "ok")
        if status == "ok":
            rows.append(timed(cases[-1], changes["ms"], random))
        else:
            rows.append(row(cases[-1], **changes))
    return write_run(folder, cases, rows, **meta)


def said(run: Path) -> list[str]:
    card = subject_of(own, run).card
    return [] if card is None else [card.sentence.replace("\xa0", " ")]


def test_a_failed_one_names_the_line_of_its_own_file(tmp_path: Path) -> None:
    module = MINE.partition("@")[2]
    frames = [(f"/home/me/{module}.py", 4), (f"/home/me/{module}.py", 9), ("/torch/nn.py", 31)]
    lines = [f'  File "{file}", line {line}, in f' for file, line in frames]
    tail = "\n".join(["Traceback (most recent call last):", *lines, "RuntimeError: no match."])
    (text,) = said(run_of(tmp_path, {256: {"status": "error", "reason": "?", "log_tail": tail}}))
    why = f"RuntimeError: no match. ({module}.py:9)"
    assert text == f"Your function failed in its only case: {why}."


def test_a_crashed_one_says_what_python_called_fatal(tmp_path: Path) -> None:
    tail = "Fatal Python error: Segmentation fault\n\nExtension modules: numpy.linalg (total: 1)"
    crashed = {"status": "crashed", "reason": "SIGSEGV", "log_tail": tail}
    (text,) = said(run_of(tmp_path, {256: crashed}))
    assert text.endswith("failed in its only case: Fatal Python error: Segmentation fault.")


@pytest.mark.parametrize(
    ("ms", "sure"), [(20.0, "confirmed"), (5.2, "seen here, not confirmed"), (2.0, "confirmed")]
)
def test_one_sentence_says_whether_it_is_right_then_its_time_and_memory_beside_the_best(
    tmp_path: Path, ms: float, sure: str
) -> None:
    (text,) = said(run_of(tmp_path, {512: {"ms": ms}}))
    right, cost = text.split(". It takes ")
    assert right == "Your function is right: its largest error is 1.02 times the textbook's"
    found = re.fullmatch(r"([\d.]+) times sdpa's time \(([\d.]+) to ([\d.]+): (.+?)\), (.+)", cost)
    times, low, high = map(float, found.groups()[:3])
    assert low < times < high
    assert ms / 5 / 1.1 < times < ms / 5 * 1.1
    assert found[4] == sure
    assert found[5] == "1.00 times its memory (5 MiB against 5 MiB)."


def test_the_largest_error_stands_beside_its_own_limit(tmp_path: Path) -> None:
    cases = [case(MINE, problem(n)) for n in (256, 512)]
    errors = [
        {"error_ratio": 0.4, "error_limit_ratio": 2.0},
        {"error_ratio": 2.1, "error_limit_ratio": 3.29},
    ]
    rows = [row(one, **some) for one, some in zip(cases, errors, strict=True)]
    (text,) = said(write_run(tmp_path, cases, rows))
    assert "is right: its largest error is 2.10 times the textbook's (limit 3.29)" in text


def test_a_run_names_its_own_backends_and_shipped_ones_are_none(tmp_path: Path) -> None:
    planned = [case(name, problem(256)) for name in ("mine", "fused")]
    rows = [timed(one, 10.0, Random(1)) for one in planned]
    assert said(write_run(tmp_path / "old", planned, rows)) == []
    (text,) = said(write_run(tmp_path / "new", planned, rows, own_backends=["mine"]))
    assert text.startswith("mine ")


def test_what_a_traceback_says_stays_text(tmp_path: Path) -> None:
    failed = {"status": "error", "reason": HOSTILE, "log_tail": f"Traceback\n{HOSTILE}\n"}
    run = run_of(tmp_path, {256: failed})
    assert "\x1b" not in "".join(said(run))
    assert "<script>" not in render(open_report([run]))


def test_it_stands_first_with_each_case_and_its_ratio(tmp_path: Path) -> None:
    wrong = {"status": "incorrect", "reason": "12 times as far from the exact result"}
    run = run_of(tmp_path, {256: wrong, 512: {"ms": 20.0}})
    card = open_report([run]).lead
    assert (card.name, card.title) == ("own", "Your backend")
    assert card.sentence.startswith("Your function is wrong in 1 of 2 cases: 12 times as far")
    assert "; in 1 of 2 cases right: its largest error is" in card.sentence
    first, second = card.picture.texts
    assert first == ("N\xa0=\xa0256", "wrong result", "")
    assert second[-1].endswith(", sdpa")
    assert [[one.failed for one in row] for row in card.picture.cells] == [
        [False, True, False],
        [False] * 3,
    ]
