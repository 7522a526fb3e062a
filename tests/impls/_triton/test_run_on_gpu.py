"""run_on_gpu.json: which files of kernels a GPU has run as they are, and what users are told."""

import json
from hashlib import sha256
from pathlib import Path

from attnbench.impls import _triton
from tests.conftest import ROOT

FOLDER = Path(_triton.__file__).parent
RAN = json.loads((FOLDER / "run_on_gpu.json").read_text())["files"]
NOT_YET = "not yet run on a GPU"


def has_run(name: str) -> bool:
    known = RAN.get(name, {})
    return known.get("sha256") == sha256((FOLDER / name).read_bytes()).hexdigest()


def test_the_gluon_kernel_is_the_one_that_a_gpu_ran() -> None:
    """It is frozen: nothing here can execute it."""
    assert has_run("hopper_forward.py")


def test_a_run_is_kept_for_each_file_of_the_table() -> None:
    for name, known in RAN.items():
        run = json.loads((ROOT / "results/reference" / known["run"] / "run.json").read_text())
        found = run["environment"]
        assert (found["device_name"], found["triton"]) == (known["gpu"], known["triton"]), name


def test_users_are_told_of_kernels_that_no_gpu_has_run_as_they_are() -> None:
    portable = ("kernels/forward.py", "kernels/backward.py", "kernels/tiles.py")
    lacking = not all(map(has_run, portable))
    listed = (FOLDER.parent / "triton.py").read_text().partition("\n")[0]
    (line,) = (
        one
        for one in (ROOT / "docs/backends.md").read_text().splitlines()
        if one.startswith("| `triton` |")
    )
    assert (NOT_YET in listed, NOT_YET in line) == (lacking, lacking)
