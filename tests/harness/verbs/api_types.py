"""What a type checker makes of a user's code: `make check` runs mypy over this file, strictly.
Nobody runs it.

An `ignore` that is not needed is an error too, so the lines that must be refused are refused.
"""

from pathlib import Path
from typing import assert_type

import pandas as pd

import attnbench

run = attnbench.run(
    "quickstart", plan="quick", device="cpu", changes={"limits.memory_gib": 2}, only=["sdpa"]
)
assert_type(run, attnbench.Run)
assert_type(run.path, Path)
assert_type(run.ok, bool)
assert_type(run.statuses, dict[str, int])
assert_type(run.frame(), pd.DataFrame)
assert_type(run.report(), Path)
assert_type(run.compare("results/base"), pd.DataFrame)
assert_type(run.resume(retry_failed=True), attnbench.Run)
assert_type(attnbench.run(checkpoints="my_model", tokens=Path("t.json")), attnbench.Run)
assert_type(run.resume(checkpoints={"old": Path("my_model")}), attnbench.Run)
assert_type(attnbench.open_run(), attnbench.Run)
assert_type(attnbench.load(run.path), pd.DataFrame)
assert_type(run.walls(), pd.DataFrame)
assert_type(run.studies("score_scale", salvage=True), pd.DataFrame)
assert_type(attnbench.load([run.path], salvage=True), pd.DataFrame)


def attend(q: object, k: object, v: object, *, causal: bool, scale: float) -> object:
    return v


assert_type(
    attnbench.run(backends=[attend, "sdpa"], seq_len=[512, "1k"], heads=8, on_row=print),
    attnbench.Run,
)
assert_type(attnbench.wall("fused", heads=8, head_dim=64).walls(), pd.DataFrame)


try:
    attnbench.run({"name": "mine"}, out=Path("results"))
except attnbench.BadInput as error:
    assert_type(error.problems, tuple[str, ...])

attnbench.run("quickstart", plan="fast")  # type: ignore[arg-type]
attnbench.run("quickstart", device="gpu")  # type: ignore[arg-type]
attnbench.run("quickstart", "results")  # type: ignore[call-arg]
attnbench.run(3)  # type: ignore[arg-type]
attnbench.run(backends="fused", sequence=512)  # type: ignore[call-arg]
attnbench.wall("fused", seq_len=512)  # type: ignore[call-arg]
run.path = Path("elsewhere")  # type: ignore[misc]
