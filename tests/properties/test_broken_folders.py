"""A run's folder that something changed is read, or refused in one line; never a traceback."""

import shutil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbench.harness.rows.run_files import BadRun
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.run_meta import read_run
from attnbench.reports.pages import markdown
from attnbench.reports.pages.report import open_report
from tests.budget import first
from tests.conftest import ROOT
from tests.faults.mutations import break_folder, odd
from tests.made_runs import read_rows, write_rows

KEPT = ROOT / "tests" / "approved" / "runs"
SMALL = ("walls", "empty", "one_process", "gpu", "training")


@pytest.mark.long
@pytest.mark.parametrize("count", first(1, [12, 100]))
def test_it_is_read_or_refused_in_a_line(count: int) -> None:
    @settings(max_examples=count, derandomize=True, deadline=None)
    @given(name=st.sampled_from(SMALL), seed=st.integers(0, 1 << 30))
    def holds(name: str, seed: int) -> None:
        check_reading(name, seed)

    holds()


def check_reading(name: str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        shutil.copytree(KEPT / name, run)
        done = break_folder(Random(seed), run, Path(folder) / "elsewhere")
        found, refusal = None, "read"
        try:
            found = read_run(run)
        except BadRun as bad:
            refusal = str(bad)
        assert refusal.isprintable(), done
        assert found is None or len(rows_of([found])) == len(found.meta["cases"]), done


@pytest.mark.long
@pytest.mark.parametrize("count", first(1, [4, 40]))
@pytest.mark.parametrize("name", ["studies", "learning", "gpu"])
def test_a_page_leaves_out_values_that_are_none(name: str, count: int) -> None:
    @settings(max_examples=count, derandomize=True, deadline=None)
    @given(seed=st.integers(0, 1 << 30))
    def holds(seed: int) -> None:
        check_page(name, seed)

    holds()


def check_page(name: str, seed: int) -> None:
    """Of every study a value, however deep, is something else; of some other rows one is missing,
    zero or huge.
    """
    random = Random(seed)
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        shutil.copytree(KEPT / name, run)
        rows = read_rows(run)
        for row in rows:
            if row["kind"] == "study":
                change_somewhere(random, row["findings"])
            elif random.random() < 0.3:
                place = random.choice([key for key in row if key not in ("schema", "kind", "case")])
                row[place] = random.choice((None, 0, 1 << 40))
        write_rows(run, rows)
        text, refusal = "# ", "read"
        try:
            text = markdown.render(open_report([run], salvage=True))
        except BadRun as bad:
            refusal = str(bad)
        assert refusal.isprintable()
        assert text.startswith("# ")
        assert "<img" not in text


def change_somewhere(random: Random, value: Any) -> None:
    """One value of it, or of what it contains, becomes an odd one."""
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not places:
        return
    place = random.choice(places)
    inner = value[place]
    if isinstance(inner, dict | list) and inner and random.random() < 0.9:
        change_somewhere(random, inner)
    else:
        value[place] = odd(random)
