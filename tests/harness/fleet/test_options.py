"""attnbench run --on ray: the options that choose devices, and a machine without Ray."""

import importlib.util
import subprocess
import sys

import pytest

from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.fleet import on_ray
from attnbench.harness.verbs.run import RunRequest
from tests.conftest import environment


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"address": "auto"}, "--address and --device-kind belong to --on ray"),
        ({"device_kind": "H100"}, "--address and --device-kind belong to --on ray"),
        ({"devices": 2}, "--devices belongs to --on ray"),
    ],
)
def test_options_without_the_one_that_they_belong_to_are_refused(given, refusal) -> None:
    with pytest.raises(BadInput, match=refusal):
        RunRequest(**given)


def test_without_ray_the_command_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setattr(on_ray, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentUnmet, match=r"pip install 'attnbench\[ray\]'"):
        RunRequest(on="ray").engine()


def test_a_run_without_it_imports_nothing_of_ray() -> None:
    program = (
        "import sys, attnbench.harness.run.start, attnbench.harness.verbs.app\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'ray'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")
def test_without_a_cluster_the_command_says_how_to_start_one(attnbench) -> None:
    done = attnbench("run", "quickstart", "--on", "ray", "--address", "127.0.0.1:1")
    assert done.returncode == 4
    assert done.stdout == ""
    assert "--address 127.0.0.1:1: nothing answers there" in done.stderr
    assert "start one with: ray start --head" in done.stderr
    assert "Traceback" not in done.stderr
