"""`attnbench compare --turns` and margins by noise, as a user meets them."""

import json
from pathlib import Path

import pytest

from attnbench.harness.cli.margins import read_margins
from attnbench.harness.files.errors import BadInput
from attnbench.reports.comparison.compare import compare_interleaved
from attnbench.reports.data.noise_floor import FILE
from tests.made_runs import fake_run

GATE = ("--gate", "latency: 5%, peak_bytes: 0%")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Four runs of the same code, four more, and four of code that is slower by a quarter; one
    process each, as quick runs have.
    """
    sides = {"base": (1, 1.0), "head": (11, 1.0), "slow": (21, 1.25)}
    for name, (seed, ratio) in sides.items():
        for turn in range(4):
            fake_run(tmp_path / name, seed + turn, ratio, processes=1, blocks=6)
    return tmp_path / "base", tmp_path / "head", tmp_path / "slow"


def test_equals_pass_and_a_slower_one_is_a_regression(here, folders) -> None:
    base, head, slow = folders
    done = here("compare", base, head, "--turns", *GATE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 4 turns of one run each" in done.stdout
    assert "slower in 0" in done.stdout
    done = here("compare", base, slow, "--turns", *GATE)
    assert done.returncode == 3
    assert "slower in 6" in done.stdout
    # The same runs one by one decide nothing: each has one process.
    done = here("compare", next(base.iterdir()), next(slow.iterdir()), *GATE)
    assert "undecided in 6" in done.stdout


def test_a_margin_by_noise_is_that_of_the_check_beside_the_runs(here, folders) -> None:
    assert read_margins("latency: noise, peak_bytes: 0%") == {"latency": None, "peak_bytes": 0.0}
    base, _, slow = folders
    margins = {}
    for noise in (None, 0.1, 0.4):
        if noise is not None:
            line = {
                "schema": 1,
                "device": "cpu",
                "started_utc": f"2026-11-21T10:00:0{int(10 * noise)}+00:00",
            }
            line |= {
                "environment": {"cpu": "Imaginary CPU 9000"},
                "paired_noise_ratio": 0.01,
                "run_noise_ratio": noise,
            }
            with (base / FILE).open("a") as file:
                file.write(json.dumps(line) + "\n")
        done = here(
            "compare", base, slow, "--turns", "--gate", "latency: noise", "--format", "json"
        )
        found = json.loads(done.stdout)
        assert found["gate"]["margins"] == {"latency": None}
        (margins[noise],) = {
            one["margin_ratio"] for one in found["cases"] if one["metric"] == "latency"
        }
        # 25 % slower: at the edge of the largest margin, which decides nothing; beyond the others
        assert done.returncode == (6 if noise == 0.4 else 3)
    # Twice the noise of a ratio of two processes, which the mean of four turns has half of; 3 % at
    # least, 25 % at most.
    assert margins == {None: 0.03, 0.1: pytest.approx(0.1), 0.4: pytest.approx(0.25)}


def test_runs_of_a_side_must_come_from_one_device(folders) -> None:
    base, head, _ = (sorted(folder.iterdir()) for folder in folders)
    meta = json.loads((head[2] / "run.json").read_text())
    meta["environment"]["cpu"] = "Another CPU"
    (head[2] / "run.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match="different devices"):
        compare_interleaved(base, head, None)
    with pytest.raises(BadInput, match="as many"):
        compare_interleaved(base, head[:2], None)
