"""A path that cannot be used, and texts of a file: one line, exit code 2, no control character."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ran
from tests.made_runs import case, problem, quickstart, row, write_run

LONG, LOOP, UNREADABLE = "n" * 300, "loop", "/proc/self/mem"
ESCAPE = "\x1b]0;title\x07\x1b[31m\x9b2J\u202e\u2066\u200b"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
COMMAND = f"x{ESCAPE}\n::error::y"
BROKEN = "x\n\x1b[31m::error::"
READ = (
    *(
        "run {} --dry-run",
        "run --resume {}",
        "run --model {} --seq-len 16 --dry-run",
    ),
    *(
        "run --checkpoint {} --dry-run",
        "show {}",
        "report {}",
        "show {} --format csv",
        "compare {} good",
    ),
    *("merge {}", "compare {} --save x", "advise {}", "gate {} . --scenario quickstart"),
    *("compare good good --gate {}",),
)
WRITTEN = (
    *("report good -o {}/x", "show good --format md -o {}/x", "show good -o {}/x.json"),
    *("show good --format md --figures {}", "show --runs {}", "list runs --runs {}"),
    *(
        "compare good --save x --runs {}",
        "advise llama-3-8b --output {}/x",
        "show good -o {}/x.csv",
    ),
    *("gate . . --scenario quickstart -o {}",),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quickstart(tmp_path_factory.mktemp("good"), (128,))


@pytest.mark.parametrize("path", [LONG, LOOP, UNREADABLE, BROKEN])
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=[pytest.mark.long] * words.startswith("gate"))  # starts git
        for words in (*READ, *WRITTEN)
    ],
)
def test_a_path_that_cannot_be_used_is_one_line(
    here: Any, tmp_path: Path, good: Path, words: str, path: str
) -> None:
    if path == BROKEN and words in WRITTEN:  # a folder of this name would do
        path += "/" + LONG
        (tmp_path / BROKEN).mkdir()
    (tmp_path / LOOP).symlink_to(LOOP)
    (tmp_path / "good").symlink_to(good)
    done = here(*(word.format(path) for word in words.split()))
    assert done.returncode == 2, done
    assert (done.stdout, done.stderr.count("\n")) == ("", 1), done
    assert done.stderr.rstrip("\n").isprintable()
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("words", ["show {} --all", "show {}", "list runs", "show {} --format csv"])
def test_no_text_of_a_run_acts_on_a_terminal_or_begins_a_line_that_commands_a_job(
    here: Any, tmp_path: Path, words: str
) -> None:
    cases = [case(backend, problem(128, 8)) for backend in (COMMAND, "sdpa")]
    rows = [row(cases[0], "crashed", reason=COMMAND, log_tail=f"{COMMAND}\n  ::z"), row(cases[1])]
    changes = {"name": COMMAND, "question": COMMAND}
    run = write_run(tmp_path / "results", cases, rows, scenario=changes, device=COMMAND)
    done = here(*(word.format(run) for word in words.split()))
    said = done.stdout + done.stderr
    assert done.returncode == 0
    assert not [line for line in said.splitlines() if line.strip().startswith("::")]
    assert not CONTROLS.search(said), said
    assert r"\x1b]0;title" in said


# ---- of backends, the command line and tracebacks ------------------------------------------------

SHOWN = r"\x1b]0;title"
ONE_CASE = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 1}")


def assert_inert(done: subprocess.CompletedProcess[str]) -> None:
    assert not CONTROLS.search(done.stdout), done.stdout
    assert not CONTROLS.search(done.stderr), done.stderr
    assert SHOWN in done.stdout + done.stderr


@pytest.mark.long
def test_a_backend_shows_its_name_and_its_error_but_does_not_act(
    attnbench: Any, tmp_path: Path
) -> None:
    code = f"def prepare(problem, inputs, weights):\n    raise ValueError({ESCAPE!r})\n"
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / f"a{ESCAPE}.py").write_text(code)
    known = {"ATTNBENCH_BACKENDS": str(tmp_path)}
    assert_inert(attnbench("list", "backends", env=known))
    done = attnbench("run", "--backends", "mine", *ONE_CASE, *QUICK, env=known)
    assert done.returncode == 1
    assert_inert(done)


@pytest.mark.long
def test_a_traceback_of_our_own_is_inert_too() -> None:
    code = (
        "from attnbench.harness.verbs import app\n"
        "def fails(**_):\n"
        f"    raise LookupError({ESCAPE!r})\n"
        "app.app = fails\n"
        "app.main()\n"
    )
    done = ran([sys.executable, "-c", code])
    assert "Traceback" in done.stderr
    assert_inert(done)
