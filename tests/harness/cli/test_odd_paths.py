"""A path that cannot be used, and texts of a file: one line, exit code 2, no control character."""

from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import case, problem, quickstart, row, write_run

LONG, LOOP, UNREADABLE = "n" * 300, "loop", "/proc/self/mem"
COMMAND = "x\n::error::y"
BROKEN = "x\n\x1b[31m::error::"
READ = (
    *(
        "validate {}",
        "run {} --dry-run",
        "run --resume {}",
        "run --model {} --seq-len 16 --dry-run",
    ),
    *("run --checkpoint {} --dry-run", "show {}", "report {}", "export {}", "compare {} good"),
    *("trend {}", "trend good --base {}"),
    *("merge {}", "baseline save x {}", "advise {}", "gate {} . --scenario quickstart"),
    *("compare good good --gate {}",),
)
WRITTEN = (
    *("report good -o {}/x", "report good --format md -o {}/x", "export good -o {}/x"),
    *("report good --format md --figures {}", "show --runs {}", "list runs --runs {}"),
    *("baseline save x good --runs {}", "advise llama-3-8b --output {}/x", "show good -o {}/x.csv"),
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


@pytest.mark.parametrize(
    "words", ["show {} --all", "show {}", "list runs", "export {} --format md"]
)
def test_no_text_of_a_run_begins_a_line_that_commands_a_job(
    here: Any, tmp_path: Path, words: str
) -> None:
    cases = [case(backend, problem(128, 8)) for backend in (COMMAND, "sdpa")]
    rows = [row(cases[0], "crashed", reason=COMMAND, log_tail=f"{COMMAND}\n  ::z"), row(cases[1])]
    changes = {"name": COMMAND, "question": COMMAND}
    run = write_run(tmp_path / "results", cases, rows, scenario=changes, device=COMMAND)
    done = here(*(word.format(run) for word in words.split()))
    lines = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 0
    assert not [line for line in lines if line.strip().startswith("::")]
