"""reports/pages/run_titles.py: runs are called by their scenarios; times tell them apart."""

from typing import Any

import pytest

from attnbench.reports.pages.run_titles import page_title, questions, run_titles, subtitle


def run(name: str, started: Any = "2026-11-21T09:30:00Z", **more: Any) -> dict[str, Any]:
    scenario = {"name": name, "question": f"What about {name}?"}
    return {
        "device": "cpu",
        "environment": {"cpu": "Imaginary CPU", "threads": 1},
        "scenario": scenario,
        "started_utc": started,
        **more,
    }


def test_runs_of_different_scenarios_have_their_names() -> None:
    meta = {"x-1": run("a"), "x-2": run("b")}
    assert run_titles(meta) == {"x-1": "a", "x-2": "b"}
    assert page_title(meta) == "a, b"
    assert questions(meta) == ["What about a?", "What about b?"]


def test_runs_of_one_scenario_have_their_times() -> None:
    meta = {"x-1": run("a"), "x-2": run("a", "2026-11-21T10:00:00Z")}
    assert list(run_titles(meta).values()) == ["a (21 Nov 09:30:00)", "a (21 Nov 10:00:00)"]
    assert page_title(meta) == "a (2 runs)"
    assert questions(meta) == ["What about a?"]


def test_runs_that_began_together_have_numbers() -> None:
    assert list(run_titles({"x-1": run("a"), "x-2": run("a")}).values()) == ["a 1", "a 2"]


def test_many_scenarios_are_counted() -> None:
    assert page_title({str(place): run(f"s{place}") for place in range(7)}) == "7 scenarios"


@pytest.mark.parametrize("started", ["yesterday", None, 3, ""])
def test_a_start_that_is_no_date_is_shown_as_it_is(started: Any) -> None:
    text = subtitle(run("a", started), [])
    assert text == " · ".join(filter(None, ("Imaginary CPU (cpu), 1 thread", str(started or ""))))


def test_what_all_cases_share_is_in_the_subtitle_and_what_differs_is_not() -> None:
    rows = [{"dtype": "fp32", "batch": batch, "d_model": 512} for batch in (1, 2)]
    text = subtitle(run("a"), rows)
    assert text == "Imaginary CPU (cpu), 1 thread · fp32, d_model 512 · 21 Nov 2026"
