"""What a type checker makes of a user's code: `make check` runs mypy over this file, strictly.
Nobody runs it. Arguments are checked when a function is called: their types are those of requests.
"""

from pathlib import Path
from typing import assert_type

import pandas as pd

import attnbench

run = attnbench.run("quickstart", plan="quick", device="cpu", set={"limits.memory_gib": 2})
assert_type(run, attnbench.Run)
assert_type(run.path, Path)
assert_type(run.ok, bool)
assert_type(run.statuses, dict[str, int])
assert_type(run.frame(), pd.DataFrame)
assert_type(run.report(), Path)
assert_type(run.compare("results/base"), pd.DataFrame)
assert_type(run.resume(retry_failed=True), attnbench.Run)
assert_type(attnbench.open_run(), attnbench.Run)
assert_type(attnbench.load([run.path], salvage=True), pd.DataFrame)
assert_type(run.walls(), pd.DataFrame)
assert_type(run.studies("score_scale", salvage=True), pd.DataFrame)
assert_type(attnbench.wall(heads=8, head_dim=64).walls(), pd.DataFrame)
assert_type(attnbench.compare("main", run), pd.DataFrame)

try:
    attnbench.run({"name": "mine"}, runs=Path("results"))
except attnbench.BadInput as error:
    assert_type(error.problems, tuple[str, ...])

run.path = Path("elsewhere")  # type: ignore[misc]
