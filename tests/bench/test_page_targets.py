"""The page of 500 cases with samples, and that of the training study: their size, how long they
take to write, and when a browser has them ready. `make bench` runs these.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.harness.heads.studies.trained_heads import (
    LEARNING_RATES,
    PARTS,
    SEEDS,
    TUNING_SEEDS,
)
from attnbench.harness.heads.synthetic_tasks import TASKS
from attnbench.harness.heads.training import EVERY
from attnbench.reports.pages.html import render
from attnbench.reports.pages.report import open_report
from tests.bench.conftest import times_s
from tests.made_runs import case, problem, row, write_run
from tests.reports.fake_trainings import training, with_trainings

MOST_BYTES, MOST_BUILD_S, MOST_READY_MS = 1_500_000, 5.0, 200
BACKENDS = ("naive", "fused", "sdpa", "sdpa:math", "sdpa:efficient")
LENGTHS = tuple(2**power for power in range(6, 16))
BLOCKS, CALLS = 10, 10
LOADS = 7
READY = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = [
        case(b, problem(n, h, batch=batch))
        for batch in (1, 4)
        for h in (1, 2, 4, 8, 16)
        for n in LENGTHS
        for b in BACKENDS
    ]
    assert len(cases) == 500
    rows = []
    for one in cases:
        made = row(
            one,
            "ok"
            if one["seq_len"] <= 4096 or one["backend"].startswith("sdpa")
            else "predicted_oom",
        )
        if made["block_ms"]:
            noise, typical_ms = Random(one["case"]), made["block_ms"][0][0][0]
            made["block_ms"] = [
                [
                    [typical_ms * noise.lognormvariate(0, 0.03) for _ in range(CALLS)]
                    for _ in range(BLOCKS)
                ]
            ]
            made["conditions"] = [
                [{"calls": CALLS, "wall_s": 0.01, "minor_faults": 6} for _ in range(BLOCKS)]
            ]
        rows.append(made)
    return write_run(tmp_path_factory.mktemp("page"), cases, rows)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study trained_heads as shipped: every task, number of heads and seed."""
    noise = Random(0)

    def finding(task: str, heads: int, seed: int, *, is_tuning: bool) -> dict[str, Any]:
        steps = TASKS[task].limit_steps
        return training(
            task,
            heads,
            seed,
            None,
            is_tuning=is_tuning,
            learning_rate=noise.choice(LEARNING_RATES),
            looked_steps=[*range(EVERY, steps + 1, EVERY)],
            looked_accuracy_ratio=[noise.random() for _ in range(steps // EVERY)],
            looked_loss_nats=[noise.random() for _ in range(steps // EVERY)],
            step_ms=[noise.uniform(3, 9) for _ in range(steps)],
        )

    findings = [
        finding(task, heads, seed, is_tuning=seed in TUNING_SEEDS)
        for task in PARTS["task"]
        for heads in PARTS["heads"]
        for seed in (*range(SEEDS), *TUNING_SEEDS)
    ]
    return with_trainings(tmp_path_factory.mktemp("trained"), findings)


PAGES = pytest.mark.parametrize("pages_of", ["run", "trained"])


@PAGES
def test_a_large_page_is_small_and_soon_written(
    pages_of: str, request: pytest.FixtureRequest
) -> None:
    """500 cases with samples; and the section on what heads learn, of all trainings."""
    run = request.getfixturevalue(pages_of)
    size_bytes = len(render(open_report([run])).encode())
    print(f"{pages_of}: {size_bytes:,} bytes")
    assert size_bytes <= MOST_BYTES
    assert min(times_s(lambda: render(open_report([run])), 3)) <= MOST_BUILD_S


@PAGES
def test_a_browser_has_it_ready_at_once(
    pages_of: str,
    request: pytest.FixtureRequest,
    require: Callable[[str], str],
    tmp_path: Path,
) -> None:
    run = request.getfixturevalue(pages_of)
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install playwright"
    )
    page_file = tmp_path / "page.html"
    page_file.write_text(render(open_report([run])))
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=require("chromium"), args=["--no-sandbox"])

        def ready_ms() -> float:
            context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
            page = context.new_page()
            page.goto(page_file.as_uri())
            taken = page.evaluate(READY)
            context.close()
            return taken

        times_ms = [ready_ms() for _ in range(LOADS)]
        browser.close()
    print(f"{pages_of}: ready in {min(times_ms):.0f} ms")
    assert min(times_ms) <= MOST_READY_MS
