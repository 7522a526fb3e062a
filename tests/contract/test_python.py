"""What docs/api.md promises to a Python user, in one session, and to one who installs the wheel."""

import sys
import zipfile
from pathlib import Path

from tests.conftest import ROOT, ran
from tests.contract.conftest import users_environment
from tests.contract.reading import QUICKSTART, python

SESSION = """
import sys
import attnbench

assert not {"torch", "pandas"} & set(sys.modules), "importing attnbench imports nothing large"
rows = []
run = attnbench.run(
    {
        "name": "two",
        "question": "Which of the two is faster?",
        "backends": ["fused", "sdpa"],
        "grid": {"seq_len": 64, "d_model": 32, "heads": 2},
    },
    plan="quick",
    device="cpu",
    changes={"plan.budget_s": 0.1, "plan.processes": 1},
    on_row=rows.append,
)
assert run.ok and run.statuses == {"ok": 2}, run.statuses
assert {row["backend"] for row in rows} == {"fused", "sdpa"}
frame = run.frame()
assert len(frame) == 2 and (frame["latency_ms"] > 0).all() and (frame["peak_bytes"] > 0).all()
blocks_ms = {row["case"]: row["block_ms"] for row in rows}
assert frame.loc[0, "block_ms"] == blocks_ms[frame.loc[0, "case"]]
assert frame.attrs["run"] == run.path.name
page = run.report("page.html")
assert page.read_text().startswith("<!DOCTYPE html>")
again = attnbench.open_run("latest")
assert again.path == run.path
compared = again.compare(run)
assert len(compared) >= 2
assert len(attnbench.load("results/latest")) == 2
for bad in (
    lambda: attnbench.run("quickstart", plann="quick"),
    lambda: attnbench.run("quickstart", plan="quik"),
    lambda: attnbench.open_run("nowhere"),
):
    try:
        bad()
    except ValueError as said:
        assert str(said)
    else:
        raise AssertionError("was not refused")
print("done")
"""
KEPT = """
import json, sys
import attnbench
kept = attnbench.open_run(sys.argv[1])
print(json.dumps(kept.statuses), len(kept.frame()))
assert "torch" not in sys.modules
"""


def test_a_session_in_python_does_what_the_commands_do(tmp_path: Path) -> None:
    assert python(SESSION, cwd=tmp_path).splitlines()[-1] == "done"


def test_a_kept_run_is_opened_without_torch(tmp_path: Path) -> None:
    assert python(KEPT, QUICKSTART, cwd=tmp_path).strip() == (
        '{"ok": 31, "oom": 4, "predicted_oom": 1} 36'
    )


def test_the_wheel_is_used_far_from_the_checkout(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist"]
    ran(build, cwd=ROOT, check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    empty = tmp_path / "empty"
    empty.mkdir()
    env = users_environment({"PYTHONPATH": str(tmp_path / "site")})
    where = [sys.executable, "-c", "import attnbench; print(attnbench.__file__)"]
    assert ran(where, cwd=empty, env=env, check=True).stdout.startswith(str(tmp_path / "site"))
    command = [sys.executable, "-m", "attnbench"]
    for words in (
        ("run", "--dry-run", "quickstart", "--device", "cpu"),
        ("list", "models"),
        ("show", QUICKSTART),
    ):
        done = ran([*command, *words], cwd=empty, env=env, check=True)
        assert done.stdout.strip()
    assert not [*empty.iterdir()]
