"""The scripts of docs/scaling.md do what it says, as far as a machine without Slurm can tell."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "scaling.md").read_text()
MEMORY_MONITOR = "RAY_memory_monitor_refresh_ms"
STUB = '#!/bin/bash\necho "$@" >> "$CALLS"\n'


def block(language: str, begin: str = "") -> str:
    found = re.search(rf"^```{language}\n({begin}.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/scaling.md has no block of {language}"
    return found[1]


@pytest.fixture
def task(tmp_path: Path):
    """Run the sbatch script as task 2 of 8; what it asked of attnbench."""
    (tmp_path / "attnbench").write_text(STUB)
    (tmp_path / "attnbench").chmod(0o755)
    calls = tmp_path / "calls"

    def run() -> list[str]:
        slurm = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "8"}
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            ["bash", "-c", block("bash")],
            env={**os.environ, **slurm, "PATH": path, "CALLS": str(calls)},
            cwd=tmp_path,
            check=True,
        )
        return calls.read_text().splitlines()

    return run


@pytest.mark.long
def test_a_task_of_the_array_measures_its_shard(task) -> None:
    assert task() == ["run quickstart --shard 2/8 --runs shards/2 --quiet"]
    assert "#SBATCH --array=1-8" in block("bash")


@pytest.mark.long
def test_a_task_that_was_requeued_goes_on(task, tmp_path: Path) -> None:
    run = tmp_path / "shards" / "2" / "20261121T093000Z-quickstart-1a2b3c4d"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    assert task() == ["run --resume latest --runs shards/2 --quiet"]


def test_the_jobs_of_the_matrix_are_the_shards_that_are_merged() -> None:
    jobs = YAML(typ="safe").load(block("yaml"))["jobs"]
    numbers = jobs["measure"]["strategy"]["matrix"]["shard"]
    (measure,) = (
        step["run"] for step in jobs["measure"]["steps"] if "--shard" in step.get("run", "")
    )
    assert f"--shard ${{{{ matrix.shard }}}}/{len(numbers)} " in measure
    assert numbers == list(range(1, len(numbers) + 1))
    assert jobs["merge"]["needs"] == "measure"
    lines = jobs["merge"]["steps"][-1]["run"].splitlines()
    assert [shlex.split(line)[:2] for line in lines] == [
        ["attnbench", "merge"],
        ["attnbench", "show"],
    ]


def test_ray_accepts_the_cluster_file() -> None:
    autoscaler = pytest.importorskip("ray.autoscaler", reason="needs Ray")
    schema = json.loads((Path(autoscaler.__file__).parent / "ray-schema.json").read_text())
    cluster = YAML(typ="safe").load(block("yaml", "cluster_name"))
    jsonschema.validate(cluster, schema)
    for commands in ("head_start_ray_commands", "worker_start_ray_commands"):
        (start,) = (line for line in cluster[commands] if "ray start" in line)
        words = shlex.split(start)
        assert words[0] == f"{MEMORY_MONITOR}=0"
