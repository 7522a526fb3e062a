"""A backend of the reader's own: the first card, with each of its cases and their ratios."""

from pathlib import Path
from random import Random
from typing import Any

from attnbench.reports.subjects import own
from tests.made_runs import case, problem, row, timed, write_run
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


def test_a_run_names_its_own_backends_and_shipped_ones_are_none(tmp_path: Path) -> None:
    planned = [case(name, problem(256)) for name in ("mine", "fused")]
    rows = [timed(one, 10.0, Random(1)) for one in planned]
    assert said(write_run(tmp_path / "old", planned, rows)) == []
    (text,) = said(write_run(tmp_path / "new", planned, rows, own_backends=["mine"]))
    assert text.startswith("mine ")
