"""reports/exports/asv.py: what asv reads, and of which project's commit."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from attnbench.reports.data.load import load
from attnbench.reports.exports import NotExportable, export
from tests.conftest import ran
from tests.made_runs import fake_run, quickstart, retold
from tests.reports.exports.test_every_format import COMMIT


def written(*runs: Path) -> dict[str, Any]:
    """The files by their paths."""
    content = export(list(runs), "asv", commit=COMMIT).content
    assert isinstance(content, bytes)
    with ZipFile(BytesIO(content)) as file:
        return {name: json.loads(file.read(name)) for name in file.namelist()}


def result_file(files: dict[str, Any]) -> dict[str, Any]:
    (name,) = (name for name in files if "/01234567-" in name)
    assert files[name]["params"]["machine"] == name.partition("/")[0]
    return files[name]


def test_every_latency_and_peak_stands_at_its_problem_and_backend(tmp_path: Path) -> None:
    run = fake_run(tmp_path, 1)
    files = written(run)
    found, described = result_file(files), files["benchmarks.json"]
    assert set(found["results"]) == set(described) - {"version"}
    assert (found["commit_hash"], found["date"]) == (COMMIT["id"], 1_700_000_000_000)
    for row in load(run).to_dict("records"):
        backend = row["backend"]
        name = "seed1." + row["case"].removeprefix(f"{backend}-")
        latency = dict(
            zip(found["result_columns"], found["results"][f"{name}.latency"], strict=False)
        )
        at = latency["params"][0].index(backend)
        for key, field in (
            ("result", "latency_ms"),
            ("stats_ci_99_a", "latency_low_ms"),
            ("stats_ci_99_b", "latency_high_ms"),
        ):
            assert latency[key][at] == pytest.approx(row[field] / 1e3)
        assert latency["stats_q_25"][at] <= latency["result"][at] <= latency["stats_q_75"][at]
        assert latency["stats_repeat"][at] == row["blocks"]
        assert found["results"][f"{name}.peak_bytes"][0][at] == row["peak_bytes"]
        assert described[f"{name}.latency"]["params"] == latency["params"]
        assert described[f"{name}.latency"]["version"] == latency["version"]


def test_without_a_commit_or_of_two_machines_it_is_refused(tmp_path: Path) -> None:
    run = fake_run(tmp_path, 1)
    with pytest.raises(NotExportable, match="give --commit HEAD"):
        export(run, "asv")
    with pytest.raises(NotExportable, match="different machines or versions"):
        written(run, retold(fake_run(tmp_path, 2), torch="3.0"))


def test_asv_reads_it(tmp_path: Path) -> None:
    results = pytest.importorskip("asv.results", reason="needs asv: pip install asv")
    run, folder = quickstart(tmp_path), tmp_path / "asv"
    content = export(run, "asv", commit=COMMIT).content
    assert isinstance(content, bytes)
    ZipFile(BytesIO(content)).extractall(folder)
    (found,) = results.iter_results(str(folder))
    frame = load(run)
    values = [
        value
        for name in found.get_all_result_keys()
        if name.endswith(".latency")
        for value in found.get_result_value(name, found.get_result_params(name))
    ]
    assert sorted(values) == pytest.approx(sorted(frame["latency_ms"].dropna() / 1e3))


@pytest.mark.long
def test_the_commit_is_one_of_the_project_in_the_current_folder(here, tmp_path: Path) -> None:
    run = fake_run(tmp_path / "results", 1)
    for words, why in (
        (("show", run, "--format", "asv", "--commit", "HEAD"), "no commit of a repository here"),
        (("export", run, "--commit", "HEAD"), "belongs to --format asv"),
        (("show", run, "--commit", "HEAD"), "belongs to --format asv"),
    ):
        done = here(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert why in done.stderr
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    ran(["git", "init", "-q"], cwd=tmp_path, check=True)
    ran([*git, "commit", "-qm", "first", "--allow-empty"], cwd=tmp_path, check=True)
    head = ran(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True).stdout.strip()
    done = here("show", run, "--format", "asv", "--commit", "HEAD", "-o", "asv.zip")
    assert (done.returncode, done.stdout) == (0, "asv.zip\n"), done.stderr
    with ZipFile("asv.zip") as file:
        assert any(f"/{head[:8]}-" in name for name in file.namelist())
