"""A user's own callable is imported only where the user said so, only in workers, and is then
measured like any other.
"""

from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario.fields import existing_backend
from attnbench.harness.scenario.selection import refuse_imports
from tests.made_runs import read_rows, write_rows

SMALL = ("--seq-len", "64", "--d-model", "32", "--heads", "2", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}")
MINE = """
import os
with open("imported_by", "a") as file:
    file.write(f"{os.getpid()} ")

def attend(q, k, v, *, causal, scale):
    s = q @ k.mT * scale
    if causal:
        n = q.shape[2]
        s = s.masked_fill(q.new_ones(n, n).triu(1).bool(), float("-inf"))
    return s.softmax(-1) @ v

class Layered:
    @staticmethod
    def why_not(problem, device):
        return "one head is too few" if problem.heads == 1 else None

    @staticmethod
    def prepare(problem, inputs, weights):
        from attnbench.impls.layer import as_call

        def core(q, k, v):
            return attend(q, k, v, causal=problem.causal, scale=problem.scale)

        return as_call(problem, inputs, weights, core)
"""
REFUSAL = (
    "error: attend@mine: workers must import and run mine; add --allow-import if you"
    " trust that code\n"
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A module in the folder in which commands are started, and where it notes who imports it."""
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path / "imported_by"


@pytest.mark.parametrize("name", ["org/kernel", "hf:kernel[repo=org/kernel]"])
def test_a_binary_of_the_hub_needs_permission_too(name: str) -> None:
    with pytest.raises(BadInput, match="download this binary from the Hub"):
        refuse_imports(["sdpa", name], allowed=False)
    refuse_imports(["sdpa", name], allowed=True)
    assert existing_backend(name) == name


def test_without_permission_nothing_is_imported_and_one_line_says_what_to_add(here, mine):
    Path("with_mine.yaml").write_text(
        "name: m\nquestion: q\nbackends: [attend@mine]\ngrid: {seq_len: 64, d_model: 32, heads:"
        " 2}\n"
    )
    for arguments in (
        ("run", "--backends", "fused,attend@mine", *SMALL),
        ("run", "quickstart", "with_mine.yaml"),
        ("wall", "--backends", "attend@mine", "--d-model", "32", "--heads", "2"),
    ):
        done = here(*arguments)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", REFUSAL)
    # reading a scenario runs nothing
    read = here("run", "with_mine.yaml", "--only", "none", "--dry-run")
    assert (read.returncode, "attend@mine-b1-n64" in read.stderr) == (2, True)
    dry = here("run", "--backends", "mine:attend", *SMALL, "--dry-run")
    assert dry.returncode == 0
    assert "from the module mine, which is imported in workers only" in dry.stdout
    assert not mine.exists()
    assert not Path("results").exists()


@pytest.mark.long
def test_a_scenario_takes_it_up_beside_its_own_and_resume_asks_again(attnbench, here, mine):
    grid = "grid={seq_len: [64, 96], d_model: 32, heads: [1, 2]}"
    more = ("--set", grid, *["--set", "cases=[]", "--set", "find_wall=false", "--device", "cpu"])
    choice = ["--only", "n64", "--skip", "naive", "--skip", "sdpa"]
    mine_too = ("--set", "backends=[naive, fused, sdpa, Layered@mine]", "--allow-import")
    begun = attnbench("run", "quickstart", *mine_too, *more, *choice, *QUICK)
    assert begun.returncode == 0, begun.stderr
    assert len(set(mine.read_text().split())) == 1  # a worker, whose pid nobody else had
    run = Path(begun.stdout.strip())
    rows = read_rows(run)
    assert {(row["backend"], row["heads"]): (row["status"], row["reason"]) for row in rows} == {
        ("fused", 1): ("ok", ""),
        ("fused", 2): ("ok", ""),
        ("Layered@mine", 1): ("unsupported", "one head is too few"),
        ("Layered@mine", 2): ("ok", ""),
    }
    write_rows(run, rows[:-1])
    mine.unlink()
    done = here("run", "--resume", run)
    assert (done.returncode, done.stderr) == (2, REFUSAL.replace("attend", "Layered"))
    assert not mine.exists()
    assert attnbench("run", "--resume", run, "--allow-import").returncode == 0
    again = [row["case"] for row in read_rows(run)]
    assert sorted(again) == sorted(row["case"] for row in rows)
